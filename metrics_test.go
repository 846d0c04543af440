package paceline_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

func newMetrics(t testing.TB, c paceline.MetricsConfig) *paceline.Metrics {
	t.Helper()
	m, err := paceline.NewMetrics(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// used is the outcome of an answered request.
func used(in, out, money int64) limit.Outcome {
	return limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Input: in, limit.Output: out, limit.Money: money}}
}

func ExampleMetrics() {
	metrics, err := paceline.NewMetrics(paceline.MetricsConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	answered, unsent := metrics.Send(), metrics.Send()
	answered.Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Input: 300, limit.Output: 150}})
	unsent.Settle(limit.Outcome{Result: limit.Unsent})

	s := metrics.Snapshot()
	fmt.Println(s.Sent, "sent,", s.Received, "received,", s.Tokens, "tokens,", s.TokensPerMinute, "tokens a minute")
	// Output: 1 sent, 1 received, 450 tokens, 450 tokens a minute
}

// Seven requests 55 to 2 s ago are 7 a minute.
func TestMetricsSevenPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, paceline.MetricsConfig{})
		start := time.Now()
		for _, ago := range []int{55, 45, 30, 20, 10, 5, 2} {
			sleepUntil(start, time.Duration(60-ago)*time.Second)
			m.Send()
		}
		sleepUntil(start, time.Minute)
		if got := m.Snapshot().RequestsPerMinute; got != 7 {
			t.Errorf("%v a minute, want 7", got)
		}
	})
}

// 100 tokens 50 s ago, 200 of 30 s and 150 of 10 s ago are 450 a minute, and fewer as each leaves the window.
func TestMetricsTokensPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, paceline.MetricsConfig{})
		start := time.Now()
		for _, c := range []struct {
			at     time.Duration
			tokens int64 // received then
			want   float64
		}{
			{10 * time.Second, 100, 100},
			{30 * time.Second, 200, 300},
			{50 * time.Second, 150, 450},
			{60 * time.Second, 0, 450},
			{70 * time.Second, 0, 450}, // exactly a window ago still counts
			{71 * time.Second, 0, 350},
			{91 * time.Second, 0, 150},
			{111 * time.Second, 0, 0},
		} {
			sleepUntil(start, c.at)
			if c.tokens > 0 {
				m.Send().Settle(used(c.tokens-1, 1, 0))
			}
			if got := m.Snapshot().TokensPerMinute; got != c.want {
				t.Errorf("at %v: %v a minute, want %v", c.at, got, c.want)
			}
		}
		if s := m.Snapshot(); s.Tokens != 450 || s.Input != 447 || s.Output != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// The window moves on: 3 at 0, 4 at 30 s, 3 again at 61 s when the first has left.
func TestMetricsRollover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, paceline.MetricsConfig{})
		start := time.Now()
		m.Send()
		sleepUntil(start, 2*time.Second)
		m.Send()
		m.Send()
		for _, c := range []struct {
			at   time.Duration
			send bool
			want float64
		}{{2 * time.Second, false, 3}, {30 * time.Second, true, 4}, {61 * time.Second, false, 3}, {63 * time.Second, false, 1}} {
			sleepUntil(start, c.at)
			if c.send {
				m.Send()
			}
			if got := m.Snapshot().RequestsPerMinute; got != c.want {
				t.Errorf("at %v: %v, want %v", c.at, got, c.want)
			}
		}
	})
}

