package transport

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

// Affinity keeps the requests of a session at one Target, for example because its cache has the beginning
// of their prompts. The zero value keeps none.
type Affinity struct {
	// Session returns the session of a request, by any text; empty: it has none. body is the request's
	// body, if it could be read: see Config.MaxBody. Session must not change it. If nil, no request has
	// a session.
	Session func(r *http.Request, body []byte) string
	// Hold is how long a request waits for the Target of its session, while another may take it. If that
	// Target is shut (see Target.After), it goes elsewhere at once. If zero, 2 s.
	Hold time.Duration
}

const (
	defaultHold = 2 * time.Second
	// manySessions are remembered, in 1 MiB; beyond them, those idle for longest are forgotten.
	manySessions = 1 << 16
	// sessionIdle is how long a session without requests is remembered: no provider keeps a prompt's
	// beginning for longer.
	sessionIdle = time.Hour
	inBucket    = 4
)

// sessions remembers the target of each session. Safe for concurrent use.
type sessions struct {
	seed  maphash.Seed
	mu    sync.Mutex // guards slots
	slots []session
}

// session is one in 16 bytes.
type session struct {
	name   uint64 // 0: none
	target uint8
	used   uint32 // in seconds
}

// nameOf returns a number for the text of a session; 0: none.
func (s *sessions) nameOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return maphash.String(s.seed, text) | 1
}

// bucket returns the slots in which a session may be.
func (s *sessions) bucket(name uint64) []session {
	if s.slots == nil {
		s.slots = make([]session, manySessions)
	}
	at := int(name>>1%(manySessions/inBucket)) * inBucket
	return s.slots[at : at+inBucket]
}

// home returns the target of a session.
func (s *sessions) home(name uint64, now time.Duration) (target int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.bucket(name) {
		if e.name == name && now < time.Duration(e.used)*time.Second+sessionIdle {
			return int(e.target), true
		}
	}
	return 0, false
}

// served notes that a target has served a request of a session.
func (s *sessions) served(name uint64, target int, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket := s.bucket(name)
	at := 0
	for i := range bucket {
		if bucket[i].name == name {
			at = i
			break
		}
		if bucket[i].used < bucket[at].used || bucket[i].name == 0 && bucket[at].name != 0 {
			at = i
		}
	}
	bucket[at] = session{name: name, target: uint8(target), used: uint32(now / time.Second)}
}

// keeps reports whether requests have sessions.
func (t *Transport) keeps() bool { return t.config.Affinity.Session != nil && len(t.targets) > 1 }

// attend finds the session of a request.
func (c *call) attend() {
	if c.t.keeps() {
		c.session = c.t.sessions.nameOf(c.t.config.Affinity.Session(c.req, c.raw))
	}
}

// homes returns the ways to the target of the request's session, as paceline.Turn has them.
func (c *call) homes() (ways uint64) {
	if c.lane != nil {
		return 0
	}
	target, ok := c.t.sessions.home(c.session, c.t.now())
	if !ok {
		return 0
	}
	for k := range min(c.leaf.ways(), 64) {
		if c.leaf.by(k).target.in == target {
			ways |= 1 << k
		}
	}
	return ways
}

// settles makes the target of a request that was served the home of its session. A spare target is none.
func (c *call) settles(g *target) {
	if c.session != 0 && g.After == 0 {
		c.t.sessions.served(c.session, g.in, c.t.now())
	}
}
