package queue

import "github.com/paceline-go/paceline/limit/mono"

// hosts are the destinations of requests. The requests of one part (see Request.Resource) to one host
// are a line, with a heap of its ready requests. A part has a heap of its lines that are not held, by
// their first request. So holding a host costs the same however many requests wait for it.
type hosts struct {
	all   []*host
	free  []uint32
	names map[string]*host
	lines []*line
	spare []uint32 // free lines
	parts []*part  // the first is that of requests without a Resource; one without waiting requests may get another name
	of    map[string]*part
	items *spots
	spots *spots // of lines, among the heads of their part
}

type host struct {
	name    string
	lines   []*line
	waiting int // how many are in its lines, or in a backoff
	index   uint32
	held    bool
	alone   bool // those aside are held
}

type line struct {
	host    *host
	part    *part
	ready   heap // ready requests, by place
	aside   heap // ready requests that were set aside, by place
	waiting int  // how many are in ready, aside, or in a backoff
	index   uint32
}

// part is the requests that count in one resource.
type part struct {
	name    string
	heads   heap // the lines that are not held and have ready requests, by the place of the first
	waiting int
}

// first returns the first request that is not held, or nil.
func (l *line) first() *entry {
	switch {
	case l.host.held:
		return nil
	case len(l.aside.entries) == 0 || l.host.alone:
		if len(l.ready.entries) == 0 {
			return nil
		}
		return l.ready.first()
	case len(l.ready.entries) == 0 || l.aside.first().before(l.ready.first()):
		return l.aside.first()
	}
	return l.ready.first()
}

// init makes the host "", and its line without a resource. items are the spots of the items that wait in
// a backoff; such an item is never in a line's heap.
func (s *hosts) init(items *spots) {
	s.items, s.spots, s.names, s.of = items, new(spots), map[string]*host{}, map[string]*part{}
	s.line(s.named(""), s.part(""))
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
		h = &host{index: uint32(len(s.all))}
		s.all = append(s.all, h)
	}
	h.name = name
	s.names[name] = h
	return h
}

// part returns the part of that name.
func (s *hosts) part(name string) *part {
	if p, known := s.of[name]; known {
		return p
	}
	var p *part
	for _, idle := range s.parts[min(1, len(s.parts)):] {
		if idle.waiting == 0 {
			p = idle
			delete(s.of, p.name)
			break
		}
	}
	if p == nil {
		p = &part{heads: heap{spots: s.spots}}
		s.parts = append(s.parts, p)
	}
	p.name = name
	s.of[name] = p
	return p
}

// line returns the line of a part to a host.
func (s *hosts) line(h *host, p *part) *line {
	for _, l := range h.lines {
		if l.part == p {
			return l
		}
	}
	var l *line
	if n := len(s.spare); n > 0 {
		l = s.lines[s.spare[n-1]]
		s.spare = s.spare[:n-1]
	} else {
		l = &line{ready: heap{spots: s.items}, aside: heap{spots: s.items}, index: uint32(len(s.lines))}
		s.lines = append(s.lines, l)
		s.spots.grow()
	}
	l.host, l.part = h, p
	h.lines = append(h.lines, l)
	return l
}

// join counts a request that begins to wait, and returns its line.
func (s *hosts) join(of func(*Request) string, r *Request) *line {
	l := s.lines[0]
	if of != nil || r.Resource != "" {
		h := s.all[0]
		if of != nil {
			h = s.named(of(r))
		}
		p := s.parts[0]
		if r.Resource != "" {
			p = s.part(r.Resource)
		}
		l = s.line(h, p)
	}
	l.waiting++
	l.host.waiting++
	l.part.waiting++
	return l
}

