package tally

import (
	"fmt"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// The second reading finds what the check read, and what has changed since. It does so after many blank lines, where
// the ledger alone has the lines, as before.
func TestSeenAgain(t *testing.T) {
	one := func(id string, line, content int) *format.Request {
		return &format.Request{ID: id, Line: line, Hash: format.HashOf(id), Digest: format.Digest(fmt.Sprintf("%016x", content))}
	}
	lines := []int{1, 2, 5, 6, 5000, 5001}
	for _, asked := range []struct {
		name string
		q    *format.Request
		want seen
	}{
		{"the same", one("id5", 5, 105), seen{Right: true, Line: 5}},
		{"the first", one("id1", 1, 101), seen{Right: true, Line: 1}},
		{"the same, after a gap", one("id5001", 5001, 6101), seen{Right: true, Line: 5001}},
		{"another request", one("id5", 5, 106), seen{Line: 5, Other: true}},
		{"another request, after a gap", one("id5001", 5001, 106), seen{Line: 5001, Other: true}},
		{"another id", one("new", 5, 105), seen{Other: true}},
		{"the id of another line", one("id6", 5, 106), seen{Line: 6}},
		{"a blank line", one("id5", 4, 105), seen{Line: 5}},
		{"a line at the end", one("new", 5002, 1), seen{Other: true}},
	} {
		tally := New(0, figures{})
		for _, line := range lines {
			q := one(fmt.Sprintf("id%d", line), line, line+100)
			if line == 5001 {
				q = one("id5001", 5001, 6101)
			}
			is := tally.Seen(q, false, nil)
			if !is.Right {
				t.Fatalf("line %d is wrong: %+v", line, is)
			}
			tally.Keep(is)
		}
		if len(tally.places) != 6 {
			t.Fatalf("%d places are kept", len(tally.places))
		}
		got := tally.Seen(asked.q, true, nil)
		if got.here, got.place = 0, 0; got.Right && asked.want.Right {
			got.Line = asked.want.Line
		}
		if got != asked.want {
			t.Errorf("%s: %+v, want %+v", asked.name, got, asked.want)
		}
	}
}

// An input that was counted is finished once each of its requests has an end, whichever. One that was not counted is finished when all
// of it was read.
func TestFinished(t *testing.T) {
	for _, c := range []struct {
		done, expired, dead, before int
		want                        bool
	}{{4, 0, 0, 0, true}, {1, 1, 1, 1, true}, {1, 0, 1, 1, false}, {1, 1, 0, 1, false}, {1, 1, 1, 0, false}, {0, 1, 1, 1, false}} {
		tally := New(0, figures{})
		tally.Checked = true
		n := &tally.Totals
		n.Input, n.Done, n.Expired, n.Dead, n.SkippedDone = 4, c.done, c.expired, c.dead, c.before
		if got := tally.Finished(!c.want); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		tally.Checked = false
		if tally.Finished(true) != true || tally.Finished(false) != false {
			t.Errorf("%+v: not counted", c)
		}
	}
}
