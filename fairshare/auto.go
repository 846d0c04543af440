package fairshare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Auto is Fair for a quota of which nobody knows the limit. It finds that out, in this order:
//
//   - what the server states of its limits, or its provider documents (State, which a Pool, a transport and `paceline run` call);
//   - what answers say remains until a reset;
//   - how much is served until requests are refused.
//
// Once the quota is told it is Fair in every respect. Where only refusals tell, it finds a pace and keeps it for long, since to find out
// whether there is more costs a refusal: see silent_unknown.go. Alone it comes near to what the server allows, and beside others of its
// kind to an even share.
//
// The first request goes alone. Up to the first refusal few are in flight, and more the more were served: as many are refused at once
// where that is all there is. Where nothing is ever refused and nothing told, that is the only bound.
//
// Put it where a limit would be: into a paceline.Gate, the Key of a Pool, transport.Config; one for each partition of the server's quota.
// Not safe for concurrent use.
type Auto struct {
	fair    *Fair
	config  AutoConfig
	told    told
	stated  limit.Stated // the limit that holds now; N is 0 if there is none
	began   mono.Time
	heard   mono.Time // the latest answer
	refused int
	soon    int // of those refused, how many were in the first minute
	news    uint64
	noted   mono.Time // when news was raised last
}

// AutoConfig says what an Auto takes. Only Rng has no default.
type AutoConfig struct {
	// Unit is what is counted, as in FairConfig. If zero, limit.Requests.
	Unit limit.Unit
	// Weight, Sharers and MaxWait are as in FairConfig. Weight and Sharers matter where the server says what remains.
	Weight, Sharers float64
	MaxWait         time.Duration
	// Rng is the source of random numbers, as in FairConfig.
	Rng *rand.Rand
}

// unknownQuota is what Fair is made with until something is found: then times in tokens are in seconds, and a unit is a cost of 1.
const unknownQuota = 1

// NewAuto checks the configuration and returns an Auto that has sent nothing.
func NewAuto(c AutoConfig) (*Auto, error) {
	f, err := NewFair(c.fair(limit.Stated{Rate: limit.Rate{N: unknownQuota, Per: unknownQuota * time.Second}}))
	if err != nil {
		return nil, fmt.Errorf("fairshare: Auto: %w", err)
	}
	f.unknown = &silentUnknown{heardAt: mono.Min}
	return &Auto{fair: f, config: c, began: mono.Min, heard: mono.Min, noted: mono.Min}, nil
}

// fair is what Fair needs to know of a quota.
func (c *AutoConfig) fair(q limit.Stated) FairConfig {
	return FairConfig{
		Kind: kindOf(q.Counts), Limit: q.N, Window: q.Per, Capacity: q.Burst, Unit: c.Unit, Weight: c.Weight, Sharers: c.Sharers, MaxWait: c.MaxWait, Rng: c.Rng,
	}
}

// Senses implements limit.Sensing.
func (a *Auto) Senses() bool { return true }

// Refills implements limit.Refilling. Nothing is known of resets before the quota is.
func (a *Auto) Refills(o limit.Outcome) uint8 { return a.fair.Refills(o) }

// Sleep implements Sleeper.
func (a *Auto) Sleep() time.Duration { return a.fair.Sleep() }

// Ready implements limit.Limiter.
func (a *Auto) Ready(now mono.Time, cost limit.Cost) mono.Time { return a.fair.Ready(now, cost) }

// Admit implements limit.Limiter.
func (a *Auto) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	if a.began == mono.Min {
		a.began = now
	}
	return a.fair.Admit(now, cost)
}

// Settle implements limit.Limiter.
func (a *Auto) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	a.heard = max(a.heard, now)
	stage := a.stage()
	if o.Result == limit.Limited && !o.Elsewhere {
		a.refused++
		if now.Sub(a.began) <= time.Minute {
			a.soon++
		}
	}
	if a.stated.N == 0 || a.told.on {
		if q, ok := a.told.hear(a.config.Unit, a.stated, &o); ok {
			a.become(now, q)
		}
	}
	if a.fair.unknown != nil { // what remains is of no use where nothing else is known
		o.Known &^= 1 << a.config.Unit
	}
	a.fair.Settle(now, l, o)
	a.hears(now, o.Result == limit.Limited || a.stage() != stage)
}

// stage is how far the search by refusals is, where there is one.
func (a *Auto) stage() unknownStage {
	if a.fair.unknown == nil {
		return untouched
	}
	return a.fair.unknown.stage
}

// State implements limit.Taught: of several limits, that which allows least in the long run. What makes no sense is not heeded.
func (a *Auto) State(now mono.Time, all []limit.Stated) {
	var least limit.Stated
	for _, q := range all {
		if q.Unit != a.config.Unit || q.N < 1 || q.N > limit.MaxCost || q.Per <= 0 {
			continue
		}
		if least.N == 0 || perSecond(&q.Rate) < perSecond(&least.Rate) {
			least = q
		}
	}
	other := a.stated.N > 0 && !a.told.on && least.Limit != a.stated.Limit
	if least.N > 0 && !(other && perSecond(&least.Rate) >= perSecond(&a.stated.Rate)) {
		a.told.on = false
		a.become(now, least)
	}
}

