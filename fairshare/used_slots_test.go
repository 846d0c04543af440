package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// What was used of a stated limit is remembered in a few slots. Each has its sum, when it began, and when it
// was last used: a limiter that is made anew counts all of it, and none of it for too short or too long.
func TestUsedSlots(t *testing.T) {
	const window = time.Minute
	r := &rule{stated: limit.Rule{N: 60, Per: window, Unit: limit.Tokens}}
	if past := r.past(); len(past) > 0 {
		t.Errorf("nothing was used, and %v is remembered", past)
	}
	wide := mono.Time(window / (slots - 1))
	for _, at := range []mono.Time{0, wide - 1, wide, wide, 3 * wide} {
		r.note(at, &limit.Cost{limit.Tokens: 5, limit.Requests: 1})
	}
	r.note(3*wide+1, &limit.Cost{limit.Requests: 1}) // of no tokens
	want := []limit.Past{
		{Sent: 0, At: wide - 1, Cost: limit.Cost{limit.Tokens: 10}, Result: limit.Accepted},
		{Sent: wide, At: wide, Cost: limit.Cost{limit.Tokens: 10}, Result: limit.Accepted},
		{Sent: 3 * wide, At: 3 * wide, Cost: limit.Cost{limit.Tokens: 5}, Result: limit.Accepted},
	}
	got := r.past()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want {
		if got[i].Sent != want[i].Sent || got[i].At != want[i].At || got[i].Cost != want[i].Cost || got[i].Result != want[i].Result {
			t.Errorf("slot %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
