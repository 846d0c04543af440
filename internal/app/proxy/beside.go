package proxy

import (
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Beside says where the process notes what it sends. Other programs of its user with the same key count
// that, and the process counts what they sent. With Config.Share nothing is noted: the store has it.
type Beside struct {
	// Folder has the notes of all programs of the user. If empty, nothing is noted.
	Folder string
	// Door is the command of the process: proxy or exec.
	Door string
	// Way says how other programs send to an upstream by this process: see journal.Note. If nil, they cannot.
	Way func(*Upstream) string
	// Warn gets a line about another process that sends to a server at this moment. If nil, the Log gets it.
	Warn func(server, line string)
}

// lookEvery is the time between two looks at what other programs sent. Only requests make the proxy look.
const lookEvery = time.Second

// mostNoted is how many keys of clients are noted, since clients may bring any number.
const mostNoted = 1 << 10

// beside is the note of a proxy. nil: there is none.
type beside struct {
	Beside
	state  *state
	common *common
	log    *slog.Logger

	keys   sync.Map     // by ofUpstream: the digests of a key
	looked atomic.Int64 // when others were looked at (ns since 1970)

	looking sync.Mutex
	seen    map[string]sight // by the path of another's note, under looking

	mu   sync.Mutex
	note journal.Note
}

// ofUpstream is a key's name, as a partition has it. The name of a client's key is the same at all upstreams,
// and has none.
type ofUpstream struct{ upstream, key string }

// sight is what was taken in of another's note.
type sight struct {
	until int64 // what it sent up to then counts (ns since 1970)
	told  bool  // the user was warned
}

// newBeside begins the note of a proxy.
func newBeside(c *Config) *beside {
	limited := func(u Upstream) bool {
		return u.Preset != "" || slices.ContainsFunc(u.Servers(), (*Upstream).limited)
	}
	if c.Beside.Folder == "" || c.Share != (ShareBy{}) || !c.Live && !slices.ContainsFunc(c.Upstreams, limited) {
		return nil
	}
	b := &beside{Beside: c.Beside, log: c.Log, seen: map[string]sight{}}
	b.note = journal.Note{PID: os.Getpid(), Door: b.Door, Places: true, AnyKey: true, Follows: c.State != "",
		Forward: c.Forward.Listen, Keep: c.kept(), Keys: map[string]string{}, Way: map[string]string{}}
	if c.State != "" {
		b.note.Journal = wholePath(c.State)
	}
	if err := b.note.Begin(b.Folder, time.Now()); err != nil {
		c.Log.Info("what this proxy sends is not noted for other programs of its user", "err", err)
		return nil
	}
	return b
}

// path is that of the file for a proxy without a state file.
func (b *beside) path() string {
	if b == nil {
		return ""
	}
	return b.note.Journal
}

// of makes b that of a proxy's state.
func (b *beside) of(c *common) {
	if b != nil {
		b.common, b.state, c.state.beside = c, c.state, b
	}
}

// alone reports whether the state file is there for other programs only.
func (b *beside) alone() bool { return b != nil && !b.note.Follows }

// knows notes the servers of an upstream, and its own keys.
func (b *beside) knows(u *Upstream) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	was := len(b.note.Servers) + len(b.note.Keys)
	for _, x := range u.Servers() {
		server := secret.PlaceOf(x.To).String()
		if !slices.Contains(b.note.Servers, server) {
			b.note.Servers = append(b.note.Servers, server)
		}
		if b.Way != nil {
			b.note.Way[server] = b.Way(u)
		}
		for _, k := range x.Keys {
			b.hasLocked(ofUpstream{u.Name, k.Name}, string(k.Secret))
		}
		if len(x.Keys) == 0 {
			b.hasLocked(ofUpstream{u.Name, ""}, server, u.credential())
		}
	}
	if len(b.note.Servers)+len(b.note.Keys) > was {
		b.writeLocked()
	}
}

