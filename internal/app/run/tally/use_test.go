package tally

import (
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// A request takes of a unit what the sent ones took on average, once twenty were sent, and until then what those that
// are left take. It is one request in any case.
func TestEach(t *testing.T) {
	left := limit.Cost{limit.Requests: 10, limit.Tokens: 500}
	for _, c := range []struct {
		use        Use
		each, sent float64 // tokens
	}{
		{Use{Remaining: left}, 50, 1},
		{Use{Remaining: left, Spent: limit.Cost{limit.Requests: 19, limit.Tokens: 1900}}, 50, 100},
		{Use{Remaining: left, Spent: limit.Cost{limit.Requests: 20, limit.Tokens: 1900}}, 95, 95},
		{Use{Spent: limit.Cost{limit.Requests: 2, limit.Tokens: 30}}, 15, 15},
		{Use{Spent: limit.Cost{limit.Requests: 1, limit.Tokens: 30}}, 30, 30},
		{Use{}, 0, 1},
	} {
		if each, sent := c.use.Each(limit.Tokens), c.use.SentEach(limit.Tokens); each != c.each || sent != c.sent {
			t.Errorf("%v: %v and %v of those sent, want %v and %v", c.use, each, sent, c.each, c.sent)
		}
		if each, sent := c.use.Each(limit.Requests), c.use.SentEach(limit.Requests); each != 1 || sent != 1 {
			t.Errorf("%v: %v and %v requests", c.use, each, sent)
		}
	}
}

// While few were sent, the cost of a request and its attempts are those of what is left, and then of what was sent.
func TestCostOfOne(t *testing.T) {
	for _, c := range []struct {
		checked        bool
		sends, ended   int
		cost           int64 // of sends
		left, inFlight int
		one, attempts  float64
	}{
		{true, 0, 0, 0, 4, 0, 2.5, 1}, {true, 19, 0, 19, 4, 0, 2.5, 1}, {true, 20, 0, 60, 4, 0, 3, 1},
		{true, 20, 0, 0, 4, 0, 1, 1}, {false, 5, 0, 15, 4, 0, 3, 1}, {true, 0, 0, 0, 0, 0, 1, 1}, {false, 0, 0, 0, 4, 0, 1, 1},
		{true, 60, 20, 60, 4, 20, 1, 2}, {true, 60, 19, 60, 4, 20, 1, 1}, {true, 20, 20, 60, 4, 5, 3, 1},
	} {
		n := New(0, figures{})
		n.Checked, n.Totals.Sends, n.Totals.Cost = c.checked, c.sends, c.cost
		n.Totals.Done, n.Totals.Dead, n.Totals.Input = c.ended-c.ended/2, c.ended/2, c.left+c.ended
		n.Uses = []Use{{Remaining: limit.Cost{limit.Requests: 6}}, {Remaining: limit.Cost{limit.Requests: 4}}}
		if one, attempts := n.CostOfOne(), n.Attempts(c.inFlight); one != c.one || attempts != c.attempts {
			t.Errorf("%+v: a request costs %v, in %v attempts", c, one, attempts)
		}
	}
}

// The first place of an id has it. A check and the sending after it find the same request there; a second place is
// wrong, and so is another request at the first.
func TestSeen(t *testing.T) {
	tally := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	at := func(line int, digest format.Digest) *format.Request {
		return &format.Request{ID: "a", Hash: format.HashOf("a"), Line: line, Digest: digest}
	}
	for _, c := range []struct {
		what    string
		q       *format.Request
		checked bool
		want    seen
	}{
		{"the first", at(3, "01"), false, seen{Right: true}},
		{"the same, checked", at(3, "01"), true, seen{Right: true, Line: 3}},
		{"another place", at(4, "01"), false, seen{Line: 3}},
		{"another request, checked", at(3, "02"), true, seen{Line: 3, Other: true}},
	} {
		got := tally.Seen(c.q, c.checked, nil)
		if got.here, got.place = 0, 0; got != c.want { // here is a sum of both, and place is that of c.q
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
