package permit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config describes a Server. All of it has a default.
type Config struct {
	// Limits have different names. Add adds more.
	Limits []Limit
	// Clients have a weight or a head start. Every other client has weight 1.
	Clients []ClientConfig
	// SendWithin is how long after its grant a permit may be used. If zero, 1 s; with Share, 0.5 s.
	SendWithin time.Duration
	// TTL is how long a permit is held that is neither settled nor renewed. If zero, 10 s. It is at
	// least SendWithin.
	TTL time.Duration
	// Late is how long a request of unknown end may still arrive. If zero, 5 s.
	Late time.Duration
	// MaxWaiting is the most calls that may wait. If zero, 20,000.
	MaxWaiting int
	// State is the path of a file of what was granted, for the next process. If empty, there is none:
	// then nothing goes until what an earlier process may have granted counts no more.
	State string
	// Share makes the limiter of a name one that other processes have, too. If nil, each limit is this
	// process's own.
	// With Share there is no State: the store has what was granted.
	Share func(name string, made func() limit.Limiter) (limit.Limiter, error)
	// Proxy returns the proxy whose upstreams give permits, too, by their names; nil: there is none now.
	// If nil, there is never one.
	Proxy func() *proxy.Proxy
	// Log gets what goes wrong. If nil, nothing is logged.
	Log *slog.Logger
}

// Defaults of Config.
const (
	defaultSendWithin = time.Second
	sharedSendWithin  = time.Second / 2 // a part of a shared limit is for a term of 2 s
	defaultTTL        = 10 * time.Second
	defaultMaxWaiting = 20_000
)

// Server has the limits, and the permits that other processes hold. New makes it. It is safe for
// concurrent use.
type Server struct {
	c      Config
	base   time.Time
	group  *paceline.Group
	limits atomic.Pointer[map[string]*namedLimit] // replaced as a whole
	state  *state                                 // nil: none
	over   context.Context
	stop   context.CancelCauseFunc
	unread atomic.Int64 // ids that were settled or renewed, and were nobody's
	lapsed atomic.Int64 // permits of unknown end

	adding  sync.Mutex // held while limits are added; taken before mu
	known   *known     // what an earlier process granted, once recalled
	mu      sync.Mutex // guards what follows, the clients, and the lanes of limits
	book    *heldPermits[grant]
	random  [len(permitID{}) * mostRandom]byte
	watched map[*connection]bool // whose end is awaited
	said    []string             // changes by a user
	timer   *time.Timer          // for the next permit that lapses
	armed   mono.Time
}

// grant is what the Server keeps of a permit.
type grant struct {
	permit paceline.Permit
	entry  int64 // its number in the state file
	limit  *namedLimit
	leave  *proxy.Leave // of an upstream, in place of all else; nil: it is of a limit here
}

var errStopping = errors.New("the daemon is stopping")

// New checks the configuration and returns a Server. The error names what is wrong.
func New(c Config) (*Server, error) {
	if c.Share != nil {
		c.SendWithin = cmp.Or(c.SendWithin, sharedSendWithin)
	}
	c.SendWithin, c.TTL = cmp.Or(c.SendWithin, defaultSendWithin), cmp.Or(c.TTL, defaultTTL)
	c.Late, c.MaxWaiting = cmp.Or(c.Late, defaultLate), cmp.Or(c.MaxWaiting, defaultMaxWaiting)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	switch {
	case c.SendWithin < 0 || c.TTL < c.SendWithin:
		return nil, fmt.Errorf("SendWithin %v, TTL %v: expected a positive SendWithin, and a TTL of at least that",
			c.SendWithin, c.TTL)
	case c.Late < 0:
		return nil, fmt.Errorf("a negative Late: %v", c.Late)
	}
	group, err := paceline.NewGroup(paceline.GroupConfig{MaxWaiting: c.MaxWaiting})
	if err != nil {
		return nil, err
	}
	s := &Server{c: c, base: time.Now(), group: group,
		book:    newHeldPermits[grant](lifeSpans{SendWithin: c.SendWithin, TTL: c.TTL}),
		watched: map[*connection]bool{}, armed: limit.Never}
	s.over, s.stop = context.WithCancelCause(context.Background())
	s.c.Limits, s.c.Clients = nil, nil
	s.limits.Store(&map[string]*namedLimit{})
	if err := s.Add(c.Limits, c.Clients); err != nil {
		return nil, errors.Join(err, s.state.close())
	}
	return s, nil
}