// IsAt reports whether u has a server, named as secret.Place names it.
func (u *Upstream) IsAt(server string) bool {
	return slices.ContainsFunc(u.Servers(), func(x *Upstream) bool { return secret.PlaceOf(x.To).String() == server })
}

// credential is that of the fixed fields.
func (u *Upstream) credential() string {
	header, query := http.Header{}, url.Values{}
	for _, f := range u.Header {
		if !f.perKey() {
			header.Set(f.Name, string(f.Value))
		}
	}
	for _, f := range u.Query {
		if !f.perKey() {
			query.Set(f.Name, string(f.Value))
		}
	}
	return secret.Credential(header, &url.URL{RawQuery: query.Encode()})
}

// hasLocked notes the credentials of a key.
func (b *beside) hasLocked(k ofUpstream, credentials ...string) {
	var digests []string
	for _, c := range credentials {
		if c != "" {
			digest := journal.DigestOf(c)
			digests = append(digests, digest)
			b.note.Keys[digest] = k.key
		}
	}
	b.keys.Store(k, digests)
}

func (b *beside) writeLocked() {
	if err := b.note.Write(); err != nil {
		b.log.Info("the note for other programs cannot be written, and they may be refused", "err", err)
	}
}

// idle notes whether the process waits for programs.
func (b *beside) idle(is bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.note.Idle != is {
		b.note.Idle = is
		b.writeLocked()
		b.looked.Store(0) // the next program hears of others at its first request
	}
}

// meets notes the key of a client's request, and takes in from time to time what others sent.
func (b *beside) meets(r *http.Request, key, credential string) {
	if b == nil {
		return
	}
	now := time.Now()
	if v := visitOf(r.Context()); credential != "" && (v == nil || !v.upstream.hasKeys()) {
		if _, known := b.keys.Load(ofUpstream{"", key}); !known && b.meetsNew(key, credential) {
			b.look(now)
		}
	}
	if now.UnixNano()-b.looked.Load() > int64(lookEvery) {
		b.look(now)
	}
}

func (b *beside) meetsNew(key, credential string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.note.Keys) >= mostNoted {
		return false
	}
	b.hasLocked(ofUpstream{"", key}, credential)
	b.writeLocked()
	return true
}

// look takes in what other programs sent that have ended, and what those that live sent before the first look.
// It warns of the latter.
func (b *beside) look(now time.Time) {
	if b == nil || !b.looking.TryLock() {
		return
	}
	defer b.looking.Unlock()
	b.looked.Store(now.UnixNano())
	b.mu.Lock()
	me := b.note
	me.Keys, me.Servers = map[string]string{}, slices.Clone(b.note.Servers)
	maps.Copy(me.Keys, b.note.Keys)
	b.mu.Unlock()
	ended, living := me.Others(now)
	seen := map[string]sight{}
	var all []earlier
	for i, o := range slices.Concat(ended, living) {
		s, again := b.seen[o.Path()]
		if lives := i >= len(ended); !again || !lives && s.until < math.MaxInt64 {
			sent := b.recall(&me, o, s.until, now)
			for _, e := range sent {
				s.until = max(s.until, e.Went.UnixNano())
			}
			if all = append(all, sent...); !lives {
				s.until = math.MaxInt64
			}
		}
		if i >= len(ended) && !s.told && !o.Idle && me.SharesKey(o) && b.sentLately(&me, o, now) {
			s.told = true
			b.warn(&me, o)
		}
		seen[o.Path()] = s
	}
	b.seen = seen
	b.count(all, now)
}

// sentLately reports whether another program has sent something a moment ago. Its file is read only if it has changed.
func (b *beside) sentLately(me, o *journal.Note, now time.Time) bool {
	since := now.Add(-journal.Lately)
	return o.Written().After(since) && len(b.recall(me, o, since.UnixNano(), now)) > 0
}

func (b *beside) warn(me, o *journal.Note) {
	line := me.Beside(o)
	if b.Warn == nil {
		b.log.Warn(line)
		return
	}
	for _, server := range me.Servers {
		if slices.Contains(o.Servers, server) {
			b.Warn(server, line)
		}
	}
}

