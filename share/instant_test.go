package share

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// The two clocks are read one after the other, with a varying time between. One instant still has
// one value, until the clocks are further apart than that explains, as after a sleep of the
// machine.
func TestAnInstantIsSaidAsOne(t *testing.T) {
	const ms = mono.Time(time.Millisecond)
	m := new(Member)
	for i, c := range []struct{ now, at, p, want mono.Time }{
		{1000 * ms, 9000 * ms, 2000 * ms, 8000 * ms},
		{1001*ms + 300, 9000 * ms, 2001 * ms, 8000 * ms},
		{1002 * ms, 9000 * ms, 2002*ms + 900, 8000 * ms},
		{1003 * ms, 9001 * ms, 2003*ms + 900, 8001*ms - 900},
		{5000 * ms, 9001 * ms, 7000 * ms, 7001 * ms},
		{7001*ms + 500, 9001 * ms, 9000*ms + 999_999, 7001*ms + 500},
	} {
		if got := m.instantLocked(c.now, c.at, c.p); got != c.want {
			t.Errorf("%d: %v, want %v", i, time.Duration(got), time.Duration(c.want))
		}
	}
}
