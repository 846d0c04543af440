package sim_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const ms = time.Millisecond

var (
	uniform   = latency.Uniform(0, 50*ms)
	lognormal = latency.Lognormal(10*ms, 100*ms)
	hostile   = latency.Bimodal(0, 3*time.Second, 0.05) // one attempt in ten is not waited for
)

func lease() limit.Limiter { return limit.MustRolling(20, time.Second) }

func bounded() limit.Limiter {
	r, err := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 50 * ms}})
	if err != nil {
		panic(err)
	}
	return r
}

func publishedBuffer(buffer time.Duration) func() limit.Limiter {
	return func() limit.Limiter {
		return sim.NewPublished(sim.PublishedConfig{Limit: 20, Window: time.Second, Buffer: buffer})
	}
}

// Five keys at 20/s, of which theory allows 95.15 requests/s, 91.0 one in flight, 95.91 and 95.37 with a known latency.
func TestExchangeReachesItsCeiling(t *testing.T) {
	for _, c := range []struct {
		name                     string
		x                        sim.Exchange
		rateMin, rateMax         float64
		rejected, banned, nonces bool
	}{
		{"lease, any number in flight", sim.Exchange{Limiter: lease}, 95.0, 95.6, false, false, false},
		{"lease, one in flight", sim.Exchange{Limiter: lease, Nonce: sim.Ours}, 90.6, 91.2, false, false, false},
		{"lease, workers", sim.Exchange{Limiter: lease, Nonce: sim.Ours, Workers: true}, 90.6, 91.2, false, false, false},
		{"bounded", sim.Exchange{Limiter: bounded}, 95.7, 96.4, false, false, false},
		{"bounded, in order by their gap", sim.Exchange{Limiter: bounded, Nonce: sim.Ours, Gap: 50*ms + 10*time.Microsecond}, 95.0, 95.6, false, false, false},
		{"lease, lognormal", sim.Exchange{Limiter: lease, Nonce: sim.Ours, Forward: lognormal, Back: lognormal}, 92, 94.5, false, false, false},
		{"lease, hostile", sim.Exchange{Limiter: lease, Nonce: sim.Ours, Forward: hostile, Back: hostile}, 1, 100, false, false, false},
		{"lease, hostile, any number in flight", sim.Exchange{Limiter: lease, Forward: hostile, Back: hostile}, 10, 100, false, false, false},
		{"a promise of 50 ms that is broken", sim.Exchange{Limiter: bounded, Forward: lognormal, Back: lognormal}, 94, 97.5, true, false, false},
		{"a gap that is too small", sim.Exchange{Limiter: bounded, Nonce: sim.Ours, Gap: 20 * ms}, 50, 96, false, false, true},
		{"published ring alone", sim.Exchange{Limiter: publishedBuffer(0), Nonce: sim.Timestamp, Workers: true, Poll: ms}, 0, 40, true, true, false},
		{"published, 50 ms", sim.Exchange{Limiter: publishedBuffer(50 * ms), Nonce: sim.Timestamp, Workers: true}, 90.8, 91.6, false, false, false},
		{"published, 50 ms, lognormal", sim.Exchange{Limiter: publishedBuffer(50 * ms), Nonce: sim.Timestamp, Workers: true, Forward: lognormal, Back: lognormal}, 0, 40, true, true, false},
	} {
		x := c.x
		if x.Forward == (latency.Law{}) {
			x.Forward, x.Back = uniform, uniform
		}
		x.Generator, x.Duration, x.Seed, x.Queue = sim.Saturating, 120*time.Second, 7, queue.Config{KeepDead: -1}
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		if rate := float64(got.Successes) / 120; rate < c.rateMin || rate > c.rateMax {
			t.Errorf("%s: %.2f requests/s, want %v to %v", c.name, rate, c.rateMin, c.rateMax)
		}
		if (got.Rejected > 0) != c.rejected || (got.BannedKeys > 0) != c.banned {
			t.Errorf("%s: %d rejected, %d keys banned", c.name, got.Rejected, got.BannedKeys)
		}
		if x.Nonce == sim.Ours && (got.BadNonce > 0) != c.nonces {
			t.Errorf("%s: %d bad nonces", c.name, got.BadNonce)
		}
		if err := got.Counts.Check(); err != nil || got.Lost != 0 {
			t.Errorf("%s: %d lost, %v", c.name, got.Lost, err)
		}
	}
}

func TestExchangeIsTheSameForTheSameSeed(t *testing.T) {
	for _, workers := range []bool{false, true} {
		x := sim.Exchange{Limiter: lease, Forward: lognormal, Back: lognormal, Nonce: sim.Ours, Workers: workers, Duration: 20 * time.Second}
		run := func(seed uint64) (sim.Tally, []time.Duration) {
			var delays []time.Duration
			x.Seed = seed
			x.OnSend = func(d time.Duration) { delays = append(delays, d) }
			tally, err := x.Run()
			if err != nil {
				t.Fatal(err)
			}
			return tally, delays
		}
		a, delaysA := run(1)
		b, delaysB := run(1)
		other, _ := run(2)
		if a != b || !reflect.DeepEqual(delaysA, delaysB) {
			t.Errorf("the same seed twice: %+v and %+v", a, b)
		}
		if a == other {
			t.Error("another seed made no difference")
		}
	}
}

