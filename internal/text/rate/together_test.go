package rate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func parsed(t *testing.T, all string) (limits []Repeated) {
	t.Helper()
	for text := range strings.SplitSeq(all, ", ") {
		text, burst, isBucket := strings.Cut(text, " bucket ")
		l, err := ParseCounted(text)
		if err != nil {
			t.Fatal(err)
		}
		if l.Bucket = isBucket; isBucket {
			if l.Burst, err = ParseCount(burst); err != nil {
				t.Fatal(err)
			}
		}
		limits = append(limits, Repeated{l, 1})
	}
	return limits
}

// Limits that are played take as long as the limiters that decide let requests wait, one after the other.
func TestPlayedAsDecided(t *testing.T) {
	start := time.Date(2026, 11, 29, 23, 58, 0, 0, time.UTC)
	for _, text := range []string{"20/10s, 4/s", "10/s, 300/m", "7/s, 50/m, 600/h", "3/2s, 7/5s, 40/m", "50/m, 1/s bucket 5",
		"100/m bucket 10, 30/10s",
		"60/m bucket 20, 12/10s bucket 5", "5/s, 300/d@UTC", "10/s", "60/m bucket 5",
		"300/m, 5/s", "2000 tokens/m, 1/s"} {
		limits := parsed(t, text)
		const requests, units = 2000, 100
		cost := limit.Cost{limit.Requests: requests, limit.Tokens: requests * units}
		played := Play(start, limits, cost, nil, requests, 0)
		var each []limit.Limiter
		for _, l := range limits {
			made, err := l.Limiter(limit.Arrivals{})
			if err != nil {
				t.Fatal(err)
			}
			limit.SetEpoch(made, start)
			each = append(each, made)
		}
		all, at, one := limit.NewAll(each...), mono.Time(0), limit.Cost{limit.Requests: 1, limit.Tokens: units}
		for n := 1; n <= requests; n++ {
			at = all.Ready(at, one)
			s := limit.Sent{At: at, Cost: one}
			all.Admit(&s)
			all.Settle(at, &s, &limit.Outcome{Result: limit.Accepted})
			got, decided := played.Takes(float64(n)), time.Duration(at)
			// Limiters add a margin for each window that passes, which is a part in a thousand.
			if got > decided || decided-got > 5*time.Millisecond+decided/200 {
				t.Errorf("%s: request %d is played after %v, and decided after %v", text, n, got, decided)
				break
			}
		}
	}
}

// A limit that binds for good repeats itself. So what is not played to its end is the same.
func TestPlayedRepeats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spans := []string{"s", "2s", "5s", "7s", "m"}
	for range 300 {
		var text []string
		for range 2 + r.IntN(2) {
			text = append(text, strconv.Itoa(1+r.IntN(60))+"/"+spans[r.IntN(len(spans))])
		}
		limits := parsed(t, strings.Join(text, ", "))
		const requests = 5000
		cost := limit.Cost{limit.Requests: requests}
		played := Play(time.Time{}, limits, cost, nil, requests, 0)
		// By the law itself: a request goes a window after the one that it displaces.
		at := make([]time.Duration, requests+1)
		for n := 1; n <= requests; n++ {
			for _, l := range limits {
				if before := n - int(l.N); before > 0 {
					at[n] = max(at[n], at[before]+l.Per)
				}
			}
			if got := played.Takes(float64(n)); got != at[n] {
				t.Fatalf("%s: request %d after %v, want %v (%d played)", text, n, got, at[n], len(played.tops))
			}
		}
		for range 50 {
			d := time.Duration(r.Int64N(int64(at[requests])))
			n := 0
			for n < requests && at[n+1] <= d {
				n++
			}
			if got := played.Begun(d); math.Abs(got-float64(n)) > almost {
				t.Fatalf("%s: %v within %v, want %d", text, got, d, n)
			}
			if even := played.Within(d, false); even < float64(n)-almost {
				t.Fatalf("%s: %v within %v, and %d can be sent", text, even, d, n)
			}
		}
	}
}

// A million requests are cheap to play, and no number of them is too much.
func TestPlayedIsBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10/s, 300/m": 3333 * time.Minute, "1/s, 80000/d": 0, "1/100ms, 10000000/30d": 0, "1/s, 100000/d@UTC": 0,
	} {
		limits := parsed(t, text)
		const requests = 1e6
		played := Play(time.Unix(1_800_000_000, 0), limits, limit.Cost{limit.Requests: requests}, nil, requests, 0)
		least := time.Duration(0)
		for _, l := range limits {
			least = max(least, Lasting((requests-float64(l.N))/l.Speed()))
		}
		if got := played.Takes(requests); len(played.tops) > mostTops || got < least-least/100 ||
			want != 0 && got > want+time.Minute {
			t.Errorf("%s: %v of %d tops; one limit alone takes %v", text, got, len(played.tops), least)
		}
	}
}
