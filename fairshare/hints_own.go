package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// rounding is how much too late a reset may be told: servers count in whole seconds.
const rounding = time.Second

// rooms is what the configured limit would have let go when requests were sent. What a server says is left is of when they arrived; until their
// answers are read, much of a window may have come back.
//
// That requests arrive in the order in which they were sent is taken for granted: if two did not, the first seems to have met a stranger.
type rooms struct {
	own    limit.Limiter // nil: there is none, and nothing is kept
	later  bool          // it admits a request when that was noted here
	usage  []limit.Usage
	at     []mono.Time // when requests were sent, each instant once
	left   []int64     // what each of the limits of own would have let go after that
	limits int         // how many those are
}

// mostRooms is how many instants are kept: who has requests of more in flight is told less.
const mostRooms = 64

// sent notes what may still go.
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

// explains returns the window of the configured limit that let no more go than an answer says is left; 0: there is none. A limit whose window ends two
// seconds before the reset that is told is another one, and so is one that allows less than was ever left.
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

// known is what the configured limit makes of a server's word.
//
// If it lets no more go than the word says is left, then all that is missing is our own, and it knows better when that comes back: in a rolling
// window bit by bit, where the word has all come at a reset; or up to two seconds before the reset, where a server takes a time that was
// rounded down off one that was rounded up. So where the word has nobody go, and the configured limit does, one request at a time goes to see.
// If it is served, all go from then on. If one is refused, there are strangers, or the configured limit is wrong, and words are taken
// literally for a while, which becomes longer with each refusal until one is served.
type known struct {
	all     bool          // the configured limit knows of all that is missing
	per     time.Duration // the window of the one that last did
	since   mono.Time     // when the word was heard
	served  bool          // a request was, that the word would have kept
	literal mono.Time     // until then words are taken literally
	doubt   time.Duration // for how long they are, since the last refusal
}

// believed is for how many configured windows words are taken literally after a refusal, and each further one in a row makes that ten times as
// many: some servers ban who is refused a few times.
const (
	believed  = 100
	believing = 10
)

// lets is when a request goes that the word keeps until at.
func (k *known) lets(now, at mono.Time, open int64) mono.Time {
	if !k.all || !k.served && open > 0 {
		return at
	}
	return min(at, max(now, k.literal))
}

// heard compares what an answer says is left with what was counted here: per is as explains has it. An answer that tells more than the word is
// no news, unless strangers are in it.
func (k *known) heard(now mono.Time, per time.Duration, less bool) {
	k.per = max(k.per, per)
	if less || per == 0 {
		k.all, k.since = per > 0, now
	}
}

// answered learns of a request from what became of it.
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
