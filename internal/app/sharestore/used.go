package sharestore

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// used writes how much of each rule is used, with the grants of all nodes. There are no lines for a limiter that
// cannot be made again from its configuration.
func (s *Seen) used() (lines []string) {
	if s.book.OfPlaces() {
		var taken, most int64
		for i := range s.book.Nodes {
			if e := &s.book.Nodes[i]; e.Until.Add(s.kept()) > s.now {
				taken += e.Open[limit.Requests]
			}
		}
		fmt.Sscanf(s.book.Configuration, "Concurrency: %d", &most)
		return []string{fmt.Sprintf("used: %s of %s requests at once", text.Thousands(taken), text.Thousands(most))}
	}
	l := remade(s.book.Configuration)
	if l == nil {
		return nil
	}
	open := make([]limit.Sent, len(s.book.Nodes))
	for i := range open {
		open[i] = limit.Sent{At: mono.Min, Number: uint64(i + 1), Cost: s.book.Nodes[i].Open}
		l.Admit(&open[i])
	}
	if len(s.book.State) > 0 && limit.Restore(l, s.book.State) != nil {
		return nil
	}
	for i := range open { // the grants of a node that was given up count from then on
		if ago := s.now.Sub(s.book.Nodes[i].Until.Add(s.kept())); ago > 0 {
			l.Settle(s.now, &open[i], &limit.Outcome{Result: limit.Failed, ArrivedAgo: ago})
		}
	}
	for _, u := range limit.AppendUsage(nil, l, s.now) {
		used, of := text.Thousands(u.Used), fmt.Sprintf("%s %v", text.Thousands(u.Allowed), u.Unit)
		if u.Unit == limit.Money {
			used, of = text.Dollars(float64(u.Used)/1e6), text.Dollars(float64(u.Allowed)/1e6)
		}
		if u.Allowed == u.PerWindow { // not the size of a bucket
			of += " per " + text.Span(u.Window)
		}
		lines = append(lines, "used: "+used+" of "+of)
	}
	return lines
}

// remade is a new limiter with the configuration of a limit from a flag or a file. It is nil for any other one.
func remade(configuration string) limit.Limiter {
	if parts := partsOf(configuration); parts != nil {
		var all []limit.Limiter
		for _, part := range parts {
			l := remade(part)
			if l == nil {
				return nil
			}
			all = append(all, l)
		}
		return limit.NewAll(all...)
	}
	kind, rule, _ := strings.Cut(configuration, ": ")
	count, rest, _ := strings.Cut(rule, " per ")
	number, _, _ := strings.Cut(count, " ")
	is, arrivals := rate.Limit{Bucket: kind == "Bucket"}, limit.Arrivals{}
	is.N, _ = rate.ParseCount(number)
	for i, field := range strings.Split(rest, ", ") {
		burst, bucket := strings.CutPrefix(field, "burst ")
		zone, clock := strings.CutPrefix(field, "of the clock of ")
		switch {
		case i == 0:
			is.Per, _ = time.ParseDuration(field)
		case bucket:
			is.Burst, _ = rate.ParseCount(burst)
		case clock:
			is.Zone = zone
		case field == "alone":
			is.Alone = true
		case field == "rejects free":
			arrivals.RejectsFree = true
		}
	}
	for unit := range len(limit.Cost{}) {
		is.Unit = limit.Unit(unit)
		if l, err := is.Limiter(arrivals); err == nil && limit.Configuration(l) == configuration {
			return l
		}
	}
	return nil
}

// partsOf are the configurations of the parts of an All; nil: it is none.
func partsOf(configuration string) []string {
	inner, is := strings.CutPrefix(configuration, "All [")
	if !is || !strings.HasSuffix(inner, "]") {
		return nil
	}
	return strings.Split(strings.TrimSuffix(inner, "]"), "; ")
}
