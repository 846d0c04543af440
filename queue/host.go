package queue

import "github.com/paceline-go/paceline/mono"

// hosts are where requests go to: for each what is ready, and a heap of those that are not held by their first request. So
// to hold a host costs the same whatever waits for it.
type hosts struct {
	all   []*host
	free  []uint32
	names map[string]*host
	heads heap // of hosts with something ready that are not held: by the place of its first
	items *spots
}

type host struct {
	name    string
	ready   heap // by place
	waiting int  // in ready, or in a backoff
	index   uint32
	held    bool
}

// init makes the host "". items are the spots of what waits in a backoff, which is never in a host's heap.
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
		h = &host{ready: heap{spots: s.items}, index: uint32(len(s.all))}
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

// leave counts one that no longer waits.
func (s *hosts) leave(h *host) {
	h.waiting--
	s.forget(h)
}

// forget frees a host of which there is nothing to know. That of no name stays: most queues have no other.
func (s *hosts) forget(h *host) {
	if h.waiting > 0 || h.held || h.index == 0 {
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

func (s *hosts) remove(h *host, i uint32) {
	first := s.items.of[i] == 0
	if h.ready.remove(i); first {
		s.lead(h)
	}
}

// lead puts a host where its first request belongs, which has changed, or it is held or no more.
func (s *hosts) lead(h *host) {
	spot := s.heads.spots.of[h.index]
	if h.held || h.ready.empty() {
		if spot >= 0 {
			s.heads.remove(h.index)
		}
		return
	}
	if first := h.ready.first(); spot < 0 {
		s.heads.push(first.at, first.seq, h.index)
	} else {
		s.heads.move(first.at, first.seq, h.index)
	}
}

// first returns the host of the head, or nil.
func (s *hosts) first() *host {
	if s.heads.empty() {
		return nil
	}
	return s.all[s.heads.first().index]
}

// Hold holds all that goes to a host, and what will: none of it is the head, until Release. It waits, keeps its place, and
// its deadline runs. It costs the same whatever waits.
func (q *Queue) Hold(host string) {
	h := q.hosts.named(host)
	h.held = true
	q.hosts.lead(h)
}

// Release ends what Hold began, if it did.
func (q *Queue) Release(host string) {
	if h, known := q.hosts.names[host]; known && h.held {
		h.held = false
		q.hosts.lead(h)
		q.hosts.forget(h)
	}
}

// WaitFor returns how many requests wait for a host, held or not, those in a backoff included.
func (q *Queue) WaitFor(host string) int {
	if h, known := q.hosts.names[host]; known {
		return h.waiting
	}
	return 0
}
