package quota

import (
	"strings"
	"time"
)

// stated is a limit that header fields state: a limit, what remains or is used of it, and its reset.
type stated struct {
	// names is what the fields are called, with * for Limit, Remaining, Used and Reset. The four below are other names than
	// that; "-": no such field.
	names                         string
	limit, remaining, used, reset string
	// is the limit, as far as the documentation goes: a field that says otherwise goes before its Limit.
	is Policy
	// called is the field that names it, window the one that says its window, in units of per (seconds, if zero).
	called, window string
	per            time.Duration
	// nth is which of the numbers it is where a field has several, separated by commas, from 1 on. Zero: there is one.
	nth int
	// unit is what a number counts that is short enough to be from now. If zero, seconds.
	unit time.Duration
	// part: at its reset there is more, but not everything again.
	part bool
	// full: of a bucket, its reset is documented to be when it is full, and it is refilled evenly until then.
	full bool
}

func (s *stated) field(what, own string) string {
	switch own {
	case "":
		return strings.Replace(s.names, "*", what, 1)
	case "-":
		return ""
	}
	return own
}

// state reads a limit that the header fields may state.
func (r *reading) state(s *stated) {
	p := s.is
	if p.Limit == 0 {
		p.Source = Stated
	}
	limit := r.nth(s.field("Limit", s.limit), s.nth)
	remaining, used := r.nth(s.field("Remaining", s.remaining), s.nth), r.nth(s.field("Used", s.used), s.nth)
	reset := r.reset(s.field("Reset", s.reset), s.unit)
	if !limit.OK && !remaining.OK && !used.OK && reset.IsZero() {
		return
	}
	if limit.OK && limit.N == 0 {
		r.problem("%s: 0 is no limit; ignored", s.field("Limit", s.limit))
	} else if limit.OK {
		p.Limit, p.Source = limit.N, Stated
	}
	if name, ok := r.field(s.called); ok {
		p.Name = clip(name)
	}
	if w := r.length(s.window, s.per); w > 0 {
		p.Window, p.WindowSource = w, Stated
	}
	if !remaining.OK && used.OK && p.Limit > 0 {
		remaining = Count{max(0, p.Limit-used.N), true}
	}
	if reset.IsZero() && p.Rule == Calendar && (remaining.OK || used.OK) {
		reset = r.next(p.Window)
	}
	l := ServiceLimit{Remaining: remaining, Used: used, Reset: reset, Whole: !s.part}
	if s.full && p.Limit > 0 && remaining == (Count{0, true}) && !reset.IsZero() {
		l.Next = r.now.Add((reset.Sub(r.now) + time.Duration(p.Limit) - 1) / time.Duration(p.Limit)) // rounded up
	}
	r.add(p, l)
}

// length reads how long a window is. 0: it is not said.
func (r *reading) length(name string, unit time.Duration) time.Duration {
	v, ok := r.field(name)
	if !ok {
		return 0
	}
	v, _, _ = strings.Cut(v, ",") // of a field that is there twice
	if unit == 0 {
		unit = time.Second
	}
	d, err := scaled(v, unit)
	if err != nil {
		d, err = span(v)
	}
	d, _ = r.bound(name, v, d, err)
	return d
}

// next returns when the next interval of the server's clock begins.
func (r *reading) next(window time.Duration) time.Time {
	return r.now.Add(r.clock.Truncate(window).Add(window).Sub(r.clock))
}

// nth reads a count, the n-th of several; 0: the only one.
func (r *reading) nth(name string, n int) Count {
	if name == "" {
		return Count{}
	}
	v, ok := r.field(name)
	if n > 0 {
		list := strings.Split(v, ",")
		if n > len(list) {
			return Count{}
		}
		v = strings.TrimSpace(list[n-1])
	}
	if !ok || v == "" {
		return Count{}
	}
	return r.number(name, v)
}
