package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// rounding is how much too late a stated reset may be: servers count in whole seconds.
const rounding = time.Second

// rooms keeps how much the configured limit would have let go when requests were sent. A server's
// remainder is of the time when the request arrived. Until the answer arrives, much of a window may
// have come back.
//
// Requests are assumed to arrive in the order in which they were sent. If two did not, the first
// seems to have met a stranger.
type rooms struct {
	own    limit.Limiter // nil: there is none, and nothing is kept
	later  bool          // it admits a request after sent was called for that
	usage  []limit.Usage
	at     []mono.Time // when requests were sent, each instant once
	left   []int64     // how much each limit of own would have let go after that
	limits int         // the number of those limits
}

// counting returns what of a limiter counts our own requests. Of an Auto for one client that is the
// limits that its server stated so far.
func counting(own limit.Limiter) limit.Limiter {
	counts := own
	limit.Ask(own, func(a *Auto) {
		if a.alone != nil {
			counts = a.alone.limits
		}
	})
	return counts
}

// mostRooms is the number of instants that are kept. A process with requests of more instants in
// flight learns less.
const mostRooms = 64

// sent notes how much may still go.
func (r *rooms) sent(now mono.Time, cost *limit.Cost) {
	if r.own == nil {
		return
	}
	r.usage = limit.AppendUsage(r.usage[:0], r.own, now)
	n := len(r.at)
	switch {
	case r.limits != len(r.usage): // they have changed
		r.limits, n = len(r.usage), 0
	case n > 0 && r.at[n-1] == now:
		n--
	case n == mostRooms:
		n = copy(r.at, r.at[n/2:])
		copy(r.left, r.left[n*r.limits:])
	}
	r.at, r.left = append(r.at[:n], now), r.left[:n*r.limits]
	for i := range r.usage {
		left := r.usage[i].Allowed - r.usage[i].Used
		if r.later {
			left -= unit(cost[r.usage[i].Unit])
		}
		r.left = append(r.left, left)
	}
}

// explains returns the window of a configured limit that let no more go than an answer has left; 0:
// there is none. A limit whose window ends two seconds before the stated reset is another one. So
// is one that allows less than was ever left.
func (r *rooms) explains(unit int, now, sent mono.Time, remaining, most int64, reset time.Duration) time.Duration {
	if r.own == nil {
		return 0
	}
	i := len(r.at) - 1
	for i > 0 && r.at[i] > sent {
		i--
	}
	r.usage = limit.AppendUsage(r.usage[:0], r.own, now)
	for k := range r.usage {
		u := &r.usage[k]
		if int(u.Unit) != unit || u.InFlight || most > u.Allowed || reset >= u.Window+2*rounding {
			continue
		}
		left := u.Allowed - u.Used
		if i >= 0 && r.at[i] == sent && r.limits == len(r.usage) {
			left = min(left, r.left[i*r.limits+k])
		}
		if left <= remaining {
			return u.Window
		}
	}
	return 0
}

// known is the configured limit's effect on a server's word.
//
// If the configured limit lets no more go than is left by the word, all that is missing is our own.
// Then the configured limit knows better when that comes back. In a rolling window it comes back
// bit by bit, while by the word all comes at a reset. It may also come up to two seconds before the
// reset, where a server subtracts a time rounded down from one rounded up.
//
// So where the word stops all requests and the configured limit does not, one request at a time
// goes as a test. If it is served, all go from then on. If one is refused, there are strangers, or
// the configured limit is wrong. Then words are taken literally for a while. That becomes longer
// with each refusal until a request is served.
type known struct {
	all     bool          // the configured limit knows of all that is missing
	per     time.Duration // the window of the latest such limit
	since   mono.Time     // when the word arrived
	served  bool          // a request was served that the word would have kept
	literal mono.Time     // until then words are taken literally
	doubt   time.Duration // for how long they are, since the last refusal
}

// believed is the number of configured windows in which words are taken literally after a refusal.
// Each further refusal in a row makes that ten times as many: some servers ban a client after a
// few.
const (
	believed  = 100
	believing = 10
)

// lets returns when a request goes that the word keeps until at.
func (k *known) lets(now, at mono.Time, open int64) mono.Time {
	if !k.all || !k.served && open > 0 {
		return at
	}
	return min(at, max(now, k.literal))
}

// heard compares the amount that is left by an answer with the amount counted here: per is the
// result of explains. An answer with more than the word is no news, unless strangers are in it.
func (k *known) heard(now mono.Time, per time.Duration, less bool) {
	k.per = max(k.per, per)
	if less || per == 0 {
		k.all, k.since = per > 0, now
	}
}

// answered learns from the outcome of a request.
func (w *word) answered(now, sent mono.Time, cost int64, o *limit.Outcome, longest time.Duration) {
	k := &w.known
	kept := k.all && sent >= k.since && sent < w.until && cost > w.least // the word would have
	switch {
	case kept && o.Result == limit.Accepted:
		k.served, k.doubt = true, 0
	case (kept || k.served) && o.Result == limit.Limited && !o.Elsewhere && cost > 0:
		k.doubt = min(max(believed*k.per, believing*k.doubt), longest)
		k.served, k.literal = false, now.Add(k.doubt)
	}
}
