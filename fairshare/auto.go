package fairshare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Auto is Fair for a quota with an unknown limit. It finds the limit out, in this order, from:
//
//   - limits that the server states or its provider documents (State, which a Pool, a transport and
//     `paceline run` call);
//   - remainders and resets in answers;
//   - the amount that is served until requests are refused.
//
// Once the limit is known, Auto is Fair in every respect. Where only refusals show it, Auto finds a
// pace and keeps it for long, since each search for more costs a refusal: see silent_unknown.go.
// Alone it comes near to the server's limit. Beside others of its kind it comes near to an even
// share.
//
// The first request goes alone. Up to the first refusal few requests are in flight, and more the
// more were served. So only as many are refused at once, where refusals are the only sign. This is
// the only bound on a server that never refuses and states nothing.
//
// Put an Auto where a limit would be: into a paceline.Gate, the Key of a Pool, transport.Config;
// one for each partition of the server's quota. Not safe for concurrent use.
type Auto struct {
	fair    *Fair
	alone   *alone // nil: strangers use the quota, too
	config  AutoConfig
	told    told
	stated  limit.Rule // the present limit; N is 0 if there is none
	began   mono.Time
	heard   mono.Time // the latest answer
	refused int
	soon    int // the number of refusals in the first minute
	news    uint64
	noted   mono.Time // when news was raised last
}

// AutoConfig configures an Auto. Only Rng has no default.
type AutoConfig struct {
	// Unit is the unit that counts, as in FairConfig. If zero, limit.Requests.
	Unit limit.Unit
	// Weight, Sharers and MaxWait are as in FairConfig. Weight and Sharers matter where answers say
	// what remains.
	Weight, Sharers float64
	MaxWait         time.Duration
	// Alone says that nobody else uses the quota. Then Auto uses stated limits at once and in full.
	// Otherwise it takes a fair share of them.
	Alone bool
	// Known are limits that the caller keeps beside the Auto, in any unit. Up to the first refusal, at
	// least as many requests are in flight as the fastest of the limits needs. So an Auto that finds
	// nothing takes nothing from them.
	Known []limit.Rule
	// Rng is the source of random numbers, as in FairConfig.
	Rng *rand.Rand
}

// unknownQuota is the limit of the Fair until a limit is found. Then times in tokens are in
// seconds, and a unit is a cost of 1.
const unknownQuota = 1

// NewAuto checks the configuration and returns an Auto that has sent nothing.
func NewAuto(c AutoConfig) (*Auto, error) {
	f, err := NewFair(c.fair(limit.Rule{N: unknownQuota, Per: unknownQuota * time.Second}))
	if err != nil {
		return nil, fmt.Errorf("fairshare: Auto: %w", err)
	}
	f.unknown = &silentUnknown{heardAt: mono.Min}
	f.unknown.known = c.fastest()
	a := &Auto{fair: f, config: c, began: mono.Min, heard: mono.Min, noted: mono.Min}
	if c.Alone {
		a.alone = newAlone()
	}
	return a, nil
}

// fair returns the configuration of a Fair for a quota.
func (c *AutoConfig) fair(q limit.Rule) FairConfig {
	return FairConfig{
		Kind: kindOf(q.Counts), Limit: q.N, Window: q.Per, Capacity: q.Burst, Unit: c.Unit, Weight: c.Weight,
		Sharers: c.Sharers, MaxWait: c.MaxWait, Rng: c.Rng,
	}
}

// fastest returns the units per second of the fastest limit beside the Auto: a limit lets all of
// its window go at once. A limit of another unit counts only if there is none of its own, since a
// request costs any amount of that.
func (c *AutoConfig) fastest() (own float64) {
	other := 0.0
	for _, q := range c.Known {
		if q.N < 1 || q.Per <= 0 {
			continue
		}
		if rate := perSecond(&q); q.Unit == c.Unit {
			own = max(own, rate)
		} else {
			other = max(other, rate)
		}
	}
	if own == 0 {
		return other
	}
	return own
}