// Every way in which a request ends, in totals and rates, over a window of 10 s.
func TestMetricsOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, paceline.MetricsConfig{Window: 10 * time.Second})
		start := time.Now()
		var sent []paceline.Sending
		for range 7 {
			sent = append(sent, m.Send())
		}
		if s := m.Snapshot(); s.Sent != 7 || s.InFlight != 7 || s.RequestsPerMinute != 42 || s.ResponsesPerMinute != 0 {
			t.Errorf("sent: %+v", s)
		}
		sleepUntil(start, 4*time.Second)
		for i, o := range []limit.Outcome{
			used(300, 150, 2500),
			{Result: limit.Accepted}, // not metered
			{Result: limit.Limited, RetryAfter: time.Second},
			{Result: limit.Failed, Metered: true, Actual: limit.Cost{limit.Input: 10, limit.Output: 5, limit.Tokens: 12}}, // cached input
			{},                     // unknown
			{Result: limit.Unsent}, // undone
		} {
			sent[i].Settle(o)
		}
		want := paceline.MetricsSnapshot{
			Sent: 6, InFlight: 1, Received: 4, Limited: 1, Failed: 1, Unknown: 1,
			Input: 310, Output: 155, Tokens: 462, Money: 2500,
			RequestsPerMinute: 36, ResponsesPerMinute: 24, TokensPerMinute: 6 * 462, MoneyPerMinute: 6 * 2500,
		}
		if s := m.Snapshot(); s != want {
			t.Errorf("got  %+v\nwant %+v", s, want)
		}
		// The sends have left the window, the answers have not.
		sleepUntil(start, 11*time.Second)
		want.RequestsPerMinute = 0
		if s := m.Snapshot(); s != want {
			t.Errorf("got  %+v\nwant %+v", s, want)
		}
		// Undone when it has left the window: it is taken from the total alone.
		m.Send().Settle(used(-1, 0, math.MinInt64)) // and what is below 0 is 0
		sent[6].Settle(limit.Outcome{Result: limit.Unsent})
		want.InFlight = 0
		want.Received, want.RequestsPerMinute, want.ResponsesPerMinute = 5, 6, 30
		if s := m.Snapshot(); s != want {
			t.Errorf("got  %+v\nwant %+v", s, want)
		}
		sleepUntil(start, time.Minute)
		want.RequestsPerMinute, want.ResponsesPerMinute, want.TokensPerMinute, want.MoneyPerMinute = 0, 0, 0, 0
		if s := m.Snapshot(); s != want {
			t.Errorf("got  %+v\nwant %+v", s, want)
		}
	})
}

// From many goroutines: nothing is lost, and no snapshot is torn. Every request is settled as answered with 2 + 1 tokens, or
// undone.
func TestMetricsConcurrently(t *testing.T) {
	m := newMetrics(t, paceline.MetricsConfig{Window: time.Hour})
	const senders, each = 8, 200
	done := make(chan struct{})
	var sending, watching sync.WaitGroup
	watching.Go(func() {
		for {
			s := m.Snapshot()
			if s.Sent != s.InFlight+s.Received+s.Unknown || s.Input != 2*s.Received || s.Output != s.Received || s.Tokens != 3*s.Received {
				t.Errorf("torn: %+v", s)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range senders {
		sending.Go(func() {
			for i := range each {
				sent := m.Send()
				if i%5 == 0 {
					sent.Settle(limit.Outcome{Result: limit.Unsent})
				} else {
					sent.Settle(used(2, 1, 0))
				}
			}
		})
	}
	sending.Wait()
	close(done)
	watching.Wait()
	const answered = senders * each * 4 / 5
	s := m.Snapshot()
	if s.Sent != answered || s.Received != answered || s.InFlight != 0 || math.Round(s.RequestsPerMinute*60) != answered {
		t.Errorf("%+v", s)
	}
}

func TestMetricsPanics(t *testing.T) {
	m := newMetrics(t, paceline.MetricsConfig{})
	settled := m.Send()
	settled.Settle(limit.Outcome{})
	for name, s := range map[string]paceline.Sending{"twice": settled, "zero": {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			s.Settle(limit.Outcome{})
		}()
	}
	if s := m.Snapshot(); s.Unknown != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNewMetricsRefuses(t *testing.T) {
	for says, c := range map[string]paceline.MetricsConfig{
		"Window -1s":     {Window: -time.Second},
		"Precision -1ns": {Precision: -1},
		"Precision 2s":   {Window: time.Second, Precision: 2 * time.Second},
		"more than":      {Window: time.Hour, Precision: 1},
	} {
		if _, err := paceline.NewMetrics(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
	if m := newMetrics(t, paceline.MetricsConfig{Window: 1}); m.Snapshot() != (paceline.MetricsSnapshot{}) {
		t.Error("a window of a nanosecond")
	}
}

// Whatever the rate, what is counted takes no more memory.
func TestMetricsDoesNotAllocate(t *testing.T) {
	m := newMetrics(t, paceline.MetricsConfig{Window: 10 * time.Millisecond, Precision: time.Millisecond})
	o := used(300, 150, 9)
	if n := testing.AllocsPerRun(10_000, func() { m.Send().Settle(o) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	if n := testing.AllocsPerRun(100, func() { m.Snapshot() }); n != 0 {
		t.Errorf("%v allocations per snapshot", n)
	}
}
