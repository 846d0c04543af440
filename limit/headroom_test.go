package limit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func headroom(l limit.Limiter, use float64, ramp time.Duration) *limit.Headroom {
	return must(limit.NewHeadroom(limit.HeadroomConfig{Limiter: l, Use: use, Ramp: ramp}))
}

// headrooms are the laws' Headrooms. Their promises are those of the used part.
var headrooms = map[string]limittest.Spec{
	"of a window": {
		New:     func() limit.Limiter { return headroom(limit.MustRolling(5, time.Second), 0.5, 0) },
		Promise: limittest.Rolling(2, time.Second, limit.Requests),
	},
	"of a bucket": {
		New: func() limit.Limiter {
			return headroom(must(limit.NewBucket(limit.BucketConfig{Limit: 8, Window: time.Second})), 0.5, 0)
		},
		// The used part is one of what is sent: a request of unknown end may arrive later.
		Promise: limittest.Bucket(8, time.Second, 8, limit.Requests),
	},
	"of produced tokens": {
		New: func() limit.Limiter {
			return headroom(must(limit.NewProduced(limit.ProducedConfig{
				Limit: 8, Window: time.Second, Unit: limit.Input,
			})), 0.5, 0)
		},
		Costs:  []limit.Cost{{limit.Input: 1}, {limit.Input: 3}},
		Rough:  true,
		Lapses: true,
		// What an answer used counts from its end on.
		ClosedLoop: true,
		Burst:      1 << 20,
	},
	"with a ramp": {
		New:     func() limit.Limiter { return headroom(limit.MustRolling(5, time.Second), 0, 3*time.Second) },
		Promise: limittest.Rolling(5, time.Second, limit.Requests),
		Costs:   costs,
	},
	"of a bucket, with a ramp": {
		New: func() limit.Limiter {
			l := must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second}))
			return headroom(l, 0.6, 2*time.Second)
		},
		Promise: limittest.Bucket(5, time.Second, 5, limit.Requests),
		Costs:   costs,
	},
	"of all kinds": {
		New: func() limit.Limiter {
			return headroom(limit.NewAll(
				must(limit.NewCalendar(limit.CalendarConfig{Limit: 9, Window: 2 * time.Second})),
				must(limit.NewWeighted(limit.WeightedConfig{Limit: 6, Window: time.Second, Unit: limit.Input})),
				must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})),
			), 0.7, time.Second)
		},
		Costs:   costs,
		NoSteps: true,
	},
}

func TestHeadroomLaws(t *testing.T) {
	for name, spec := range headrooms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec.Bounded = true // less than all goes
			spec.Programs = need.Fewer(15, 40)
			limittest.Laws(t, spec)
		})
	}
}

func FuzzHeadroom(f *testing.F) {
	spec := headrooms["of a bucket, with a ramp"]
	spec.Bounded = true
	limittest.Fuzz(f, spec)
}

// saturate sends to a limiter as early as it lets requests go, each answered at once, and returns how many
// went in each second.
func saturate(l limit.Limiter, from mono.Time, seconds int) (went []int) {
	went = make([]int, seconds)
	end := from.Add(time.Duration(seconds) * time.Second)
	for at := l.Ready(from, limit.One); at < end; at = l.Ready(at, limit.One) {
		s := limittest.Admit(l, at, limit.One)
		l.Settle(at, s, &limit.Outcome{Result: limit.Accepted})
		went[at.Sub(from)/time.Second]++
	}
	return went
}

func total(went []int) (n int) {
	for _, k := range went {
		n += k
	}
	return n
}

// Each kind of limit gives the part that is used, in the long run and at once.
func TestHeadroomUsesAPart(t *testing.T) {
	kinds := map[string]func() limit.Limiter{
		"rolling": func() limit.Limiter { return limit.MustRolling(40, time.Second) },
		"calendar": func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: 40, Window: time.Second}))
		},
		"weighted": func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 40, Window: time.Second}))
		},
		"bucket": func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 40, Window: time.Second}))
		},
		"small bucket": func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 40, Window: time.Second, Burst: 1}))
		},
		"named, in several": func() limit.Limiter {
			return limit.NewFitted(limit.NewVarying(limit.Named("a", limit.MustRolling(40, time.Second)),
				must(limit.NewBucket(limit.BucketConfig{Limit: 100, Window: time.Second}))))
		},
	}
	for name, made := range kinds {
		for _, use := range []float64{0.1, 0.5, 0.75, 1} {
			whole, part := total(saturate(made(), 0, 60)), total(saturate(headroom(made(), use, 0), 0, 60))
			// Fewer than 40 have a burst of more, by parts. A weighted limit of few uses less of it.
			if got := float64(part); got > use*40*61 || got < 0.75*use*float64(whole) || use == 1 && part != whole {
				t.Errorf("%s: %d of %d went, want %v of it", name, part, whole, use)
			}
		}
	}
}

