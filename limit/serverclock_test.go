package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The server's clock has any offset and drift. ArrivedAgo never claims that a request arrived
// earlier than it did. After a quick answer its error is at most that answer's way back, a tick,
// and the drift.
func TestServerClockIsNeverTooEarly(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		offset := time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour
		drift := (rng.Float64() - 0.5) * 2e-4
		var c limit.ServerClock
		var now mono.Time
		gain, n := time.Duration(0), 0
		for range 20_000 {
			sent := now
			arrived := sent.Add(time.Duration(rng.IntN(50_000)) * time.Microsecond)
			now = arrived.Add(time.Duration(rng.IntN(50_000)) * time.Microsecond)
			reading := arrived.Add(offset + time.Duration(drift*float64(arrived)))
			stamp := reading - reading%mono.Time(ms)
			ago := c.ArrivedAgo(sent, now, stamp)
			if now.Add(-ago) < arrived {
				t.Fatalf("seed %d: arrived at %v, said %v", seed, arrived, now.Add(-ago))
			}
			if now > mono.Time(time.Minute) {
				gain, n = gain+now.Add(-ago).Sub(arrived), n+1
			}
		}
		if mean := gain / time.Duration(n); mean > 3*ms {
			t.Errorf("seed %d: on average %v later than it was", seed, mean)
		}
	}
}

func TestServerClockSetBack(t *testing.T) {
	var c limit.ServerClock
	for i := range 100 {
		sent := at(time.Duration(i) * time.Second)
		c.ArrivedAgo(sent, sent.Add(20*ms), sent.Add(10*ms))
	}
	sent := at(100 * time.Second)
	if ago := c.ArrivedAgo(sent, sent.Add(20*ms), sent.Add(10*ms-time.Hour)); ago != 0 {
		t.Errorf("the server's clock was set back an hour: arrived %v ago", ago)
	}
	if ago := c.ArrivedAgo(sent, sent.Add(20*ms), sent.Add(10*ms-time.Hour)); ago != 0 {
		t.Errorf("and again: arrived %v ago", ago)
	}
}

// Knowledge must be forgotten in time: the server's clock loses 0.1 ms per second. This holds from
// any instant on, after our clock is set back an hour, and after an hour without calls.
func TestServerClockForgets(t *testing.T) {
	for _, start := range []time.Duration{-time.Hour, 0, time.Hour} {
		var c limit.ServerClock
		now, passed := at(start), time.Duration(0)
		for i := range 6000 {
			switch i {
			case 3000:
				now = now.Add(-time.Hour)
			case 4500:
				now, passed = now.Add(time.Hour), passed+time.Hour
			}
			now, passed = now.Add(time.Second), passed+time.Second
			stamp := now.Add(-passed / 10_000)
			if ago := c.ArrivedAgo(now.Add(-400*ms), now, stamp-stamp%mono.Time(ms)); ago > 0 { // it arrives as it is answered
				t.Fatalf("from %v, answer %d: said to have arrived %v before it did", start, i, ago)
			}
		}
	}
}
