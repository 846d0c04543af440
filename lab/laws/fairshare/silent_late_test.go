package fairshare_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Who comes in the middle of a window that says nothing but 429 has its part of the later ones, too: the last two thirds of a day, the worst
// of three seeds. Where they did not find out when windows end, somebody was served nothing for all of the day.
func TestFairComesLate(t *testing.T) {
	silent := fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: hour, Silent: true}
	after := silent
	after.Headers.RetryAfter = fleet.WholeSeconds
	for _, c := range []struct {
		name            string
		quota           fleet.Quota
		kind            fairshare.Kind
		n               int
		within          time.Duration
		cv, least, each float64 // %, of the mean, refusals of each in each window
	}{
		{"429 only", silent, fairshare.FixedWindow, 1, 0, 0.1, 1, 2},
		{"429 only", silent, fairshare.FixedWindow, 10, 10 * minute, 45, 0.3, 1.2},
		{"429 only", silent, fairshare.FixedWindow, 10, hour, 35, 0.6, 1.3},
		{"429 only", silent, fairshare.FixedWindow, 50, hour, 35, 0.6, 1.6},
		{"429 only, with Retry-After", after, fairshare.FixedWindow, 10, hour, 10, 0.9, 1.01},
		{"429 only, with Retry-After, and the kind is not known", after, fairshare.UnknownKind, 10, 10 * minute, 1, 0.98, 1.01},
		{"429 only, with Retry-After, and the kind is not known", after, fairshare.UnknownKind, 50, minute, 1, 0.98, 1.01},
		{"429 only, and the kind is not known", silent, fairshare.UnknownKind, 10, minute, 20, 0.8, 1.5},
		{"429 only, and the kind is not known", silent, fairshare.UnknownKind, 10, 10 * minute, 30, 0.5, 1.8},
		{"429 only, and the kind is not known", silent, fairshare.UnknownKind, 10, hour, 20, 0.7, 1.8},
		{"429 only, and the kind is not known", silent, fairshare.UnknownKind, 50, minute, 20, 0.8, 1.8},
	} {
		for seed := range need.Fewer[uint64](1, 3) {
			f := must(fleet.New(fleet.Scenario{Duration: 24 * hour, Seed: 2001 + seed, Server: c.quota, Groups: []fleet.Group{sharers(c.n, func(g *fleet.Group) {
				g.Params.Kind, g.Spread = c.kind, c.within
			})}}))
			f.Advance(24 * hour)
			r := f.Report()
			each := float64(r.Limited) / float64(c.n) / 24
			t.Logf("%s: %d within %v, seed %d: CV of shares %.1f %%, the poorest has %.2f of the mean, each is refused %.2f times a window, %.2f %% unused",
				c.name, c.n, c.within, 2001+seed, r.SharesSteady.CV, r.SharesSteady.Least, each, r.UnusedPercent)
			if r.SharesSteady.CV > c.cv || r.SharesSteady.Least < c.least || each > c.each || r.UnusedPercent > 5 {
				t.Errorf("want at most %v %%, at least %v, and at most %v", c.cv, c.least, c.each)
			}
		}
	}
}

// A bucket that a crowd shares refuses for long at first. Who takes it for a window for that finds out that it is none, also where a
// Retry-After tells when there is a token. These are the worst of two seeds, of the last two thirds of the time.
func TestFairFindsThatItIsNoWindow(t *testing.T) {
	for _, c := range []struct {
		limit   int64
		window  time.Duration
		n       int
		after   fleet.Precision
		refused float64 // %
	}{
		{5000, hour, 200, fleet.Untold, 10},
		{5000, hour, 200, fleet.WholeSeconds, 10},
		{75, minute, 50, fleet.Untold, 4},
		{75, minute, 50, fleet.WholeSeconds, 4},
	} {
		for seed := range uint64(2) {
			q := fleet.Quota{Limit: c.limit, Window: c.window, Silent: true, Headers: fleet.Headers{RetryAfter: c.after}}
			f := must(fleet.New(fleet.Scenario{Duration: 4 * hour, Seed: 2001 + seed, Server: q, Groups: []fleet.Group{sharers(c.n, nil)}}))
			f.Advance(4 * hour)
			r := f.Report()
			t.Logf("%d in %v, %d, Retry-After %v, seed %d: %.1f %% refused, %.1f %% unused", c.limit, c.window, c.n, c.after, 2001+seed, r.Steady.Percent, r.UnusedPercent)
			if r.Steady.Percent > c.refused || r.UnusedPercent > 1 {
				t.Errorf("want at most %v and 1", c.refused)
			}
		}
	}
}