// leave counts a request that no longer waits.
func (s *hosts) leave(l *line) {
	h := l.host
	l.waiting--
	h.waiting--
	l.part.waiting--
	if l.waiting == 0 && l.index > 0 {
		for i, other := range h.lines {
			if other == l {
				last := len(h.lines) - 1
				h.lines[i], h.lines[last] = h.lines[last], nil
				h.lines = h.lines[:last]
				break
			}
		}
		l.host, l.part = nil, nil
		s.spare = append(s.spare, l.index)
	}
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

func (s *hosts) push(l *line, place mono.Time, seq uint64, i uint32) {
	if l.ready.push(place, seq, i); s.items.of[i] == 0 {
		s.lead(l)
	}
}

func (s *hosts) remove(l *line, i uint32, aside bool) {
	first, from := s.items.of[i] == 0, &l.ready
	if aside {
		from = &l.aside
	}
	if from.remove(i); first {
		s.lead(l)
	}
}

// lead sorts a line anew among those of its part, because its first request has changed, or because
// its host was held or released.
func (s *hosts) lead(l *line) {
	spot, first := s.spots.of[l.index], l.first()
	switch {
	case first == nil && spot < 0:
	case first == nil:
		l.part.heads.remove(l.index)
	case spot < 0:
		l.part.heads.push(first.at, first.seq, l.index)
	default:
		l.part.heads.move(first.at, first.seq, l.index)
	}
}

// leads is lead for all lines of a host.
func (s *hosts) leads(h *host) {
	for _, l := range h.lines {
		s.lead(l)
	}
}

// first returns the first of the requests that are not held, or nil.
func (s *hosts) first() (first *entry) {
	for _, p := range s.parts {
		if len(p.heads.entries) > 0 && (first == nil || p.heads.first().before(first)) {
			first = p.heads.first()
		}
	}
	if first == nil {
		return nil
	}
	return s.lines[first.index].first()
}

// Hold holds all requests to a host, present and future: none becomes the head until Release. They
// keep their places, and their deadlines run. Holding costs the same however many requests wait.
func (q *Queue) Hold(host string) {
	h := q.hosts.named(host)
	h.held = true
	q.hosts.leads(h)
}

// Release ends a Hold. If the host is not held it does nothing.
func (q *Queue) Release(host string) {
	if h, known := q.hosts.names[host]; known && h.held {
		h.held = false
		q.hosts.leads(h)
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
	q.hosts.remove(it.line, t.index, false)
	it.aside = true
	it.line.aside.push(it.place, it.seq, t.index)
	q.hosts.lead(it.line)
}

// HoldAside holds the requests that are set aside at a host, present and future, until
// ReleaseAside. The host's other requests go on.
func (q *Queue) HoldAside(host string) {
	h := q.hosts.named(host)
	h.alone = true
	q.hosts.leads(h)
}

// ReleaseAside ends a HoldAside. If nothing is held it does nothing.
func (q *Queue) ReleaseAside(host string) {
	if h, known := q.hosts.names[host]; known && h.alone {
		h.alone = false
		q.hosts.leads(h)
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

// WaitForResource returns how many requests of a Resource wait, including those in a backoff.
func (q *Queue) WaitForResource(name string) int {
	if p := q.hosts.of[name]; p != nil {
		return p.waiting
	}
	return 0
}

// OneResource reports whether all requests so far were without a Resource.
func (q *Queue) OneResource() bool { return len(q.hosts.parts) == 1 }

// Resources calls f with each Request.Resource of which requests wait; empty: of those without one. f may
// take requests, and end them.
func (q *Queue) Resources(f func(resource string)) {
	for i := range q.hosts.parts {
		if p := q.hosts.parts[i]; i == 0 || p.waiting > 0 {
			f(p.name)
		}
	}
}

// HeadOf is Head among the requests of one Resource.
func (q *Queue) HeadOf(now mono.Time, resource string) (Ticket, *Request, bool) {
	q.tick(now)
	p := q.hosts.parts[0]
	if resource != "" {
		p = q.hosts.of[resource]
	}
	if p == nil || len(p.heads.entries) == 0 {
		return Ticket{}, nil, false
	}
	return q.ticket(q.hosts.lines[p.heads.first().index].first())
}
