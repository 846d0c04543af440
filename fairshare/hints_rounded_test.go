package fairshare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// roundedUp is an answer that nothing is left. Its reset is the second in which a window has ended,
// as in an epoch.
func roundedUp(now, ends mono.Time, left int64) limit.Outcome {
	second := int64(time.Second)
	return says(left, mono.Time((int64(ends)+second-1)/second*second).Sub(now))
}

// A window of a second, stated in whole seconds, ends at the latest a second after its first answer
// arrived. A window with a later end is not the configured one, even if it is later only by
// rounding.
func TestHintsOfARoundedReset(t *testing.T) {
	second := limit.MustRolling(100, time.Second)
	hour := limit.MustRolling(100, time.Hour)
	for _, c := range []struct {
		name string
		own  limit.Limiter
		left int64 // the first answer says
		told time.Duration
		want time.Duration // from when that was read
	}{
		{"a window that is configured", second, 99, 1700 * ms, time.Second},
		{"hardly later than it could end", second, 99, time.Second + 1, time.Second},
		{"no later than it could end", second, 99, 900 * ms, 900 * ms},
		{"a whole second later", second, 99, 2 * time.Second, 2 * time.Second},
		{"far beyond it", second, 0, time.Minute, time.Minute},
		{"as much was left as is configured", second, 100, 1700 * ms, time.Second},
		{"more was left than is configured", second, 101, 1700 * ms, 1700 * ms},
		{"an hour is configured, too", limit.NewAll(second, hour), 99, 1700 * ms, 1700 * ms},
		{"another unit is configured", must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Second, Unit: limit.Weight})), 99, 1700 * ms, 1700 * ms},
		{"another unit is configured, and nothing is left", must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Second, Unit: limit.Weight})), 0, 700 * ms, 700 * ms},
		{"nothing is configured", nil, 99, 1700 * ms, 1700 * ms},
	} {
		h := must(fairshare.NewHints(fairshare.HintsConfig{Own: c.own}))
		all := limittest.Admit(h, 0, limit.Cost{c.left})
		h.Settle(at(2*ms), limittest.Admit(h, 0, limit.One), new(says(c.left, c.told)))
		h.Settle(at(3*ms), all, new(says(0, c.told-ms)))
		if got := h.Ready(at(3*ms), limit.One); got != at(2*ms+c.want) {
			t.Errorf("%s: ready at %v, want %v", c.name, got, 2*ms+c.want)
		}
	}
}

// A client that waited for the stated second would use only every other window of a second. So would
// one whose limit the server has stated, before an Auto counted as a configured limit.
func TestHintsTakeEveryWindow(t *testing.T) {
	stated := must(fairshare.NewAuto(fairshare.AutoConfig{Alone: true, Rng: rand.New(rand.NewPCG(1, 2))}))
	stated.State(0, []limit.Rule{{Name: "burst", N: 1, Per: time.Second, Unit: limit.Requests}})
	for name, own := range map[string]limit.Limiter{"configured": limit.MustRolling(1, time.Second), "stated": stated} {
		if served := everyWindow(t, own); served < 98 {
			t.Errorf("%s: %d of 100", name, served)
		}
	}
}

// everyWindow returns how many requests go in 100 windows of a server with one request in a second.
func everyWindow(t *testing.T, own limit.Limiter) (served int) {
	all := limit.NewAll(own, must(fairshare.NewHints(fairshare.HintsConfig{Own: own})))
	now, ends := at(300*ms), mono.Time(0)
	for now < at(100*time.Second) {
		lease := limittest.Admit(all, now, limit.One)
		arrived := now.Add(ms)
		if arrived < ends {
			t.Fatalf("refused at %v: the window ends at %v", arrived, ends)
		}
		ends = arrived.Add(time.Second) // it begins with a request
		served++
		now = arrived.Add(ms)
		all.Settle(now, lease, new(roundedUp(now, ends, 0)))
		now = all.Ready(now, limit.One)
	}
	return served
}
