package dispatch_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

func TestLearnedGap(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, LearnGap: true})
	now := time.Duration(0)
	for range 50 {
		r.submit(now, "", "") // one in flight
		a := r.sends(now, limit.AfterSettle, "/1 on 0")[0]
		now += 200 * ms
		r.done(now, a, accepted)
		a = r.sends(now, limit.AfterSettle, "/1 on 0")[0]
		now += 210 * ms
		r.done(now, a, accepted)
	}
	r.submit(now, "x", "y")
	r.sends(now, at(now+13500*time.Microsecond), "x/1 on 0")
	r.sends(now+13500*time.Microsecond, limit.AfterSettle, "y/1 on 0")
}

func TestNoncesRise(t *testing.T) {
	epoch := time.UnixMilli(1_800_000_000_000)
	n, err := dispatch.NewNonce(epoch, dispatch.NonceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now  time.Duration
		want uint64
	}{
		{0, 1_800_000_000_000},
		{0, 1_800_000_000_001}, // two in one millisecond
		{ms, 1_800_000_000_002},
		{time.Second, 1_800_000_001_000},
		{-time.Hour, 1_800_000_001_001}, // a clock that went back
	} {
		if got := n.Next(at(c.now)); got != c.want {
			t.Errorf("at %v: %d, want %d", c.now, got, c.want)
		}
	}
	// A process that starts on a clock that was set back an hour goes on from the last number of the one before.
	after, err := dispatch.NewNonce(epoch.Add(-time.Hour), dispatch.NonceConfig{After: n.Last()})
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Next(0); got != n.Last()+1 {
		t.Errorf("after a restart: %d, want %d", got, n.Last()+1)
	}
	micro, err := dispatch.NewNonce(epoch, dispatch.NonceConfig{Unit: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := micro.Next(at(5 * time.Microsecond)); got != 1_800_000_000_000_005 {
		t.Errorf("in microseconds: %d", got)
	}
}

func TestZeroNonce(t *testing.T) {
	var n dispatch.Nonce
	if a, b, c := n.Next(at(5*ms)), n.Next(at(5*ms)), n.Next(at(9*ms)); a != 5 || b != 6 || c != 9 {
		t.Errorf("nonces %d, %d, %d at 5, 5 and 9 ms", a, b, c)
	}
}

func TestNoncesKeepOneInFlight(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{After: 7}})
	last := func(now time.Duration, want uint64) {
		t.Helper()
		if k := r.KeyInfo(at(now), 0); k.Nonce != want {
			t.Errorf("at %v the last nonce is %d, want %d", now, k.Nonce, want)
		}
	}
	last(0, 7)
	r.submit(0, "1", "2", "3")
	a := r.sends(0, limit.AfterSettle, "1/1 on 0")[0]
	last(0, 8)
	r.done(70*ms, a, accepted)
	b := r.sends(70*ms, limit.AfterSettle, "2/1 on 0")[0]
	if b.Nonce <= a.Nonce {
		t.Errorf("nonces %d, %d", a.Nonce, b.Nonce)
	}
	last(70*ms, b.Nonce)
	// Nobody knows whether the second has arrived: the third must not overtake it.
	r.done(100*ms, b, dispatch.Answer{})
	r.sends(100*ms, at(1100*ms)) // 2 is back after its backoff, and asks for its key
	r.sends(5100*ms-1, at(5100*ms))
	r.sends(5100*ms, limit.AfterSettle, "2/2 on 0")

	gap := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, Gap: 50 * ms})
	gap.submit(0, "1", "2", "3")
	gap.sends(0, at(50*ms), "1/1 on 0")
	gap.sends(50*ms, at(100*ms), "2/1 on 0")
}

// A gap that is too small: the first bad nonce limits the key to one in flight, and the other key
// does not change.
func TestAGapEndsAtABadNonce(t *testing.T) {
	key := dispatch.Key{Nonce: &dispatch.NonceConfig{}, Gap: 50 * ms}
	r := newRig(t, queue.Config{}, key, key)
	r.submit(0, "1", "2", "3", "4")
	first := r.sends(0, at(50*ms), "1/1 on 0", "2/1 on 1")
	second := r.sends(50*ms, limit.AfterSettle, "3/1 on 0", "4/1 on 1")
	r.done(60*ms, second[0], accepted)
	r.done(60*ms, second[1], accepted)
	r.done(70*ms, first[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}, Invalid: true})
	r.done(70*ms, first[1], accepted)
	r.submit(80*ms, "5", "6", "7", "8")
	r.sends(80*ms, at(130*ms), "5/1 on 0", "6/1 on 1")
	r.sends(130*ms, at(180*ms), "7/1 on 1")
	r.sends(180*ms, limit.AfterSettle, "8/1 on 1")
}