// recall reads what another program sent after an instant.
func (b *beside) recall(me, o *journal.Note, after int64, now time.Time) (all []earlier) {
	h, err := o.Recall(me, journal.Config{Keep: b.state.keep}, now)
	if err != nil {
		b.log.Warn("what another process sent does not count", "pid", o.PID, "err", err)
		return nil
	}
	for _, sent := range h.Sends {
		if sent.Sent <= after {
			continue
		}
		keys, model, _ := strings.Cut(sent.Key, "/")
		at := func(ns int64) time.Time { return now.Add(time.Duration(ns - now.UnixNano())) }
		e := earlier{Earlier: journal.Earlier{Counts: at(sent.Counts), Went: at(sent.Sent),
			Past: limit.Past{Cost: sent.Cost, Result: sent.Result}}, keys: strings.Split(keys, "+"), servers: o.Servers}
		e.Model = model
		all = append(all, e)
	}
	return all
}

// count makes limits count what others sent: those that come, by Earlier, and those that are there.
func (b *beside) count(all []earlier, now time.Time) {
	if len(all) == 0 {
		return
	}
	s := b.state
	s.mu.Lock()
	s.earlier, s.latest, s.all = append(s.earlier, all...), now, false
	slices.SortStableFunc(s.earlier, func(x, y earlier) int { return x.Counts.Compare(y.Counts) })
	s.mu.Unlock()
	for _, u := range b.common.latest.Load().routes {
		u.transport.Change(func(at mono.Time, p transport.Partition, l limit.Limiter) {
			for _, part := range limit.Parts(l) {
				if cost := b.lately(u.Name, all, p, part, now); cost != (limit.Cost{}) {
					countNow(at, part, cost)
				}
			}
		})
	}
}

// lately is what others sent within the window of a limiter, and at most what that lets go at once. When it
// arrived is no help to a limiter that has counted later requests, so all of it counts from now on.
func (b *beside) lately(upstream string, all []earlier, p transport.Partition, l limit.Limiter,
	now time.Time) (cost limit.Cost) {
	rules, _ := limit.Rules(l)
	for _, r := range rules {
		var sum int64
		for i := range all {
			if e := &all[i]; r.Per > 0 && now.Sub(e.Counts) < r.Per && b.counts(upstream, e, p) {
				sum += e.Cost[r.Unit]
			}
		}
		cost[r.Unit] = max(cost[r.Unit], min(sum, r.Most()))
	}
	return cost
}

// counts reports whether a request of another program counts in p. Only the model of such a request is known,
// so it counts on each of its key's routes.
func (b *beside) counts(upstream string, e *earlier, p transport.Partition) bool {
	isHere := func(at string) bool { return strings.HasSuffix(at, "://"+p.Host) }
	if p.Scope == transport.ScopeClient || e.Model != "" && p.Model != "" && e.Model != p.Model ||
		!slices.ContainsFunc(e.servers, isHere) {
		return false
	}
	if !p.Scope.Info().Key || provider.OfAddress(p.Resource) {
		return true
	}
	digests, is := b.keys.Load(ofUpstream{upstream, p.Key})
	if !is {
		digests, _ = b.keys.Load(ofUpstream{"", p.Key})
	}
	ours, _ := digests.([]string)
	return slices.ContainsFunc(e.keys, func(k string) bool { return slices.Contains(ours, k) })
}

// end notes the end of the process.
func (b *beside) end() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.note.End(journal.Config{Keep: b.state.keep}, time.Now()); err != nil {
		b.log.Info("what this proxy sent is not noted for other programs of its user", "err", err)
	}
}

// drop removes the note: another process goes on with the file, and has a note of its own.
func (b *beside) drop() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.note.Drop()
	}
}

// SetIdle notes for other programs whether this one waits for programs.
func (p *Proxy) SetIdle(is bool) {
	if p.state != nil {
		p.state.beside.idle(is)
	}
}