// The published queue under a load above what the keys allow: refreshed requests crowd out those that could be in time.
func TestWorkDoneAfterItsDeadlineIsWorthless(t *testing.T) {
	share := func(x sim.Exchange) float64 {
		x.Limiter, x.Nonce, x.Forward, x.Back, x.Duration = lease, sim.Ours, uniform, uniform, 120*time.Second
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		return float64(got.InTime) / float64(got.Counts.Submitted)
	}
	refreshed := share(sim.Exchange{Workers: true, Queue: queue.Config{OnExpiry: queue.Retry, RetriesLast: true}})
	dropped := share(sim.Exchange{Workers: true, Queue: queue.Config{MaxAttempts: 1}})
	reserved := share(sim.Exchange{Reserve: 100 * ms})
	if !(refreshed < dropped && dropped < reserved && reserved > 0.9) {
		t.Errorf("answered in time: %.2f refreshed, %.2f dropped, %.2f with time kept for the answer", refreshed, dropped, reserved)
	}
}

func TestNoncesAcrossRestarts(t *testing.T) {
	bad := func(n sim.Nonces) int {
		got, err := sim.Exchange{
			Limiter: lease, Nonce: n, Workers: true, Forward: uniform, Back: uniform, Generator: sim.Saturating,
			Duration: 30 * time.Second, Restart: 10 * time.Second, Queue: queue.Config{MaxAttempts: 1},
		}.Run()
		if err != nil {
			t.Fatal(err)
		}
		return got.BadNonce
	}
	if n := bad(sim.Ours); n != 0 {
		t.Errorf("ours: %d bad nonces", n)
	}
	// The counter of a new process has fewer digits, and so has the whole number, until it has caught up.
	if n := bad(sim.Concatenated); n < 500 {
		t.Errorf("timestamp, thread and counter: %d bad nonces, want most of them after a restart", n)
	}
}

// A process that starts has other threads. One worker sends every 0.1 ms of the same millisecond, of which a new process
// begins at 0.45: its first number is above the fifth of the old one by its thread alone.
func TestThreadsAcrossRestarts(t *testing.T) {
	got, err := sim.Exchange{
		Server: rule.ExchangeConfig{Keys: 1}, Limiter: lease, Nonce: sim.Concatenated, Workers: true, Generator: sim.Saturating,
		Forward: latency.Constant(50 * us), Back: latency.Constant(50 * us),
		Duration: 890 * us, Restart: 450 * us, Queue: queue.Config{MaxAttempts: 1},
	}.Run()
	if err != nil || got.Sent != 9 || got.BadNonce != 0 {
		t.Errorf("%d sent, %d bad nonces (%v), want 9 and none", got.Sent, got.BadNonce, err)
	}
	for _, c := range []struct {
		unixMilli int64
		process   uint64
		key       int
		counter   uint64
		want      string
	}{
		{1_800_000_000_007, 0, 0, 1, "18000000000071400000000000001"},
		{1_800_000_000_007, 0, 4, 20, "180000000000714000000000000420"},
		{1_800_000_000_007, 3, 4, 1, "18000000000071400000000030041"},
	} {
		if got := sim.ConcatenatedNonce(c.unixMilli, c.process, c.key, c.counter); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestBurstGoesAtOnce(t *testing.T) {
	var worst time.Duration
	x := sim.Exchange{Limiter: lease, Forward: uniform, Back: uniform, Generator: sim.Burst, Duration: 30 * time.Second}
	x.OnSend = func(d time.Duration) { worst = max(worst, d) }
	got, err := x.Run()
	if err != nil || got.Successes != 1000 || got.Rejected != 0 || worst != 0 {
		t.Errorf("%d answered, %d rejected, %v the longest delay (%v), want 1000 at once", got.Successes, got.Rejected, worst, err)
	}
}

func BenchmarkExchange(b *testing.B) {
	x := sim.Exchange{Limiter: lease, Forward: uniform, Back: uniform, Generator: sim.Saturating, Duration: time.Minute}
	sent := 0
	for b.Loop() {
		got, err := x.Run()
		if err != nil {
			b.Fatal(err)
		}
		sent += got.Sent
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sent), "ns/request")
}

// Five keys at a server of 20 a second that is taken for one of 25, 40 or 100: none is banned after ten refusals, and what is
// accepted is at least nine tenths of what the server allows.
func TestExchangeWrongLimit(t *testing.T) {
	for _, n := range []int64{25, 40, 100} {
		const lasts = 5 * time.Minute
		tally, err := sim.Exchange{
			Forward: latency.Uniform(5*time.Millisecond, 15*time.Millisecond), Back: latency.Uniform(5*time.Millisecond, 15*time.Millisecond),
			Generator: sim.Saturating, TTL: time.Hour, Limiter: func() limit.Limiter { return limit.MustRolling(n, time.Second) },
			Nonce: sim.Ours, Queue: queue.Config{MaxLen: 100}, Duration: lasts, Seed: uint64(n),
		}.Run()
		if err != nil {
			t.Fatal(err)
		}
		if rate := float64(tally.Successes) / lasts.Seconds(); tally.BannedKeys > 0 || tally.Rejected >= 50 || rate < 90 {
			t.Errorf("%d/s: %d keys banned, %d refused, %.1f/s", n, tally.BannedKeys, tally.Rejected, rate)
		}
	}
}
