package dashboard

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/observe"
)

const (
	// kept is the length of the history, and slot the length of one point of it.
	kept = 15 * time.Minute
	slot = 5 * time.Second
	// slots has one more than fits, for the slot under way.
	slots = int(kept/slot) + 1
	// recent is the time in which latencies are shown.
	recent = time.Minute
)

// point is the summary of one slot. Counts and percentiles are as of its end, the rest is the most
// in it.
type point struct {
	At       int64   `json:"at"` // of the latest look, in milliseconds since 1970
	Sent     int64   `json:"sent"`
	Refused  int64   `json:"refused"`
	Failed   int64   `json:"failed"`
	Tokens   int64   `json:"tokens"`
	Money    int64   `json:"money"`
	Waiting  int     `json:"waiting"`
	InFlight int     `json:"in_flight"`
	Share    rounded `json:"share"` // of the ceiling of the limit that is used most
	P50      rounded `json:"p50_ms"`
	P99      rounded `json:"p99_ms"`
}

// rounded is a number of four digits in JSON, null if it is not a number.
type rounded float64

// MarshalJSON implements json.Marshaler.
func (r rounded) MarshalJSON() ([]byte, error) {
	if f := float64(r); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.RawMessage(strconv.AppendFloat(nil, float64(r), 'g', 4, 64)), nil
}

// history has the last points, oldest first from next on. Its zero value is empty.
type history struct {
	points [slots]point
	next   int // the place of the next point
	filled int
	times  [recent/slot + 1]upto // a second ring, of the last minute
}

// upto is how many answers took at most each of the bounds; the last is all.
type upto []int64

// add records a Snapshot of now, and returns its point.
func (h *history) add(now time.Time, s *observe.Snapshot) point {
	p := point{At: now.UnixMilli(), Sent: s.Sent, Refused: s.Limited, Failed: s.Failed, Tokens: tokensOf(s.Used),
		Money:   s.Used.Money,
		Waiting: s.Waiting, InFlight: s.InFlight, Share: rounded(math.NaN())}
	if l := busiest(s.Limits); l != nil {
		p.Share = rounded(l.Share)
	}
	number := p.At / slot.Milliseconds()
	for h.filled > 0 && h.at(h.filled-1).At > p.At { // the wall clock was set back
		h.next = (h.next + slots - 1) % slots
		h.filled--
	}
	if n := h.filled - 1; n >= 0 && h.at(n).At/slot.Milliseconds() == number {
		before := h.at(n)
		p.Waiting, p.InFlight = max(p.Waiting, before.Waiting), max(p.InFlight, before.InFlight)
		if !(p.Share >= before.Share) && !math.IsNaN(float64(before.Share)) {
			p.Share = before.Share
		}
	} else {
		h.next = (h.next + 1) % slots
		h.filled = min(h.filled+1, slots)
	}
	p.P50, p.P99 = h.percentiles(number, s)
	*h.at(h.filled - 1) = p
	return p
}

// at returns the point of that place, 0 being the oldest.
func (h *history) at(i int) *point { return &h.points[(h.next-h.filled+i+slots)%slots] }

// percentiles returns the durations of answers in the last minute, in milliseconds and over all
// hosts. If no page looked then, they are of all time.
func (h *history) percentiles(number int64, s *observe.Snapshot) (p50, p99 rounded) {
	now := make(upto, len(s.Bounds)+1)
	for _, u := range s.Upstream {
		for i := range min(len(u.Upto), len(s.Bounds)) {
			now[i] += u.Upto[i]
		}
		now[len(s.Bounds)] += u.Count
	}
	n := int64(len(h.times))
	since := make(upto, len(now))
	// The oldest of the ring is a minute old, if the one before this slot is there and no slot in
	// between was missed.
	for back := n - 1; back > 0; back-- {
		if h.filled > int(back) && h.at(h.filled-1-int(back)).At/slot.Milliseconds() == number-back {
			if t := h.times[(number-back)%n]; len(t) == len(now) && t[len(t)-1] <= now[len(now)-1] {
				since = t
			}
			break
		}
	}
	h.times[number%n] = now
	diff := make([]int64, len(now))
	for i := range now {
		diff[i] = now[i] - since[i]
	}
	all := diff[len(diff)-1]
	ms := func(q float64) rounded {
		d, ok := quantile(s.Bounds, diff[:len(diff)-1], all, q)
		if !ok {
			return rounded(math.NaN())
		}
		return rounded(float64(d) / 1e6)
	}
	return ms(0.5), ms(0.99)
}

// quantile returns the duration that the fraction q of count durations does not exceed. It
// interpolates between two bounds, like Prometheus' histogram_quantile, and returns the last bound
// beyond that.
func quantile(bounds []time.Duration, upto []int64, count int64, q float64) (time.Duration, bool) {
	if count <= 0 || len(bounds) == 0 || len(upto) < len(bounds) {
		return 0, false
	}
	rank := q * float64(count)
	var low time.Duration
	var below int64
	for i, high := range bounds {
		if n := upto[i]; float64(n) >= rank && n > below {
			return low + time.Duration(float64(high-low)*(rank-float64(below))/float64(n-below)), true
		}
		low, below = high, max(below, upto[i])
	}
	return bounds[len(bounds)-1], true
}

// historyJSON has the points in columns.
type historyJSON struct {
	At       []int64   `json:"at"`
	Sent     []int64   `json:"sent"`
	Refused  []int64   `json:"refused"`
	Failed   []int64   `json:"failed"`
	Tokens   []int64   `json:"tokens"`
	Money    []int64   `json:"money"`
	Waiting  []int     `json:"waiting"`
	InFlight []int     `json:"in_flight"`
	Share    []rounded `json:"share"`
	P50      []rounded `json:"p50_ms"`
	P99      []rounded `json:"p99_ms"`
}

func (h *history) all() (all historyJSON) {
	for i := range h.filled {
		p := h.at(i)
		all.At = append(all.At, p.At)
		all.Sent, all.Refused, all.Failed = append(all.Sent, p.Sent), append(all.Refused, p.Refused),
			append(all.Failed, p.Failed)
		all.Tokens, all.Money = append(all.Tokens, p.Tokens), append(all.Money, p.Money)
		all.Waiting, all.InFlight = append(all.Waiting, p.Waiting), append(all.InFlight, p.InFlight)
		all.Share, all.P50, all.P99 = append(all.Share, p.Share), append(all.P50, p.P50), append(all.P99, p.P99)
	}
	return all
}

// tokensOf returns the tokens of language models: counted together, or separately as input and
// output.
func tokensOf(a observe.Amounts) int64 { return max(a.Tokens, a.Input+a.Output) }
