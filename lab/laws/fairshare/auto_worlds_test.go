package fairshare_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// autoWorld is a server of whose limit nobody knows, and what is promised there: of one client alone, and of five.
type autoWorld struct {
	name   string
	server fleet.Quota
	states limit.Rule  // what its answers state besides; N 0: nothing
	link   latency.Law // zero: near
	one    autoPromise
	five   autoPromise
	fair   bool // Fair, which is told the limit, is in the place of Auto
	lasts  int  // how many minutes it is tried for, if more than others
}

// autoPromise is for ten minutes, or as many as the world lasts: how many are refused at most in the first minute and after it, how much of what the server allows is
// used at least in the first minute and in the last, and by how much shares differ in the last three.
type autoPromise struct {
	soon, later int
	first, last float64
	cv          float64
}

// stating is an Auto behind a stack, as a Pool has it, whose server states something with each answer.
type stating struct {
	*stack.Stack
	states limit.Rule
}

func (s *stating) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	if s.states.N > 0 {
		ability.State(s, now, []limit.Rule{s.states})
	}
	s.Stack.Settle(now, l, o)
}

// autoMinute is what happened in a minute.
type autoMinute struct {
	refused int
	percent float64 // of what the server allows in a minute in the long run
}

func (m autoMinute) String() string { return fmt.Sprintf("%d refused, %.1f %%", m.refused, m.percent) }

// lawOf is Auto behind a stack, or what else is to be compared.
func (w *autoWorld) lawOf(made func(*fairshare.Auto)) strategy.Strategy {
	return strategy.Strategy{Name: "auto", NewLimiter: func(_ strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		var law limit.Limiter
		if *fairly || w.fair {
			law = must(fairshare.NewFair(fairshare.FairConfig{Limit: w.server.Limit, Window: w.server.Window, Rng: rng}))
		} else {
			a := must(fairshare.NewAuto(fairshare.AutoConfig{Rng: rng}))
			made(a)
			law = a
		}
		pause := backoff.Policy{Base: time.Second, Max: 10 * time.Minute, Jitter: -1}
		return &stating{must(stack.New(stack.Config{Limiter: law, SlowAgain: true, Pause: pause})), w.states}, nil
	}}
}

// try has so many clients of 64 threads send what they can for a number of minutes, and returns what happened in each. cv is of the shares
// in the last three.
func (w *autoWorld) try(clients, minutes int, seed uint64) (each []autoMinute, cv float64, auto *fairshare.Auto) {
	link := w.link
	if link == (latency.Law{}) {
		link = near
	}
	const threads = 64
	f := must(fleet.New(fleet.Scenario{
		Duration: time.Duration(minutes) * minute, Seed: seed, Server: w.server,
		Groups: []fleet.Group{{Strategy: w.lawOf(func(a *fairshare.Auto) { auto = a }), Processes: clients, Threads: threads, Link: link, Spread: 3 * time.Second}},
	}))
	before, shares := f.Report(), make([]float64, clients)
	for m := range minutes {
		f.Advance(time.Duration(m+1) * minute)
		r := f.Report()
		allowed := minute.Seconds() * float64(w.server.Limit) / w.server.Window.Seconds()
		each = append(each, autoMinute{r.Limited - before.Limited, 100 * float64(r.Served-before.Served) / allowed})
		sign := map[int]float64{minutes - 4: -1, minutes - 1: 1}[m]
		for i, n := range r.Groups[0].Requests {
			shares[i/threads] += sign * float64(n-r.Groups[0].Limited[i])
		}
		before = r
	}
	return each, variation(shares), auto
}

// variation is the standard deviation as a percentage of the mean.
func variation(each []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, n := range each {
		mean += n / float64(len(each))
	}
	for _, n := range each {
		sum += (n - mean) * (n - mean) / float64(len(each))
	}
	return 100 * math.Sqrt(sum) / mean
}

var (
	hourly5000 = limit.Rule{N: 5000, Per: hour, Counts: limit.CountsWindow}
	hourly4500 = limit.Rule{N: 4500, Per: hour, Counts: limit.CountsBucket, Documented: true}
	oneSecond  = func(k fleet.QuotaKind) fleet.Quota {
		return fleet.Quota{Kind: k, Limit: 20, Window: time.Second, Full: k == fleet.Bucket, Silent: true}
	}
)

