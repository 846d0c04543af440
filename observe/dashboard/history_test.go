package dashboard

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/observe"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // the beginning of a slot

// Fifteen minutes of seconds are 181 points. Each has the counts of its end, and the most in it.
// Older ones are gone.
func TestHistory(t *testing.T) {
	var h history
	for i := range 2000 {
		now := start.Add(time.Duration(i) * time.Second)
		s := observe.Snapshot{Waiting: i % 5 * 10, InFlight: 9 - i%5, Counts: observe.Counts{Sent: int64(i), Limited: int64(i / 100), Used: observe.Amounts{Input: int64(i), Output: int64(i)}},
			Limits: []observe.LimitState{{Allowed: 1, Share: float64(i%5) / 10}}}
		h.add(now, &s)
		a := h.all()
		want := min(i/5+1, 181)
		if n := len(a.At); n != want {
			t.Fatalf("after %d s there are %d points, want %d", i, n, want)
		}
		if a.At[want-1] != now.UnixMilli() || a.Sent[want-1] != int64(i) || a.Tokens[want-1] != 2*int64(i) {
			t.Fatalf("after %d s the last point is of %d, with %d", i, a.At[want-1], a.Sent[want-1])
		}
	}
	a := h.all()
	for i := range a.At {
		end := 1999 - 5*(len(a.At)-1-i)
		if a.Sent[i] != int64(end) || a.Waiting[i] != 40 || a.InFlight[i] != 9 || math.Abs(float64(a.Share[i])-0.4) > 1e-9 {
			t.Errorf("point %d: sent %d, waiting %d, under way %d, share %v", i, a.Sent[i], a.Waiting[i], a.InFlight[i], a.Share[i])
		}
		if age := time.Duration(a.At[len(a.At)-1]-a.At[i]) * time.Millisecond; age != time.Duration(len(a.At)-1-i)*slot {
			t.Errorf("point %d is %v old", i, age)
		}
	}
}

// A time without a viewer has no point. A clock that is set back replaces the points of the time to
// come.
func TestHistoryGaps(t *testing.T) {
	var h history
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{0, 1}, {time.Second, 1}, {time.Hour, 2}, {time.Hour + 4*time.Second, 2}, {time.Hour + 5*time.Second, 3}, {time.Minute, 2}, {-time.Hour, 1}, {0, 2}} {
		h.add(start.Add(c.at), &observe.Snapshot{})
		a := h.all()
		if len(a.At) != c.want {
			t.Errorf("at %v there are %d points, want %d", c.at, len(a.At), c.want)
		}
		for i := 1; i < len(a.At); i++ {
			if a.At[i] <= a.At[i-1] {
				t.Errorf("at %v point %d is not after the one before", c.at, i)
			}
		}
	}
}

// Percentiles are those of the last minute: earlier slow answers are not in them.
func TestPercentilesOfAMinute(t *testing.T) {
	bounds := []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, time.Second}
	var h history
	slow, fast := int64(0), int64(0)
	for i := range 180 {
		if i < 60 {
			slow += 10 // each within 1 s
		} else if i < 150 {
			fast += 10 // each within 20 ms
		}
		u := observe.UpstreamTimes{Host: "h", Times: observe.Times{Count: slow + fast, Upto: []int64{0, fast, fast, slow + fast}}}
		p := h.add(start.Add(time.Duration(i)*time.Second), &observe.Snapshot{Bounds: bounds, Upstream: []observe.UpstreamTimes{u}})
		p50 := float64(p.P50)
		switch {
		case i < 60 && math.Abs(p50-(40+960*0.5)) > 1e-6, i >= 115 && i < 150 && math.Abs(p50-15) > 1e-6, i >= 110 && i < 115 && p50 < 15.1:
			t.Errorf("after %d s half are within %v ms", i, p50)
		}
	}
	for i := 180; i < 300; i++ { // nothing is answered any more
		u := observe.UpstreamTimes{Host: "h", Times: observe.Times{Count: slow + fast, Upto: []int64{0, fast, fast, slow + fast}}}
		p := h.add(start.Add(time.Duration(i)*time.Second), &observe.Snapshot{Bounds: bounds, Upstream: []observe.UpstreamTimes{u}})
		if i > 215 && !math.IsNaN(float64(p.P50)) {
			t.Fatalf("%d s after the last answer half are within %v", i-150, p.P50)
		}
	}
	// The host was forgotten, and its counts with it.
	p := h.add(start.Add(300*time.Second), &observe.Snapshot{Bounds: bounds, Upstream: []observe.UpstreamTimes{{Times: observe.Times{Count: 2, Upto: []int64{0, 2, 2, 2}}}}})
	if float64(p.P50) != 15 {
		t.Errorf("after that half are within %v", p.P50)
	}
}

