package sharestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
)

// Seen is the state of a limit in a store at one instant.
type Seen struct {
	Name string
	// Err says why the state is not known: the blob is damaged, or of another version.
	Err error
	// Lost means that the store may have lost data. No node gets a grant for a while.
	Lost bool

	now    mono.Time
	steady bool
	book   *node.Book
}

// Look reads the state of a limit, and changes nothing. ok is false if there is no limit of that
// name. The error is the store's.
func Look(ctx context.Context, s share.Store, name string) (seen *Seen, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	err = s.Turn(ctx, name, func(r share.Reading) ([]byte, error) {
		if ok = len(r.Blob) > 0; ok {
			seen = read(name, r)
		}
		return nil, errSeen
	})
	if !errors.Is(err, errSeen) {
		return nil, false, err
	}
	return seen, ok, nil
}

func read(name string, r share.Reading) *Seen {
	s := &Seen{Name: name, steady: r.Steady}
	if s.book, s.Err = node.Decode(r.Blob); s.Err != nil {
		return s
	}
	s.Lost = s.book.Incarnation != r.Incarnation
	s.now = mono.Time(r.Clock).Add(s.book.Shift)
	return s
}

// Active is the number of nodes that are present and send.
func (s *Seen) Active() (n int) {
	if s.book == nil || s.Lost {
		return 0
	}
	for i := range s.book.Nodes {
		if s.book.Nodes[i].Until > s.now {
			n++
		}
	}
	return n
}

// Row writes the state for a row of a table: the limit, the number of present and sending nodes,
// and the age of the last turn. A dash stands for an unknown value.
func (s *Seen) Row() (is, nodes, turn string) {
	switch {
	case s.Err != nil:
		return s.Err.Error(), "–", "–"
	case s.Lost:
		return worded(s.book.Configuration) + "; the store has been restarted since, and nobody was there", "0", "–"
	}
	turn = "not used yet"
	if s.book.Turn > 0 {
		turn = span(s.now.Sub(s.book.Latest)) + " ago"
	}
	return worded(s.book.Configuration), fmt.Sprint(s.Active()), turn
}

// worded is the configuration of limits of requests in the form of flags, such as "10/s, 500/m". Other
// limits stay as they are: their form has more than a rate.
func worded(configuration string) string {
	if parts := partsOf(configuration); parts != nil {
		for i, part := range parts {
			if parts[i] = worded(part); parts[i] == part {
				return configuration
			}
		}
		return strings.Join(parts, ", ")
	}
	var r rate.Rate
	var per string
	if n, _ := fmt.Sscanf(configuration, "Rolling: %d requests per %s margin", &r.N, &per); n < 2 || strings.ContainsAny(configuration, ";[") {
		return configuration
	}
	var err error
	if r.Per, err = time.ParseDuration(strings.TrimSuffix(per, ",")); err != nil {
		return configuration
	}
	return r.String()
}

func span(d time.Duration) string { return text.Span(max(d, 0).Round(10 * time.Millisecond)) }

// Words writes all of the state, in lines. later, if not nil, is the same limit some time later: it
// adds the rate.
func (s *Seen) Words(later *Seen) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if later != nil && later.Err == nil && s.Err == nil {
		defer func() {
			if rate, ok := s.rate(later); ok {
				last := span(later.now.Sub(s.now))
				if rate == 0 {
					lines = append(lines, "nothing was granted in the last "+last)
				} else {
					lines = append(lines, fmt.Sprintf("rate: %.3g requests a second were granted in the last %s", rate, last))
				}
			}
		}()
	}
	var version *node.VersionError
	switch {
	case errors.As(s.Err, &version):
		say("%v; who is not of that version is refused", s.Err)
		return lines
	case s.Err != nil:
		say("%v: nothing is granted for a while once somebody comes", s.Err)
		return lines
	}
	b := s.book
	if is := worded(b.Configuration); is != b.Configuration {
		say("limit: %s (%s)", is, b.Configuration)
	} else {
		say("limit: %s", is)
	}
	switch {
	case s.Lost:
		say("the store has been restarted since the last turn: whoever comes waits until nothing that was granted before " +
			"counts")
		return lines
	case b.Quiet > s.now:
		say("quiet: nothing is granted for %s, until nothing counts that may have been granted before",
			span(b.Quiet.Sub(s.now)))
	}
	if b.Turn == 0 {
		say("not used yet: requests with a key count in the limit of that key")
	} else {
		say("turns: %s, the last %s ago", text.Thousands(int64(min(b.Turn, 1<<62))), span(s.now.Sub(b.Latest)))
	}
	lines = append(lines, s.used()...)
	switch {
	case s.steady:
		say("clock: the time since the machine started, which nobody can set")
	case b.Slack > 0:
		say("clock: the store's, which was set; what it says may be behind by up to %s, which all allow for", span(b.Slack))
	default:
		say("clock: the store's")
	}
	if len(b.Nodes) == 0 {
		say("nodes: none")
	}
	parts := node.Parts(b.Nodes, s.now)
	for i := range b.Nodes {
		e := &b.Nodes[i]
		about := s.node(e, parts[i])
		if rate, ok := s.rateOf(e, later); ok {
			about = fmt.Sprintf("%.3g/s in the last %s, %s", rate, span(later.now.Sub(s.now)), about)
		}
		say("node %s: %s", e.Name, about)
	}
	return lines
}

