package dispatch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

func TestCostThatOnlyABannedKeyAllows(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(3)}, dispatch.Key{Limiter: perSecond(5)})
	r.Ban(1, "for a while")
	if _, err := r.queue.Submit(0, queue.Request{ID: "dear", Cost: limit.Cost{limit.Requests: 4}}); err != nil {
		t.Fatal(err)
	}
	r.submit(0, "cheap")
	r.sends(0, limit.AfterSettle, "cheap/1 on 0") // not held up behind it
	if dead := r.queue.DeadLetters(); len(dead) != 1 || dead[0].Reason != "cost 4 requests exceeds what any key in use allows (1 of 2 are banned)" {
		t.Errorf("dead letters %+v", dead)
	}
}

func TestInvalidAndBannedAtOnce(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{Invalid: true, Banned: true, Reason: "no such account"})
	r.has("x dead")
	if r.Exhausted() == nil {
		t.Error("the key is still in use")
	}
}

func TestBannedKeys(t *testing.T) {
	r := newRig(t, queue.Config{MaxAttempts: 1}, dispatch.Key{Name: "a", InFlight: 2}, dispatch.Key{Name: "b", InFlight: 2})
	banned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "ten 429s"}
	r.submit(0, "1", "2", "3", "4", "5")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1") // equals take turns
	r.done(10*ms, as[0], banned)
	if err := r.Exhausted(); err != nil {
		t.Errorf("b is left, but: %v", err)
	}
	r.sends(10*ms, limit.AfterSettle) // 1 waits again, for b alone
	r.done(20*ms, as[1], accepted)
	again := r.sends(20*ms, limit.AfterSettle, "1/1 on 1") // this attempt is its first: the ban was not its fault
	r.done(30*ms, as[2], banned)                           // what else was in flight on a
	r.done(30*ms, as[3], banned)
	r.done(30*ms, again[0], banned)
	r.has("2 done")
	err := r.Exhausted()
	if !errors.Is(err, dispatch.ErrExhausted) || !strings.Contains(err.Error(), "key a: ten 429s") || !strings.Contains(err.Error(), "key b: ten 429s") {
		t.Errorf("both are banned: %v", err)
	}
	r.sends(time.Hour, limit.Never)
	if c := r.queue.Counts(); c.Waiting != 4 || c.InFlight != 0 {
		t.Errorf("%+v, want the four others to wait", c)
	}

	r.Resume(0)
	as = r.sends(time.Hour, limit.AfterSettle, "1/1 on 0", "3/1 on 0")
	if info := r.KeyInfo(at(time.Hour), 0); info.State != dispatch.OK || info.InFlight != 2 || info.Sent != 4 {
		t.Errorf("%+v", info)
	}
	// News of before the ban was lifted bans nobody.
	late := as[0]
	r.Ban(0, "by hand")
	r.Resume(0)
	r.done(time.Hour+ms, late, banned)
	if info := r.KeyInfo(at(time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("late news banned the key again: %+v", info)
	}
}

func TestCoolingKeyIsNamed(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	r.submit(0, "1", "2")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1")
	r.done(0, as[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute}})
	if info := r.KeyInfo(at(ms), 0); info.State != dispatch.Cooling || info.Until != at(time.Minute) {
		t.Errorf("%+v, want cooling until 1m", info)
	}
	if info := r.KeyInfo(at(time.Minute), 0); info.State != dispatch.OK {
		t.Errorf("%+v, want ok at the instant it may go again", info)
	}
	r.sends(time.Second, limit.AfterSettle, "1/2 on 1") // the work goes on with the other
	r.Hold(at(time.Second), 1, at(time.Hour))
	if info := r.KeyInfo(at(ms), 1); info.State != dispatch.Cooling || info.State.String() != "cooling" {
		t.Errorf("%+v, want cooling", info)
	}
}

// A key that is back can be banned again, and only by what was sent since.
func TestBannedAgain(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	banned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "answered 401"}
	state := func(now time.Duration, want dispatch.KeyState) {
		t.Helper()
		if got := r.KeyInfo(at(now), 0).State; got != want {
			t.Errorf("at %v the key is %v, want %v", now, got, want)
		}
	}
	r.submit(0, "a", "b")
	old := r.sends(0, limit.AfterSettle, "a/1 on 0", "b/1 on 0")
	r.Done(at(ms), old[0], banned)
	state(ms, dispatch.Banned)
	r.Resume(0)
	state(ms, dispatch.OK)
	again := r.sends(2*ms, limit.AfterSettle, "a/1 on 0")
	r.Done(at(3*ms), old[1], banned) // of before
	state(3*ms, dispatch.OK)
	r.Done(at(4*ms), again[0], banned)
	state(4*ms, dispatch.Banned)
}
