package slot_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/lab/strategy/slot"
)

const ms = time.Millisecond

// trace is a world in which it is noted what clients plan.
type trace struct {
	name    string
	clients int
	rtt     time.Duration
	threads int
	make    maker
	set     func(i int, c *slot.Config)
	world   func(w *world)
}

// Processes of two versions share one quota, so a law is to do what it did: what clients planned at a few instants, as it was. Who
// changes a law on purpose writes the file anew, and reads what became of each world.
func TestLawsDoWhatTheyDid(t *testing.T) { traced(t, "traces.golden", laws) }

var laws = []trace{
	{"slot: ten begin at nothing", 10, 60 * ms, 1, newSlot, nil, func(*world) {}},
	{"slot: three begin at plenty", 3, 165 * ms, 4, newSlot, nil, func(w *world) { w.level = w.burst }},
	{"slot: a tenth of the quota", 5, 165 * ms, 1, newSlot, nil, func(w *world) { w.refill = func(float64) float64 { return w.rate / 10 } }},
	{"slot: sixteen times the quota, and then no more", 4, 165 * ms, 20, newSlot, nil, func(w *world) {
		w.refill = func(at float64) float64 {
			if at < 300 {
				return 16 * w.rate
			}
			return w.rate
		}
	}},
	{"slot: weights, and starts", 3, 2 * time.Second, 3, newSlot, func(i int, c *slot.Config) {
		c.Weight, c.Start = float64(i+1), time.Duration(i)*5*time.Second
	}, func(w *world) { w.level = 30 }},
	{"slot: nobody says what is left, for a while", 4, 60 * ms, 2, newSlot, nil, func(w *world) {
		w.says = func(level float64, k int) (int64, bool) { return int64(level), k < 40 || k > 300 }
	}},
	{"slot: lies now and then", 4, 60 * ms, 2, newSlot, nil, func(w *world) {
		w.says = func(level float64, k int) (int64, bool) {
			if k%29 < 2 {
				return 4000, true
			}
			return int64(level), true
		}
	}},
	{"headerless: ten begin at nothing", 10, 60 * ms, 1, newHeaderless, nil, func(w *world) { w.says = mute }},
	{"headerless: two begin at plenty", 2, 165 * ms, 4, newHeaderless, nil, func(w *world) { w.says, w.level, w.burst = mute, 200, 200 }},
	{"headerless: a fortieth of the quota", 4, 60 * ms, 1, newHeaderless, nil, func(w *world) {
		w.says, w.refill = mute, func(float64) float64 { return w.rate / 40 }
	}},
	{"headerless: a quota that is four times as large for a while", 3, 60 * ms, 2, newHeaderless, nil, func(w *world) {
		w.says = mute
		w.refill = func(at float64) float64 {
			if at > 200 && at < 500 {
				return 4 * w.rate
			}
			return w.rate
		}
	}},
}

// traced compares with a file.
func traced(t *testing.T, file string, traces []trace) {
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once")
	}
	var b strings.Builder
	for _, c := range traces {
		fmt.Fprintf(&b, "\n%s\n", c.name)
		w := strangers(t, 17, c.clients, c.rtt, c.threads, c.make, c.set)
		w.length = 900
		c.world(w)
		w.every = func(at float64) {
			if n := int(at); n == 1 || n == 2 || n == 4 || n == 8 || n == 16 || n%50 == 0 {
				fmt.Fprintf(&b, "%4d s: served %5d, refused %3d, sleep", n, w.served, len(w.rejects))
				for _, c := range w.clients[:min(3, len(w.clients))] {
					fmt.Fprintf(&b, " %.6g", sleep(c))
				}
				b.WriteByte('\n')
			}
		}
		w.run()
	}
	golden.Compare(t, file, b.String())
}