// kept is how long after its Until a node keeps what it was granted.
func (s *Seen) kept() time.Duration {
	if s.book.OfPlaces() {
		return node.PlacesKept - node.DefaultTTL
	}
	return node.DefaultLate
}

// node writes the state of one node, and which part of the limit it gets.
func (s *Seen) node(e *node.Entry, part float64) string {
	parts := []string{costWords(&e.Open) + " granted or in flight"}
	switch {
	case e.Want > 0 && s.book.OfPlaces():
		parts = append(parts, fmt.Sprintf("waits for %s more", text.Thousands(e.Want)))
	case e.Want > 0:
		parts = append(parts, fmt.Sprintf("wants %s more, and gets %.3g %% of the limit", text.Thousands(e.Want), 100*part))
	}
	if e.Leaves > 0 {
		parts = append(parts, fmt.Sprintf("leaves %g %% free for others", float64(e.Leaves)/10))
	}
	if e.Weight != 1000 {
		parts = append(parts, fmt.Sprintf("weight %g", float64(e.Weight)/1000))
	}
	if e.Least > 0 {
		parts = append(parts, fmt.Sprintf("at least %g %% if it wants that", float64(e.Least)/10))
	}
	kept := s.kept()
	switch left := e.Until.Sub(s.now); {
	case left > 0 && s.book.OfPlaces():
	case left > -kept && s.book.OfPlaces():
		parts = append(parts, fmt.Sprintf("silent: its places stay its own for %s, unless it is seen that its process has ended",
			span(left+kept)))
	case left > 0:
		parts = append(parts, fmt.Sprintf("its grants hold for %s, and its next turn renews them", span(left)))
	case left > -kept:
		parts = append(parts, fmt.Sprintf("silent: may not send, and is given up in %s", span(left+kept)))
	default:
		parts = append(parts, "silent: given up, and taken out at the next turn of another")
	}
	return strings.Join(parts, ", ")
}

func costWords(c *limit.Cost) string {
	var all []string
	for u, n := range c {
		if n > 0 {
			all = append(all, fmt.Sprintf("%s %v", text.Thousands(n), limit.Unit(u)))
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " and ")
}

// rate is the rate of grants to the nodes that are in both states, in requests of mean cost a
// second.
func (s *Seen) rate(later *Seen) (sum float64, any bool) {
	for i := range s.book.Nodes {
		if rate, ok := s.rateOf(&s.book.Nodes[i], later); ok {
			sum, any = sum+rate, true
		}
	}
	return sum, any
}

// rateOf is rate of one node. later may be nil. Places are not granted by the second.
func (s *Seen) rateOf(e *node.Entry, later *Seen) (float64, bool) {
	if later == nil || later.Err != nil || s.book.OfPlaces() || later.now <= s.now || s.book.Era != later.book.Era {
		return 0, false
	}
	for j := range later.book.Nodes {
		if l := &later.book.Nodes[j]; l.ID == e.ID && l.Served >= e.Served {
			return float64(l.Served-e.Served) * float64(l.Counts) / 1e6 / later.now.Sub(s.now).Seconds(), true
		}
	}
	return 0, false
}