// Resume answers limit.Replay, and does nothing, as that of Fair. For a memory, see Recall.
func (a *Auto) Resume(mono.Time, []limit.Past) {}

// Refills is that of Fair. No reset is one before the quota is known.
func (a *Auto) Refills(o *limit.Outcome) uint8 {
	units := a.fair.Refills(o)
	if a.alone != nil {
		units |= a.alone.refills(o)
	}
	return units
}

// Alone reports whether nobody else uses the quota, by the configuration.
func (a *Auto) Alone() bool { return a.config.Alone }

// Sleep implements Sleeper.
func (a *Auto) Sleep() time.Duration { return a.fair.Sleep() }

// Ready implements limit.Limiter.
func (a *Auto) Ready(now mono.Time, cost limit.Cost) mono.Time {
	if a.alone == nil {
		return a.fair.Ready(now, cost)
	}
	at := a.alone.ready(now, cost)
	if a.alone.decides(now, a.config.Unit) {
		return at
	}
	return max(at, a.fair.Ready(now, cost))
}

// Admit implements limit.Limiter.
func (a *Auto) Admit(s *limit.Sent) {
	if a.began == mono.Min {
		a.began = s.At
	}
	a.fair.Admit(s)
	if a.alone != nil {
		a.alone.admit(s)
	}
}

// Settle implements limit.Limiter.
func (a *Auto) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	a.heard = max(a.heard, now)
	stage := a.stage()
	if o.Result == limit.Limited && !o.Elsewhere {
		a.refused++
		if now.Sub(a.began) <= time.Minute {
			a.soon++
		}
	}
	if a.stated.N == 0 || a.told.on {
		if q, ok := a.told.hear(a.config.Unit, a.stated, o); ok {
			a.become(now, q)
			if a.alone != nil && a.config.Unit == limit.Requests { // a larger cost would never fit a guess
				a.alone.state(now, []limit.Rule{q}, true)
			}
		}
	}
	if a.alone != nil {
		a.alone.settle(now, s, o)
	}
	if a.fair.unknown != nil { // a remainder without a known quota is of no use
		own := *o
		own.Known &^= 1 << a.config.Unit
		a.fair.Settle(now, s, &own)
	} else {
		a.fair.Settle(now, s, o)
	}
	a.hears(now, o.Result == limit.Limited || a.stage() != stage || a.usedUp(now))
}

// usedUp reports whether stated limits let nothing go for longer than between two memories.
func (a *Auto) usedUp(now mono.Time) bool {
	return a.alone != nil && a.alone.limits.Ready(now, limit.One) > now.Add(newsEvery)
}

// stage returns how far the search by refusals is, if there is one.
func (a *Auto) stage() unknownStage {
	if a.fair.unknown == nil {
		return untouched
	}
	return a.fair.unknown.stage
}

// State reads the limits that an answer states. It takes the one that allows least in the long run,
// and ignores impossible ones. A Pool, a transport and `paceline run` call it.
func (a *Auto) State(now mono.Time, all []limit.Rule) {
	if a.alone != nil {
		a.alone.state(now, all, false)
	}
	var least limit.Rule
	for _, q := range all {
		if q.Unit != a.config.Unit || q.N < 1 || q.N > limit.MaxCost || q.Per <= 0 {
			continue
		}
		if least.N == 0 || perSecond(&q) < perSecond(&least) {
			least = q
		}
	}
	other := a.stated.N > 0 && !a.told.on && least.Name != a.stated.Name
	if least.N > 0 && !(other && perSecond(&least) >= perSecond(&a.stated)) {
		a.told.on = false
		a.become(now, least)
	}
}

func perSecond(r *limit.Rule) float64 { return float64(r.N) / r.Per.Seconds() }

