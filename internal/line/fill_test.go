package line_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/line"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// A hundred in any 10 s, of which one that went at 0 s has some until 10 s, and one that went at 8 s all others until 18 s, when the
// first in line goes.
func TestFillWakes(t *testing.T) {
	for _, c := range []struct {
		name         string
		early        int64 // free from 10 s on
		first        int64
		behind       []int64
		at10, at18   string
		wake, wake10 mono.Time
	}{
		{"a 20 goes when it may, and delays nobody", 20, 80, []int64{20}, "b", "a", 10 * second, 18 * second},
		{"a 25 would delay the first: nobody wakes for it", 25, 80, []int64{25}, "", "a", 18 * second, 18 * second},
		{"the first that may, not the first in line", 20, 80, []int64{30, 20}, "c", "a", 10 * second, 18 * second},
		{"all that may", 20, 80, []int64{15, 10, 5}, "bd", "a", 10 * second, 18 * second},
		{"the fourth behind the first is looked at", 20, 80, []int64{90, 90, 90, 20}, "e", "a", 10 * second, 18 * second},
		{"the fifth is not", 20, 80, []int64{90, 90, 90, 90, 20}, "", "a", 18 * second, 18 * second},
	} {
		l := line.New(line.Config{Fill: 4})
		r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: 10 * time.Second, Margin: -1})
		if err != nil {
			t.Fatal(err)
		}
		lane := l.Lane(line.LaneConfig{}, []*line.Limit{l.Limit(r, line.Sharing{})})
		goes := func(now mono.Time, n int64) {
			cost := limit.Cost{limit.Requests: n}
			pass, at := l.Try(now, lane, &cost, &cost)
			if at > now {
				t.Fatalf("%s: %d at %v goes at %v", c.name, n, now, at)
			}
			l.Settle(now, pass, accepted)
		}
		goes(0, c.early)
		goes(8*second, 100-c.early)
		for i, n := range append([]int64{c.first}, c.behind...) {
			u := ticket(string(rune('a'+i)), 8*second)
			u.Cost = limit.Cost{limit.Requests: n}
			want(t, l.Enter(8*second, lane, u), line.Waiting)
		}
		got := [...]any{next(l, 8*second), l.Wake(), next(l, 10*second), l.Wake(), next(l, 18*second-1), next(l, 18*second)}
		if got != [...]any{"", c.wake, c.at10, c.wake10, "", c.at18} {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Who goes ahead of the first is counted as anybody who goes.
func TestFillIsCounted(t *testing.T) {
	l := line.New(line.Config{Fill: 4})
	lane := l.Lane(line.LaneConfig{}, []*line.Limit{l.Limit(rolling(t, 100, 10*time.Second), line.Sharing{})})
	for i, n := range []int64{90, 80, 10} { // the last has room, and the one before it has to wait for the first
		u := ticket("", 0)
		u.Cost = limit.Cost{limit.Requests: n}
		l.Enter(0, lane, u)
		next(l, 0)
		if u.State == line.Granted {
			l.Settle(0, u.Pass, accepted)
		}
		want(t, lane.Granted(), []uint64{1, 1, 2}[i])
	}
}

// A lane may be filled where others of its Line are not.
func TestFillOfALane(t *testing.T) {
	for _, c := range []struct {
		line, lane int
		want       string
	}{{0, 0, ""}, {0, 4, "b"}, {4, 0, "b"}, {4, 1, "b"}} {
		l := line.New(line.Config{Fill: c.line})
		lane := l.Lane(line.LaneConfig{Fill: c.lane}, []*line.Limit{l.Limit(rolling(t, 100, 10*time.Second), line.Sharing{})})
		first := limit.Cost{limit.Requests: 90}
		pass, _ := l.Try(0, lane, &first, &first)
		l.Settle(0, pass, accepted)
		for i, n := range []int64{80, 10} {
			u := ticket(string(rune('a'+i)), 0)
			u.Cost = limit.Cost{limit.Requests: n}
			want(t, l.Enter(0, lane, u), line.Waiting)
		}
		if got := next(l, 0); got != c.want {
			t.Errorf("Fill %d of the line, %d of the lane: %q goes ahead, want %q", c.line, c.lane, got, c.want)
		}
	}
}
