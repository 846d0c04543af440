package queue

import "github.com/paceline-go/paceline/limit/mono"

// hosts are the destinations of requests. Each host has a heap of its ready requests. One heap has
// the hosts that are not held, by their first request. So holding a host costs the same however
// many requests wait for it.
type hosts struct {
	all   []*host
	free  []uint32
	names map[string]*host
	heads heap // the hosts that are not held and have ready requests, by the place of the first
	items *spots
}

type host struct {
	name    string
	ready   heap // ready requests, by place
	aside   heap // ready requests that were set aside, by place
	waiting int  // how many are in ready, aside, or in a backoff
	index   uint32
	held    bool
	alone   bool // those aside are held
}

// first returns the first request that is not held, or nil.
func (h *host) first() *entry {
	switch {
	case h.held:
		return nil
	case len(h.aside.entries) == 0 || h.alone:
		if len(h.ready.entries) == 0 {
			return nil
		}
		return h.ready.first()
	case len(h.ready.entries) == 0 || h.aside.first().before(h.ready.first()):
		return h.aside.first()
	}
	return h.ready.first()
}

// init makes the host "". items are the spots of the items that wait in a backoff; such an item is
// never in a host's heap.
func (s *hosts) init(items *spots) {
	s.items, s.heads.spots, s.names = items, new(spots), map[string]*host{}
	s.named("")
}

// named returns the host of that name.
func (s *hosts) named(name string) *host {
	if h, known := s.names[name]; known {
		return h
	}
	var h *host
	if n := len(s.free); n > 0 {
		h = s.all[s.free[n-1]]
		s.free = s.free[:n-1]
	} else {
		h = &host{ready: heap{spots: s.items}, aside: heap{spots: s.items}, index: uint32(len(s.all))}
		s.all = append(s.all, h)
		s.heads.spots.grow()
	}
	h.name = name
	s.names[name] = h
	return h
}

// join counts a request that begins to wait, and returns its host.
func (s *hosts) join(of func(*Request) string, r *Request) *host {
	h := s.all[0]
	if of != nil {
		h = s.named(of(r))
	}
	h.waiting++
	return h
}

// leave counts a request that no longer waits.
func (s *hosts) leave(h *host) {
	h.waiting--
	s.forget(h)
}

// forget frees a host without requests that is not held. The host "" stays: most queues have no
// other.
func (s *hosts) forget(h *host) {
	if h.waiting > 0 || h.held || h.alone || h.index == 0 {
		return
	}
	delete(s.names, h.name)
	h.name = ""
	s.free = append(s.free, h.index)
}

func (s *hosts) push(h *host, place mono.Time, seq uint64, i uint32) {
	if h.ready.push(place, seq, i); s.items.of[i] == 0 {
		s.lead(h)
	}
}

func (s *hosts) remove(h *host, i uint32, aside bool) {
	first, from := s.items.of[i] == 0, &h.ready
	if aside {
		from = &h.aside
	}
	if from.remove(i); first {
		s.lead(h)
	}
}

// lead sorts a host anew, because its first request has changed, or because it was held or
// released.
func (s *hosts) lead(h *host) {
	spot, first := s.heads.spots.of[h.index], h.first()
	switch {
	case first == nil && spot < 0:
	case first == nil:
		s.heads.remove(h.index)
	case spot < 0:
		s.heads.push(first.at, first.seq, h.index)
	default:
		s.heads.move(first.at, first.seq, h.index)
	}
}

// first returns the host whose first request is the head, or nil.
func (s *hosts) first() *host {
	if len(s.heads.entries) == 0 {
		return nil
	}
	return s.all[s.heads.first().index]
}

// Hold holds all requests to a host, present and future: none becomes the head until Release. They
// keep their places, and their deadlines run. Holding costs the same however many requests wait.
func (q *Queue) Hold(host string) {
	h := q.hosts.named(host)
	h.held = true
	q.hosts.lead(h)
}

// Release ends a Hold. If the host is not held it does nothing.
func (q *Queue) Release(host string) {
	if h, known := q.hosts.names[host]; known && h.held {
		h.held = false
		q.hosts.lead(h)
		q.hosts.forget(h)
	}
}

// SetAside puts a ready request into a second line of its host, which HoldAside holds by itself. It
// keeps its place, and its deadline runs. The request is in the first line again if it is retried or
// returned.
func (q *Queue) SetAside(now mono.Time, t Ticket) {
	q.tick(now)
	it := q.in(Waiting, "SetAside", t)
	if it.later || it.aside {
		return
	}
	q.hosts.remove(it.host, t.index, false)
	it.aside = true
	it.host.aside.push(it.place, it.seq, t.index)
	q.hosts.lead(it.host)
}

// HoldAside holds the requests that are set aside at a host, present and future, until
// ReleaseAside. The host's other requests go on.
func (q *Queue) HoldAside(host string) {
	h := q.hosts.named(host)
	h.alone = true
	q.hosts.lead(h)
}

// ReleaseAside ends a HoldAside. If nothing is held it does nothing.
func (q *Queue) ReleaseAside(host string) {
	if h, known := q.hosts.names[host]; known && h.alone {
		h.alone = false
		q.hosts.lead(h)
		q.hosts.forget(h)
	}
}

// WaitFor returns how many requests wait for a host, held or not, including those in a backoff.
func (q *Queue) WaitFor(host string) int {
	if h, known := q.hosts.names[host]; known {
		return h.waiting
	}
	return 0
}
