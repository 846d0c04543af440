package provider

import (
	"cmp"
	"strings"
	"time"
)

// stated describes a limit in header fields: the limit, its remainder or usage, and its reset.
type stated struct {
	// names is the name of the fields, with * for Limit, Remaining, Used and Reset. The four below
	// replace single names; "-": there is no such field.
	names                         string
	limit, remaining, used, reset string
	// is has the documented facts about the limit; a field's value is preferred.
	is Policy
	// called is the field with its name. window is the field with its window, in units of per
	// (seconds, if zero).
	called, window string
	per            time.Duration
	// nth is the place of the number in a field of several, separated by commas; the first is 1.
	// Zero: there is only one.
	nth int
	// unit is the unit of a number that is small enough to count from now. If zero, seconds.
	unit time.Duration
	// part means that at its reset there is more, but not everything.
	part bool
	// full means a bucket whose reset is documented as the instant when it is full. It is refilled
	// evenly until then.
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

// length reads the length of a window. 0: the field does not state it.
func (r *reading) length(name string, unit time.Duration) time.Duration {
	v, ok := r.field(name)
	if !ok {
		return 0
	}
	v, _, _ = strings.Cut(v, ",") // if the field is there twice, the first
	d, err := scaled(v, cmp.Or(unit, time.Second))
	if err != nil {
		d, err = goDuration(v)
	}
	d, _ = r.bound(name, v, d, err)
	return d
}

// next returns when the next interval of the server's clock begins.
func (r *reading) next(window time.Duration) time.Time {
	return r.now.Add(r.clock.Truncate(window).Add(window).Sub(r.clock))
}

// nth reads a count: the n-th of several, or the only one if n is 0.
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