// While a ramp lasts the load rises evenly: the n-th second has n parts of all, of a window and of a
// bucket. It begins with the first request, after a rest, and with Begin.
func TestHeadroomRamp(t *testing.T) {
	for name, l := range map[string]limit.Limiter{
		"rolling": limit.MustRolling(100, time.Second),
		"bucket":  must(limit.NewBucket(limit.BucketConfig{Limit: 100, Window: time.Second})),
	} {
		h := headroom(l, 0.8, 10*time.Second)
		rises := func(what string, from mono.Time) {
			went := saturate(h, from, 12)
			for i, n := range went {
				// A window that began earlier may still count. A bucket holds more and more, too.
				if least, most := min(i-1, 7)*10, min(i+1, 8)*10+10; n < least || n > most {
					t.Errorf("%s, %s: %v; second %d is not within %d and %d", name, what, went, i, least, most)
				}
			}
		}
		at := mono.Time(0)
		rises("at the start", at)
		at += mono.Time(12 * time.Second)
		if went := saturate(h, at, 3); went[0] < 75 {
			t.Errorf("%s: right after it %v", name, went)
		}
		at += mono.Time(3 * time.Second)
		if went := saturate(h, at.Add(9*time.Second), 1); went[0] < 75 {
			t.Errorf("%s: after a rest shorter than a ramp %v", name, went)
		}
		rises("after a rest", at+mono.Time(20*time.Second))
		at += mono.Time(32 * time.Second)
		h.Begin(at)
		rises("begun", at)
	}
}

// A request in flight is no rest, however long it takes.
func TestHeadroomInFlightIsNoRest(t *testing.T) {
	h := headroom(limit.MustRolling(10, time.Second), 0, time.Minute)
	s := limittest.Admit(h, 0, limit.One)
	later := mono.Time(time.Hour)
	if free := h.Free(later); free != 0 {
		t.Errorf("%v is free after an hour", free)
	}
	limittest.Admit(h, later, limit.One)
	if free := h.Free(later); free != 0 {
		t.Errorf("%v is free: a ramp began beside a request in flight", free)
	}
	h.Settle(later, s, &limit.Outcome{Result: limit.Accepted})
}

// A cost that is larger than the used part goes when all is free, and never fails for it.
func TestHeadroomForbidsNothing(t *testing.T) {
	for name, l := range map[string]limit.Limiter{
		"rolling": limit.MustRolling(10, time.Second),
		"bucket":  must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second})),
	} {
		h := headroom(l, 0.25, 0)
		large := limit.Cost{limit.Requests: 9}
		if at := h.Ready(0, large); at != 0 {
			t.Fatalf("%s: it goes at %v", name, at)
		}
		s := limittest.Admit(h, 0, large)
		h.Settle(0, s, &limit.Outcome{Result: limit.Accepted})
		if at := h.Ready(0, large); at <= 0 || at >= limit.AfterSettle {
			t.Errorf("%s: the second goes at %v", name, at)
		} else if then := h.Ready(at, large); then != at {
			t.Errorf("%s: the second was to go at %v, and then at %v", name, at, then)
		}
		if at := h.Ready(0, limit.Cost{limit.Requests: 11}); at != limit.Never {
			t.Errorf("%s: more than all goes at %v", name, at)
		}
	}
}

// A changed part holds from then on, also for parts that come later.
func TestHeadroomSet(t *testing.T) {
	v := limit.NewVarying(limit.MustRolling(100, time.Second))
	h := headroom(v, 0, 0)
	if err := h.Set(0, 0.5, 0); err != nil {
		t.Fatal(err)
	}
	v.Change(0, must(limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second})))
	h.Follow(0)
	if n := total(saturate(h, 0, 20)); n < 200 || n > 212 {
		t.Errorf("%d of 400 went in 20 s, want half and a burst", n)
	}
	used := mono.Time(20 * time.Second)
	before := h.Ready(used, limit.Cost{limit.Requests: 10})
	h.Follow(used)
	if at := h.Ready(used, limit.Cost{limit.Requests: 10}); before <= used || at != before {
		t.Errorf("what is used was forgotten: ready at %v, and then at %v", before, at)
	}
	_, missing := limit.NewHeadroom(limit.HeadroomConfig{})
	_, tooMuch := limit.NewHeadroom(limit.HeadroomConfig{Limiter: limit.MustRolling(1, time.Second), Use: 2})
	for want, err := range map[string]error{
		"Use 1.5 is not between 0 and 1": h.Set(0, 1.5, 0),
		"Use NaN is not between 0 and 1": h.Set(0, math.NaN(), 0),
		"Ramp -1s is negative":           h.Set(0, 0.5, -time.Second),
		"the Limiter is nil":             missing,
		"Use 2 is not between 0 and 1":   tooMuch,
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