func perSecond(r *limit.Rate) float64 { return float64(r.N) / r.Per.Seconds() }

// become makes it Fair with that quota from now on.
func (a *Auto) become(now mono.Time, q limit.Stated) {
	q.Burst = min(max(q.Burst, 0), limit.MaxCost)
	if q == a.stated {
		return
	}
	c, err := a.config.fair(q).filled()
	if err != nil {
		return
	}
	a.stated = q
	a.fair.restate(now, c)
	a.hears(now, true)
}

// restate has f share another quota. Its pace stays as it was, if it had found one.
func (f *Fair) restate(now mono.Time, c FairConfig) {
	learned := f.known || f.unknown != nil && f.unknown.stage > away
	old := f.rate * f.config.MeanCost
	f.become(c)
	f.finder, f.base, f.blind, f.known, f.unknown = finder{}, sighting{}, 0, learned, nil
	if learned {
		f.n = f.clamp(f.n * f.rate * c.MeanCost / old)
	} else {
		f.n = f.clamp(contention.Shares / c.Weight)
	}
	f.last = max(now, f.last)
	f.hold(f.last, min(f.paid.Add(f.step), f.last.Add(f.span(f.n))), f.span(f.n))
}

// become has f be of another quota, with nothing seen of it.
func (f *Fair) become(c FairConfig) {
	f.config = c
	f.rate = float64(c.Limit) / c.MeanCost / c.Window.Seconds()
	f.shape()
	f.account.longest, f.account.mean = c.MaxWait, c.MeanCost
}

// Found is what an Auto has found out.
type Found struct {
	// Rate is the limit; N 0: nothing told one. With Refusals it is what was served in the long run, to this client.
	Rate limit.Rate
	// Counts is how the server counts, as far as that is known.
	Counts limit.Counting
	// By says where it is from.
	By FoundBy
	// Soon is how many requests were refused in the first minute, and Later since.
	Soon, Later int
	// In is the time from the first request to the latest answer.
	In time.Duration
}

// FoundBy says where a limit is from.
type FoundBy uint8

const (
	ByNobody   FoundBy = iota // nothing told, and nothing was refused
	ByRefusals                // what was served until requests were refused
	ByServer                  // answers state it
	ByRemains                 // answers say what remains and until when
	ByProvider                // answers show whose they are, and the provider documents it
)

func (b FoundBy) String() string {
	if names := [...]string{"nobody", "refusals", "server", "remains", "provider"}; int(b) < len(names) {
		return names[b]
	}
	return fmt.Sprintf("found by %d", uint8(b))
}

// Found returns what is known by now.
func (a *Auto) Found() Found {
	f := Found{Rate: a.stated.Rate, Counts: a.stated.Counts, Soon: a.soon, Later: a.refused - a.soon}
	if a.began > mono.Min {
		f.In = max(0, a.heard.Sub(a.began))
	}
	u := a.fair.unknown
	switch {
	case u == nil && a.told.on:
		f.By = ByRemains
	case u == nil && a.stated.Documented:
		f.By = ByProvider
	case u == nil:
		f.By = ByServer
	case u.stage > away:
		f.By, f.Rate = ByRefusals, rounded(u.around(a.fair.n), a.config.Unit)
	case u.stage == away:
		f.By = ByRefusals
	}
	return f
}

// rounded is so many seconds per unit as a rate for people.
func rounded(pace float64, u limit.Unit) limit.Rate {
	for _, per := range [...]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if n := per.Seconds() / pace; n >= 1.95 || per == 24*time.Hour {
			return limit.Rate{Unit: u, N: max(1, int64(math.Round(min(n, limit.MaxCost)))), Per: per}
		}
	}
	return limit.Rate{}
}

// String says it for people: "about 20 requests per 1s, from refusals: 7 in the first minute, 1 since".
func (f Found) String() string {
	refusals := fmt.Sprintf("%d in the first minute, %d since", f.Soon, f.Later)
	switch {
	case f.By == ByNobody && f.Soon+f.Later > 0:
		return "no limit: too little was refused to tell: " + refusals
	case f.By == ByNobody:
		return "no limit: nothing was refused, and no answer told of one"
	case f.By == ByRefusals && f.Rate.N == 0:
		return "no rate yet: requests are refused, and none was served since: " + refusals
	case f.By == ByRefusals:
		return fmt.Sprintf("about %v, from refusals: %s", f.Rate, refusals)
	}
	text := fmt.Sprintf("%v, as %s", f.Rate, [...]string{ByServer: "the server says", ByRemains: "what answers say remains lets one think", ByProvider: "its provider documents"}[f.By])
	if f.Soon+f.Later > 0 {
		text += "; refused: " + refusals
	}
	return text
}