// Mount mounts the calls. handle is that of a daemon.Server or of an http.ServeMux. The connections of
// the http.Server behind it must be tracked: see Track.
func (s *Server) Mount(handle func(pattern string, h http.Handler)) {
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request) *refusal{
		"POST /v1/acquire": s.acquire, "POST /v1/settle": s.settle, "POST /v1/renew": s.renew,
		"GET /v1/limits": s.list, "GET /v1/ask": s.ask,
	} {
		handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if x := f(w, r); x != nil {
				x.write(w)
			}
		}))
	}
}

// Stop refuses the calls that wait, and all that come.
func (s *Server) Stop() { s.stop(errStopping) }

// Fact is what the daemon's status shows.
func (s *Server) Fact() any {
	all := s.listed()
	return struct {
		Limits     []about `json:"limits"`
		Waiting    int     `json:"waiting"`
		Held       int     `json:"held"`
		UnknownIDs int64   `json:"unknown_ids"`
	}{all.Named, all.Waiting, all.Held, all.UnknownIDs}
}

// Close refuses the calls that wait, and closes the state file. Permits that are held count for the
// next process as of unknown end. Close it before the proxy.
func (s *Server) Close() error {
	s.Stop()
	var there []*proxy.Leave
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.armed = mono.Min // for good
	for _, g := range s.book.Lapsed(limit.Never) {
		if g.leave != nil {
			there = append(there, g.leave)
		}
	}
	s.mu.Unlock()
	for _, l := range there {
		l.Lost()
	}
	return s.state.close()
}

// Held is how many permits are held.
func (s *Server) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.Len()
}

func (s *Server) now() mono.Time { return mono.Of(s.base, time.Now()) }

// issued is a grant that its holder is about to get.
type issued struct {
	ids    []permitID
	sendBy int64 // by the clock of boottime, in ns
	// keys and targets are those of an upstream, one for each ID. Nil: it has none.
	keys, targets []string
}

// issue begins the lives of permits. If their holder is gone, it settles them, and nothing is granted.
func (s *Server) issue(k *connection, client string, grants []grant) (i issued, x *refusal) {
	i.keys, i.targets = namesThere(grants)
	i.ids = make([]permitID, len(grants))
	s.mu.Lock()
	if s.watchLocked(k) {
		now := s.now()
		i.sendBy = int64(boottime.Read().Awake) + int64(s.c.SendWithin)
		for granted := false; !granted; granted = s.book.Grant(now, i.ids, client, k.line, grants) {
			for part := range slices.Chunk(i.ids, mostRandom) {
				_, _ = rand.Read(s.random[:len(permitID{})*len(part)]) // never fails
				for n := range part {
					copy(part[n][:], s.random[len(permitID{})*n:])
				}
			}
		}
		s.armLocked()
	} else {
		x = &refusal{gone: true}
	}
	s.mu.Unlock()
	if x != nil {
		s.takeBack(grants)
	}
	return i, x
}

// mostRandom is for how many permits random bits are read at once: a call for each costs as much as all else.
const mostRandom = 64

// takeBack settles permits that nobody got.
func (s *Server) takeBack(grants []grant) { s.finish(grants, &settlement{result: "unsent"}) }

// watchLocked awaits the end of a connection. It returns false if that has come.
func (s *Server) watchLocked(k *connection) bool {
	if s.watched[k] {
		return true
	}
	ok := k.afterwards(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watched, k)
		s.book.Gone(s.now(), k.line)
		s.armLocked()
	})
	if ok {
		s.watched[k] = true
	}
	return ok
}

// armLocked sets the timer for the next permit that lapses.
func (s *Server) armLocked() {
	at, ok := s.book.Next()
	if !ok || at >= s.armed {
		return // an early timer does no harm
	}
	s.armed = at
	d := at.Sub(s.now())
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.lapse)
	} else {
		s.timer.Reset(d)
	}
}

// lapse settles the permits whose end is unknown.
func (s *Server) lapse() {
	s.mu.Lock()
	all := s.book.Lapsed(s.now())
	if s.armed != mono.Min {
		s.armed = limit.Never
		s.armLocked()
	}
	s.mu.Unlock()
	s.finish(all, &settlement{result: "unknown"})
	s.lapsed.Add(int64(len(all)))
}

// finish settles permits whose lives are over. Those of one limit that follow each other are settled
// together.
func (s *Server) finish(all []grant, m *settlement) {
	var few [16]paceline.Permit
	permits := few[:0]
	for len(all) > 0 {
		if all[0].leave != nil {
			m.settle(all[0].leave)
			all = all[1:]
			continue
		}
		l := all[0].limit
		permits = slices.Grow(permits[:0], len(all))
		for n := 0; n < len(all) && all[n].limit == l; n++ {
			permits = append(permits, all[n].permit)
		}
		o := m.outcome(l)
		s.state.settle(all[:len(permits)], &o)
		paceline.SettleAll(permits, o)
		all = all[len(permits):]
	}
}