func TestQuantile(t *testing.T) {
	b := []time.Duration{10, 20, 40}
	for _, c := range []struct {
		upto  []int64
		count int64
		q     float64
		want  time.Duration
		ok    bool
	}{
		{[]int64{0, 0, 0}, 0, 0.5, 0, false},
		{nil, 5, 0.5, 0, false},
		{[]int64{4, 4, 4}, 4, 0.5, 5, true},
		{[]int64{4, 4, 4}, 4, 1, 10, true},
		{[]int64{0, 4, 4}, 4, 0.25, 12, true}, // 12.5, whole nanoseconds
		{[]int64{1, 1, 3}, 3, 0.99, 39, true},
		{[]int64{1, 1, 1}, 3, 0.99, 40, true}, // beyond the last
		{[]int64{0, 0, 0}, 3, 0.5, 40, true},
	} {
		if got, ok := quantile(b, c.upto, c.count, c.q); got != c.want || ok != c.ok {
			t.Errorf("quantile %v of %v, %d in all: %d, %v; want %d, %v", c.q, c.upto, c.count, got, ok, c.want, c.ok)
		}
	}
}

func TestRounded(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 1: "1", 0.98432123: "0.9843", 123456: "1.235e+05", math.Inf(1): "null"} {
		if got, err := json.Marshal(rounded(f)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v; want %s", f, got, err, want)
		}
	}
	if got, _ := json.Marshal(rounded(math.NaN())); string(got) != "null" {
		t.Errorf("NaN is %s", got)
	}
}

// The sentence that the page begins with.
func TestVerdict(t *testing.T) {
	now := start
	host := observe.Whose{Host: "h", Key: "k"}
	at := func(d time.Duration) time.Time { return now.Add(d) }
	busy := observe.Counts{Sent: 9}
	all := observe.LimitState{Whose: host, Name: "requests", Unit: "requests", Used: 10, Allowed: 10, Share: 0.999, Waiting: 1200, Next: at(time.Second)}
	other := observe.LimitState{Name: "day", Unit: "tokens", Used: 1, Allowed: 10, Share: 0.41}
	some := all
	some.Share = 0.5
	bucket := all
	bucket.Share = 1.9
	both := other
	both.Waiting, both.Share, both.Next = 1200, 0.2, at(time.Hour)
	away := all
	away.PausedUntil, away.Why = at(time.Minute), "429"
	flight := observe.LimitState{Name: "concurrency", Unit: "in flight", Used: 4, Allowed: 4, Share: 1, Waiting: 3, NextUnknown: true}
	left := some
	left.WaitingReserve, left.Next = left.Waiting, time.Time{}
	limits := func(l ...observe.LimitState) []observe.LimitState { return l }
	for _, c := range []struct {
		s     observe.Snapshot
		kind  string
		text  string
		until time.Time
	}{
		{observe.Snapshot{}, nothingYet, "Nothing yet: no request has come", time.Time{}},
		{observe.Snapshot{Counts: busy}, idle, "Nothing waits, and nothing is under way", time.Time{}},
		{observe.Snapshot{Counts: observe.Counts{Late: 1}}, idle, "Nothing waits, and nothing is under way", time.Time{}},
		{observe.Snapshot{Counts: busy, InFlight: 1, Limits: limits(other)}, free, "Nothing waits: what comes goes at once; 41 % of the ceiling of day (tokens) is used", time.Time{}},
		{observe.Snapshot{Counts: busy, Waiting: 1200, Limits: limits(other, all)}, full, "As fast as the server allows, 99 % of the ceiling of requests of h, key k: 1,200 wait", at(time.Second)},
		{observe.Snapshot{Counts: busy, Waiting: 1200, Limits: limits(bucket)}, full, "As fast as the server allows, 100 % of the ceiling of requests of h, key k: 1,200 wait", at(time.Second)},
		{observe.Snapshot{Counts: busy, Waiting: 1200, Limits: limits(some)}, waiting, "Waiting for requests of h, key k, of whose ceiling 50 % was used lately: 1,200 wait", at(time.Second)},
		{observe.Snapshot{Counts: busy, Waiting: 1200, Limits: limits(left)}, waiting, "Leaving a part of requests of h, key k free for others, as the reserve of the client says: 1,200 wait", time.Time{}},
		{observe.Snapshot{Counts: busy, Waiting: 1200, Limits: limits(all, both)}, waiting, "Waiting for day (tokens), of whose ceiling 20 % was used lately: 1,200 wait", at(time.Hour)},
		{observe.Snapshot{Counts: busy, Waiting: 1, Limits: limits(away)}, paused, "Staying away from h, key k (429): 1 waits", at(time.Minute)},
		{observe.Snapshot{Counts: busy, Waiting: 3, Limits: limits(flight)}, full, "As much as is allowed is under way, 4 of 4 of concurrency (in flight): 3 wait, until an answer comes", time.Time{}},
		{observe.Snapshot{Counts: busy, Waiting: 3, Paused: []observe.PauseState{{Why: "429", Next: at(time.Second)}}}, paused, "Staying away from the server (429): 3 wait", at(time.Second)},
		{observe.Snapshot{Counts: busy, Waiting: 3, Limits: limits(all), Paused: []observe.PauseState{{Whose: observe.Whose{Host: "h"}, Down: true, Why: "connection refused", Next: at(time.Second)}}},
			down, "Nothing arrives at h (connection refused): 3 wait", at(time.Second)},
		{observe.Snapshot{Counts: busy, Waiting: 3}, waiting, "3 wait for a turn", time.Time{}},
	} {
		c.s.At = now
		if v := judge(&c.s); v.Kind != c.kind || v.Text != c.text || !v.Until.Equal(c.until) {
			t.Errorf("%s: %q, until %v\nwant %s: %q, until %v", v.Kind, v.Text, v.Until, c.kind, c.text, c.until)
		}
	}
}