// become turns it into a Fair with that quota from now on.
func (a *Auto) become(now mono.Time, q limit.Rule) {
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

// restate makes f share another quota. The pace stays as it was, if f had found one.
func (f *Fair) restate(now mono.Time, c FairConfig) {
	learned := f.known || f.unknown != nil && f.unknown.stage > away
	old := f.rate * f.config.MeanCost
	f.become(c)
	f.finder, f.base, f.blind, f.known, f.unknown = finder{}, sighting{}, 0, learned, nil
	if learned {
		f.n = f.clamp(f.n * f.rate * c.MeanCost / old)
	} else {
		f.n = f.clamp(assumedSharers / c.Weight)
	}
	f.last = max(now, f.last)
	f.hold(f.last, min(f.paid.Add(f.step), f.last.Add(f.span(f.n))), f.span(f.n))
}

// become gives f another quota, with no sighting of it.
func (f *Fair) become(c FairConfig) {
	f.config = c
	f.rate = float64(c.Limit) / c.MeanCost / c.Window.Seconds()
	f.shape()
	f.account.longest, f.account.mean = c.MaxWait, c.MeanCost
}

// Found is the limit that an Auto has found.
type Found struct {
	// Rule is the limit, and how the server counts, as far as that is known; N 0: none was found.
	// By refusals it is the rate at which this client was served in the long run.
	Rule limit.Rule
	// By is the source of the limit. "nobody": no answer named a limit, and nothing was refused.
	// "refusals": the amount that was served until requests were refused. "server": answers state it.
	// "remains": answers say how much remains until when. "provider": answers show the provider,
	// which documents the limit.
	By string
	// Soon is the number of requests refused in the first minute, and Later the number since.
	Soon, Later int
	// In is the time from the first request to the latest answer.
	In time.Duration
}

// Sources of a limit: see Found.By.
const (
	byNobody   = "nobody"
	byRefusals = "refusals"
	byServer   = "server"
	byRemains  = "remains"
	byProvider = "provider"
)

// Found returns the limit that is known by now.
func (a *Auto) Found() Found {
	f := Found{By: byNobody, Rule: a.stated, Soon: a.soon, Later: a.refused - a.soon}
	if a.began > mono.Min {
		f.In = max(0, a.heard.Sub(a.began))
	}
	u := a.fair.unknown
	switch {
	case u == nil && a.told.on:
		f.By = byRemains
	case u == nil && a.stated.Documented:
		f.By = byProvider
	case u == nil:
		f.By = byServer
	case u.stage > away:
		f.By, f.Rule = byRefusals, rounded(u.around(a.fair.n), a.config.Unit)
	case u.stage == away:
		f.By = byRefusals
	}
	return f
}

// rounded converts a pace, in seconds per unit, to a rate for people.
func rounded(pace float64, u limit.Unit) limit.Rule {
	for _, per := range [...]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if n := per.Seconds() / pace; n >= 1.95 || per == 24*time.Hour {
			return limit.Rule{Unit: u, N: max(1, int64(math.Round(min(n, limit.MaxCost)))), Per: per}
		}
	}
	return limit.Rule{}
}

// String describes it for people: "about 20 requests per 1s, from refusals: 7 in the first minute,
// 1 since".
func (f Found) String() string {
	refusals := fmt.Sprintf("%d in the first minute, %d since", f.Soon, f.Later)
	switch {
	case f.By == byNobody && f.Soon+f.Later > 0:
		return "no limit: too little was refused to tell: " + refusals
	case f.By == byNobody:
		return "no limit: nothing was refused, and no answer told of one"
	case f.By == byRefusals && f.Rule.N == 0:
		return "no rate yet: requests are refused, and none was served since: " + refusals
	case f.By == byRefusals:
		return fmt.Sprintf("about %v, from refusals: %s", f.Rule, refusals)
	}
	text := fmt.Sprintf("%v, as %s", f.Rule,
		map[string]string{byServer: "the server says", byRemains: "what answers say remains lets one think",
			byProvider: "its provider documents"}[f.By])
	if f.Soon+f.Later > 0 {
		text += "; refused: " + refusals
	}
	return text
}
