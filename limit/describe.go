package limit

import "github.com/paceline-go/paceline/limit/mono"

// Describer is a Limiter that describes its limits, for people and for Fitted. All limiters of this
// package that are not made of others are Describers.
type Describer interface {
	Limiter
	// Rules returns the limits, always as many and in the same order. It is cheap. A Fitted tests no
	// rule whose Counts is CountsSomehow.
	Rules() []Rule
	// AppendUsage appends the usage at now of each limit in it, always as many and in the same
	// order. It changes nothing that Ready or another method reads. A Usage whose Allowed is 0
	// counts nothing, and is there for its Requests and its Retreat. Spacing and Cooldown append
	// nothing.
	AppendUsage(to []Usage, now mono.Time) []Usage
}

// Rules returns the limits of l, always as many and in the same order. ok is false if a part of l
// does not describe its limits.
func Rules(l Limiter) (all []Rule, ok bool) {
	ok = l != nil
	visit(l, nil, func(l Limiter, name *string) bool {
		d, is := l.(Describer)
		if !is {
			_, is := l.(wrapper)
			ok = ok && is
			return !is
		}
		for _, rule := range d.Rules() {
			if name != nil {
				rule.Name = *name
			}
			all = append(all, rule)
		}
		return true
	})
	return all, ok
}

// Rates returns the Rules of l that bound the long run: those with a window. ok is false if a part
// of l does not know how it counts. Then there are none.
func Rates(l Limiter) (rates []Rule, ok bool) {
	all, ok := Rules(l)
	for _, r := range all {
		if ok = ok && r.Counts != CountsSomehow; ok && r.Per > 0 {
			rates = append(rates, r)
		}
	}
	if !ok {
		return nil, false
	}
	return rates, true
}

// Explain returns the instant of Ready, and the limit behind it: the part of l that is ready last,
// and the first of several such. Of a part with several Rules, it is the first that the cost
// exceeds, or else the first that counts the cost. If the cost may go now, the Rule means nothing.
// The name is "limit" if the part does not describe its limits. Explain changes nothing.
func Explain(l Limiter, now mono.Time, cost Cost) (mono.Time, Rule) {
	at, r := l.Ready(now, cost), Rule{Name: "limit"}
	switch l := l.(type) {
	case *named:
		_, r = Explain(l.Limiter, now, cost)
		r.Name = l.name
	case *Fitted:
		r = l.binds(now, cost)
	case Describer:
		r = binding(l.Rules(), &cost)
	case wrapper:
		last, latest := Limiter(nil), now
		for _, part := range l.Unwrap() {
			if t := part.Ready(now, cost); last == nil || t > latest {
				last, latest = part, t
			}
		}
		if last != nil {
			_, r = Explain(last, now, cost)
		}
	}
	return at, r
}

// binding returns the rule that a cost waits for.
func binding(all []Rule, cost *Cost) Rule {
	first := -1
	for i := range all {
		n := cost.of(all[i].Unit)
		if most := all[i].Most(); most > 0 && n > most {
			return all[i]
		}
		if n > 0 && first < 0 {
			first = i
		}
	}
	if len(all) == 0 {
		return Rule{Name: "limit"}
	}
	return all[max(first, 0)]
}

// AppendUsage appends the usage of each limit in l at now, always as many and in the same order. It
// leaves out parts that count nothing, or do not describe their limits.
func AppendUsage(to []Usage, l Limiter, now mono.Time) []Usage {
	n := len(to)
	to = describe(to, l, now)
	for i := n; i < len(to); i++ { // a Usage is too large to be copied twice for each request
		if to[i].Allowed == 0 {
			continue
		}
		if i != n {
			to[n] = to[i]
		}
		n++
	}
	return to[:n]
}

// describe appends the usage of all parts of l.
func describe(to []Usage, l Limiter, now mono.Time) []Usage {
	first := len(to)
	switch l := l.(type) {
	case Describer:
		to = l.AppendUsage(to, now)
	case wrapper:
		for _, part := range l.Unwrap() {
			to = describe(to, part, now)
		}
	}
	switch l := l.(type) {
	case *Fitted:
		l.marks(to[first:])
	case *named:
		for i := range to[first:] {
			to[first+i].Limit = l.name
		}
	}
	return to
}

// Unsettled returns how many requests are open in l. At 0 nothing is open, or l does not know.
func Unsettled(l Limiter) (n int) {
	for _, u := range describe(nil, l, 0) {
		n = max(n, u.Requests) // all parts admit together
	}
	return n
}

// Retreats returns the opt-ins of l that are not in use at now, in no order; usually none. To report
// retreats, call it now and then: once a minute is often enough.
func Retreats(l Limiter, now mono.Time) (all []Retreat) {
	for _, u := range describe(nil, l, now) {
		if r := u.Retreat; r.Option != "" {
			r.Limit = u.Limit
			all = append(all, r)
		}
	}
	return all
}
