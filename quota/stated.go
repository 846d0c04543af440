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
	// nth is which of the numbers it is where a field has several, separated by commas, from 1 on. Zero: there is one.
	nth int
	// unit is what a number counts that is short enough to be from now. If zero, seconds.
	unit time.Duration
	// part: at its reset there is more, but not everything again.
	part bool
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
	if !remaining.OK && used.OK && p.Limit > 0 {
		remaining = Count{max(0, p.Limit-used.N), true}
	}
	r.add(p, ServiceLimit{Remaining: remaining, Used: used, Reset: reset, Whole: !s.part})
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
