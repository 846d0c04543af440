package fairshare_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// One alone has 600 in a bucket to use, a request at a time, each of which takes 100 ms. It uses
// all of it soon if nothing flows in, and keeps its reserve if something does.
func TestFairDrought(t *testing.T) {
	for _, test := range []struct {
		name       string
		perSecond  float64
		slips      bool // another sharer takes something, so that inflow shows only now and then
		least      int64
		mostServed int
	}{
		{"nothing flows in", 0, false, 0, 600},
		{"nothing flows in, and another takes some", 0, true, 0, 600},
		{"it refills", 1, false, 100, 800},
		{"it refills, and another takes some", 1, true, 100, 800},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := fair(t, fairshare.FairConfig{Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour})
			level, served, last := 600.0, 0, mono.Time(0)
			for now := mono.Time(0); now < at(5*time.Minute) && level >= 1; {
				now = f.Ready(now, limit.One)
				level = min(3600, level+test.perSecond*now.Sub(last).Seconds())
				last = now
				lease := limittest.Admit(f, now, limit.One)
				if served++; test.slips && served%3 == 0 && level > 101 {
					level--
				}
				level--
				now = now.Add(100 * ms)
				f.Settle(now, lease, &limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: int64(level)}})
			}
			if int64(level) < test.least || test.least == 0 && level >= 1 || served > test.mostServed {
				t.Errorf("%.1f are left and %d were served by %v", level, served, last)
			}
		})
	}
}

// Little is left in a bucket without inflow, and no sharer takes the last at once: the less there
// is the longer it waits.
func TestFairAtTheEndOfADrought(t *testing.T) {
	f := fair(t, fairshare.FairConfig{Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour, Start: 10 * time.Second})
	now, waited := mono.Time(0), map[int64]time.Duration{}
	for left := int64(200); left >= 1; left-- {
		now = now.Add(3 * time.Second)
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Accepted, Known: 1, Remaining: limit.Cost{limit.Requests: left}})
		waited[left] = f.Sleep()
	}
	if !(waited[1] > 2*waited[4] && waited[4] > 2*waited[9] && waited[9] > 0 && waited[1] < 10*ms) {
		t.Errorf("with 9 left the next waits for %v, with 4 for %v, with the last for %v", waited[9], waited[4], waited[1])
	}
}