var autoWorlds = []autoWorld{
	{
		name: "github", server: fleet.Quota{Kind: fleet.Anchored, Limit: 5000, Window: hour, Headers: inWhole}, states: hourly5000,
		one: autoPromise{first: 85, last: 90}, five: autoPromise{first: 90, last: 95, cv: 2},
	},
	{ // a Gate hears nothing of what is stated
		name: "github untold", server: fleet.Quota{Kind: fleet.Anchored, Limit: 5000, Window: hour, Headers: inWhole},
		one: autoPromise{first: 85, last: 90}, five: autoPromise{first: 90, last: 95, cv: 2},
	},
	{ // it begins empty, and a reserve is built for 18 minutes
		name: "gcra", server: fleet.Quota{Kind: fleet.GCRA, Limit: 4500, Window: hour}, states: hourly4500, lasts: 20,
		one: autoPromise{soon: 1, first: 68, last: 97}, five: autoPromise{soon: 6, first: 77, last: 97, cv: 3},
	},
	{
		name: "gcra untold", server: fleet.Quota{Kind: fleet.GCRA, Limit: 4500, Window: hour},
		one: autoPromise{soon: 9, later: 9, first: 80, last: 90}, five: autoPromise{soon: 45, later: 70, first: 80, last: 90, cv: 100},
	},
	{
		name: "rolling", server: oneSecond(fleet.Rolling),
		one: autoPromise{soon: 8, later: 6, first: 80, last: 90}, five: autoPromise{soon: 60, later: 70, first: 50, last: 60, cv: 110},
	},
	{
		name: "fixed", server: oneSecond(fleet.Calendar),
		one: autoPromise{soon: 9, later: 6, first: 75, last: 90}, five: autoPromise{soon: 70, later: 70, first: 50, last: 60, cv: 110},
	},
	{
		name: "bucket", server: oneSecond(fleet.Bucket),
		one: autoPromise{soon: 9, later: 9, first: 85, last: 90}, five: autoPromise{soon: 60, later: 70, first: 80, last: 75, cv: 110},
	},
	{
		name: "far away", server: oneSecond(fleet.Rolling), link: far,
		one: autoPromise{later: 50, first: 35, last: 50}, five: autoPromise{soon: 60, later: 70, first: 30, last: 50, cv: 110},
	},
	{ // the bursts of a large bucket
		name: "large bucket", server: fleet.Quota{Kind: fleet.Bucket, Limit: 4500, Window: hour, Full: true, Silent: true},
		one: autoPromise{soon: 25, later: 15, first: 100, last: 60}, five: autoPromise{soon: 70, later: 70, first: 100, last: 80, cv: 130},
	},
}

var (
	fairly  = flag.Bool("fairly", false, "try Fair, which is told the limit, in the place of Auto, and promise nothing")
	minutes = flag.Int("minutes", 10, "how long servers of whose limit nobody knows are tried")
)

// Nobody knows the limit, and yet next to all of it is used, few requests are refused, and five share. With -v it says the figures.
func TestAutoWorlds(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 2
	}
	for _, w := range autoWorlds {
		t.Run(w.name, func(t *testing.T) {
			for _, clients := range []int{1, 5} {
				p := w.one
				if clients > 1 {
					p = w.five
				}
				sum, all := autoPromise{}, 0
				for seed := range seeds {
					each, cv, auto := w.try(clients, max(*minutes, w.lasts), 100+seed)
					first, last, later := each[0], each[len(each)-1], 0
					for _, m := range each[1:] {
						later += m.refused
					}
					sum = autoPromise{sum.soon + first.refused, sum.later + later, sum.first + first.percent, sum.last + last.percent, sum.cv + cv}
					all++
					if *fairly {
						continue
					}
					if first.refused > p.soon || later > p.later || first.percent < p.first || last.percent < p.last || cv > p.cv {
						t.Errorf("seed %d, %d clients: first minute: %v; last: %v; %d refused after the first; CV %.1f %%; want %+v; found %v", 100+seed, clients, first, last, later, cv, p, auto.Found())
					}
				}
				n := float64(all)
				t.Logf("%d clients, mean: first minute %.1f refused, %.1f %%; last %.1f %%; %.1f refused after the first; CV %.1f %%",
					clients, float64(sum.soon)/n, sum.first/n, sum.last/n, float64(sum.later)/n, sum.cv/n)
			}
		})
	}
}

// Among five, shares are as even as those of Fair, which is told the limit, and no more is refused: in the mean over seeds, as single ones
// differ.
func TestAutoIsAsFair(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty minutes of 60 fleets")
	}
	for _, w := range autoWorlds {
		if !w.server.Silent || w.server.Window > time.Second || w.name == "far away" {
			continue
		}
		mean := func(fair bool) (cv, refused float64) {
			w := w
			w.fair = fair
			const seeds = 10
			for seed := range uint64(seeds) {
				each, v, _ := w.try(5, 20, seed)
				cv += v / seeds
				for _, m := range each {
					refused += float64(m.refused) / seeds
				}
			}
			return cv, refused
		}
		autoCV, autoRefused := mean(false)
		fairCV, fairRefused := mean(true)
		t.Logf("%s: CV %.0f %%, %.0f refused; Fair: %.0f %%, %.0f", w.name, autoCV, autoRefused, fairCV, fairRefused)
		if autoCV > fairCV+12 || autoRefused > fairRefused {
			t.Errorf("%s: CV %.0f %%, %.0f refused; Fair: %.0f %%, %.0f", w.name, autoCV, autoRefused, fairCV, fairRefused)
		}
	}
}
