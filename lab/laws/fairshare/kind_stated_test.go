package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
)

// A kind that the provider's documentation tells is worth what one is that is configured. Only that of the same limit counts, and none if
// there are two.
func TestFairHearsTheKind(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  fleet.Quota
		n      int
		kind   fairshare.Kind
		counts limit.Counting
		better float64 // by how many percent less the shares of those who know differ
	}{
		{"windows of a minute", fleet.Quota{Kind: fleet.Calendar, Limit: 75, Window: minute}, 10, fairshare.FixedWindow, limit.CountsWindow, 60},
		{"windows", fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: hour}, 50, fairshare.FixedWindow, limit.CountsWindow, 5},
		{"silent windows", fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: hour, Silent: true}, 50, fairshare.FixedWindow, limit.CountsWindow, 0.5},
		{"a silent bucket of many", fleet.Quota{Kind: fleet.Bucket, Limit: 600, Window: minute, Full: true, Silent: true}, 60, fairshare.TokenBucket, limit.CountsBucket, 0},
		{"rolling windows", fleet.Quota{Kind: fleet.Rolling, Limit: 4500, Window: hour}, 10, fairshare.RollingWindow, limit.CountsRolling, 20},
		{"a bucket", fleet.Quota{Kind: fleet.Bucket, Limit: 4500, Window: hour, Full: true}, 10, fairshare.TokenBucket, limit.CountsBucket, -1},
	} {
		run := func(kind fairshare.Kind, all ...limit.Rule) (cv float64, figures string) {
			group := sharers(c.n, knows(kind))
			made := group.Strategy.NewLimiter
			group.Strategy.NewLimiter = func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
				l, err := made(p, rng)
				if err == nil {
					ability.State(l, 0, all)
				}
				return l, err
			}
			f := must(fleet.New(fleet.Scenario{Duration: 3 * c.quota.Window, Seed: 1001, Server: c.quota, Groups: []fleet.Group{group}}))
			f.Advance(3 * c.quota.Window)
			r := f.Report()
			return r.SharesSteady.CV, fmt.Sprintf("%.3f %% refused, CV of shares %.2f %%, unused %.2f %%", r.Steady.Percent, r.SharesSteady.CV, r.UnusedPercent)
		}
		stated := func(n int64, per time.Duration, u limit.Unit, counts limit.Counting) limit.Rule {
			return limit.Rule{Unit: u, N: n, Per: per, Counts: counts}
		}
		other := limit.CountsBucket
		if c.counts == other {
			other = limit.CountsRolling
		}
		n, per := c.quota.Limit, c.quota.Window
		it, another := stated(n, per, limit.Requests, c.counts), stated(n, per, limit.Requests, other)
		untold, nothing := run(fairshare.UnknownKind)
		known, want := run(c.kind)
		if _, got := run(fairshare.UnknownKind, stated(n+1, per, limit.Requests, other), stated(n, 2*per, limit.Requests, other), stated(n, per, limit.Tokens, other),
			stated(n, per, limit.Requests, limit.CountsSomehow), it); got != want {
			t.Errorf("%s, stated: %s; configured: %s", c.name, got, want)
		}
		if _, got := run(fairshare.UnknownKind, it, another); got != nothing {
			t.Errorf("%s, two kinds stated: %s; untold: %s", c.name, got, nothing)
		}
		if t.Logf("%s: %s; untold: %s", c.name, want, nothing); known > untold-c.better {
			t.Errorf("%s: %s; want a CV that is less by %v: untold %s", c.name, want, c.better, nothing)
		}
	}
}
