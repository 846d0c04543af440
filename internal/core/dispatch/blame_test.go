package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

var (
	limited = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}}
	denied  = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true, Denied: true, Reason: "403"}
)

// work has n requests answered at once, as says for each, until nothing is left or 100 hours are over.
func (r *rig) work(n int, says func(a dispatch.Attempt) dispatch.Answer) (sent map[int][]time.Duration) {
	r.Helper()
	sent = map[int][]time.Duration{}
	for i := range n {
		r.submit(0, fmt.Sprint(i))
	}
	for now := time.Duration(0); now < 100*time.Hour; {
		a, wake, ok := r.Next(at(now))
		if !ok {
			if wake >= limit.AfterSettle {
				break
			}
			now = time.Duration(wake)
			continue
		}
		sent[a.Key] = append(sent[a.Key], now)
		r.done(now, a, says(a))
	}
	return sent
}

func twoKeys() []dispatch.Key {
	return []dispatch.Key{{Name: "good", Limiter: limit.MustRolling(1, time.Second)}, {Name: "bad", Limiter: limit.MustRolling(1, time.Second)}}
}

// A key that only refuses, beside one that serves, is asked more and more rarely, and no request pays for it.
func TestKeyThatOnlyRefuses(t *testing.T) {
	for name, no := range map[string]dispatch.Answer{"refused": limited, "denied": denied} {
		r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()...)
		sent := r.work(1000, func(a dispatch.Attempt) dispatch.Answer {
			if a.Key == 1 {
				return no
			}
			return accepted
		})
		if c := r.queue.Counts(); c.Done != 1000 || c.Dead != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		bad := sent[1]
		if n := len(bad); n < 8 || n > 14 || bad[n-1]-bad[n-2] < 2*time.Minute {
			t.Errorf("%s: the bad key was asked at %v", name, bad)
		}
		if k := r.KeyInfo(at(time.Hour), 1); name == "refused" && k.Refusals != len(bad) || name == "denied" && k.Denials < len(bad)-2 {
			t.Errorf("%s: %+v after %d", name, k, len(bad))
		}
	}
}

// A request that the bad key refused as its probe goes at once with the good one. It does not wait
// until the bad one is asked again.
func TestProbeGoesOnWithAnother(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()...)
	probes, longest, refused := 0, time.Duration(0), map[string]mono.Time{}
	r.work(100, func(a dispatch.Attempt) dispatch.Answer {
		if was, again := refused[a.Request.ID]; again {
			longest = max(longest, a.At.Sub(was))
		}
		if a.Key == 0 {
			return accepted
		}
		if probes++; r.KeyInfo(a.At, 1).Refusals > 0 {
			refused[a.Request.ID] = a.At
		}
		return limited
	})
	if c := r.queue.Counts(); c.Done != 100 || probes < 5 || longest > 2*time.Second {
		t.Errorf("%+v, %d probes, and one that was refused waited for %v", c, probes, longest)
	}
}

// A request that every key refuses is at fault itself, and the keys are not.
func TestRequestThatIsDenied(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()...)
	sent := r.work(1000, func(a dispatch.Attempt) dispatch.Answer {
		if len(a.Request.ID) == 2 {
			return denied
		}
		return accepted
	})
	if c := r.queue.Counts(); c.Done != 910 || c.Dead != 90 || len(sent[0])+len(sent[1]) > 910+6*90 {
		t.Errorf("%+v, %d and %d sent", c, len(sent[0]), len(sent[1]))
	}
	if a, b := r.KeyInfo(at(time.Hour), 0), r.KeyInfo(at(time.Hour), 1); a.Denials+b.Denials != 0 {
		t.Errorf("%+v, %+v", a, b)
	}

	r = newRig(t, queue.Config{KeepDead: -1}, twoKeys()[0]) // no other key can show it
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], denied)
	r.has("x dead")
}

// Keys that deny all are at fault, and not the requests: two are dead when that is known. The keys are asked more and more rarely, and
// when they work again all the others are served.
func TestKeysThatDenyAll(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		keys := make([]dispatch.Key, n)
		for i := range keys {
			keys[i] = dispatch.Key{Name: fmt.Sprint(i), Limiter: limit.MustRolling(1, time.Second)}
		}
		r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, keys...)
		asked, last := 0, mono.Time(0)
		r.work(300, func(a dispatch.Attempt) dispatch.Answer {
			if last = a.At; a.At < at(2*time.Hour) {
				asked++
				return denied
			}
			return accepted
		})
		// 1 s, 2 s … 512 s, and from then on 10 min: 23 probes of each key in two hours. Before that two are dead, of which each key in
		// turn may have been asked five times, and what goes beside them.
		if c := r.queue.Counts(); c.Dead != 2 || c.Done != 298 || asked > 25*n+2*5*6 || last > at(4*time.Hour) {
			t.Errorf("%d keys: %+v, asked %d times, until %v", n, c, asked, last)
		}
	}
	r := newRig(t, queue.Config{MaxAttempts: 2}, dispatch.Key{}) // for ever
	r.work(10, func(dispatch.Attempt) dispatch.Answer { return denied })
	if c := r.queue.Counts(); c.Dead < 2 || c.Dead > 10 {
		t.Errorf("%+v", c)
	}
}

// Requests in flight together are denied together, which is one pause of a second. After it one
// goes first.
func TestDeniedTogether(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "a", "b", "c", "d", "e", "f", "g", "h")
	for i, a := range r.sends(0, limit.AfterSettle, "a/1 on 0", "b/1 on 0", "c/1 on 0", "d/1 on 0", "e/1 on 0", "f/1 on 0", "g/1 on 0", "h/1 on 0") {
		r.done(time.Duration(i+1)*ms, a, denied)
	}
	if k := r.KeyInfo(at(10*ms), 0); k.Denials != 3 || k.Until != at(time.Second+3*ms) {
		t.Errorf("%+v", k)
	}
	r.has("a dead", "b dead")
	r.submit(time.Second, "i", "j")
	a := r.sends(time.Second+3*ms, at(2*time.Second+3*ms), "i/1 on 0")[0]
	r.done(time.Second+4*ms, a, denied)
	if k := r.KeyInfo(at(time.Second+4*ms), 0); k.Denials != 4 || k.Until != at(3*time.Second+4*ms) {
		t.Errorf("%+v", k)
	}
}

// Where half of the requests are forbidden some lie together again and again: it is found out how many do.
func TestHalfIsDenied(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()[0])
	rng, no, last := rand.New(rand.NewPCG(1, 2)), map[string]bool{}, mono.Time(0)
	for i := range 1000 {
		no[fmt.Sprint(i)] = rng.IntN(2) == 0
	}
	r.work(1000, func(a dispatch.Attempt) dispatch.Answer {
		if last = a.At; no[a.Request.ID] {
			return denied
		}
		return accepted
	})
	if c := r.queue.Counts(); c.Done+c.Dead != 1000 || c.Dead < 450 || c.Dead > 550 || last > at(1050*time.Second) {
		t.Errorf("%+v until %v", c, last)
	}
}

// Where requests were at fault again and again more of them are believed, until once it was the key.
func TestBeliefIsLost(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, dispatch.Key{Limiter: limit.MustRolling(1, 30*time.Second)})
	rng, dead := rand.New(rand.NewPCG(1, 2)), [3]int{}
	spells := [3]time.Duration{0, 3 * time.Hour, 6 * time.Hour} // each of half an hour; in the first, half of them
	spell := func(now mono.Time) int {
		for i := range spells {
			if d := time.Duration(now) - spells[i]; d >= 0 && d < 30*time.Minute {
				return i
			}
		}
		return -1
	}
	no := map[string]bool{}
	before, last := 0, 0
	r.work(1000, func(a dispatch.Attempt) dispatch.Answer {
		i := spell(a.At)
		if c := r.queue.Counts().Dead; c > before {
			dead[last] += c - before
			before = c
		}
		last = max(i, 0)
		if _, known := no[a.Request.ID]; !known {
			no[a.Request.ID] = i == 0 && rng.IntN(2) == 0
		}
		if i > 0 || no[a.Request.ID] {
			return denied
		}
		return accepted
	})
	if dead[0] < 20 || dead[1] < 4 || dead[2] != 2 {
		t.Errorf("%v were dead of each, want many, some and 2: %+v", dead, r.queue.Counts())
	}
}

// With one key, a request that is denied among served ones is at fault itself, at once. Adjacent
// ones are, as soon as another is served. No other suffers, and none of them lives.
func TestDeniedByOneKey(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()[0])
	last := mono.Time(0)
	r.work(300, func(a dispatch.Attempt) dispatch.Answer {
		if last = a.At; len(a.Request.ID) == 3 && a.Request.ID[2] == '0' {
			return denied
		}
		return accepted
	})
	if c := r.queue.Counts(); c.Done != 280 || c.Dead != 20 || last > at(301*time.Second) {
		t.Errorf("%+v until %v", c, last)
	}
	r = newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, twoKeys()[0])
	sent := 0
	r.work(300, func(a dispatch.Attempt) dispatch.Answer {
		sent++
		if last = a.At; len(a.Request.ID) == 2 && a.Request.ID < "40" {
			return denied
		}
		return accepted
	})
	if c := r.queue.Counts(); c.Done != 270 || c.Dead != 30 || last > at(20*time.Minute) || sent > 270+4*30 {
		t.Errorf("%+v until %v, %d sent", c, last, sent)
	}
}

// The denials of a request are forgotten once it is served, which makes room for those to come.
func TestDenialsAreForgotten(t *testing.T) {
	const n = 4500
	r := newRig(t, queue.Config{MaxLen: n, MaxAttempts: 2}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	before := map[string]bool{}
	r.work(n, func(a dispatch.Attempt) dispatch.Answer {
		if before[a.Request.ID] {
			return accepted
		}
		before[a.Request.ID] = true
		return denied
	})
	if c := r.queue.Counts(); c.Done != n {
		t.Errorf("%+v", c)
	}
}

// One request that is refused while others are served is counted; one that is refused where nothing is served waits, but not for
// ever.
func TestRefusedAlone(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 3}, dispatch.Key{Limiter: limit.MustRolling(1, time.Second)})
	tries := 0
	r.work(100, func(a dispatch.Attempt) dispatch.Answer {
		if a.Request.ID == "0" {
			tries++
			return limited
		}
		return accepted
	})
	if c := r.queue.Counts(); c.Done != 99 || c.Dead != 1 || tries != 4 {
		t.Errorf("%+v after %d tries", c, tries)
	}
	r = newRig(t, queue.Config{MaxAttempts: 2}, dispatch.Key{})
	tries = 0
	r.work(1, func(dispatch.Attempt) dispatch.Answer { tries++; return limited })
	if c := r.queue.Counts(); c.Dead != 1 || tries != 102 {
		t.Errorf("%+v after %d tries", c, tries)
	}
}

// The culprit for denials: the request if two keys agree, none yet if one was served between.
func TestDenialsTimeline(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1}, dispatch.Key{InFlight: 1}, dispatch.Key{InFlight: 1})
	denials := func(now time.Duration, a, b int) {
		t.Helper()
		if k, l := r.KeyInfo(at(now), 0), r.KeyInfo(at(now), 1); k.Denials != a || l.Denials != b {
			t.Errorf("at %v: %d and %d denials in a row, want %d and %d", now, k.Denials, l.Denials, a, b)
		}
	}
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], denied)
	denials(0, 1, 0)
	r.done(time.Second, r.sends(time.Second, limit.AfterSettle, "x/1 on 1")[0], denied)
	r.has("x dead")
	denials(time.Second, 0, 0)

	r.submit(time.Second, "f")
	f := r.sends(time.Second, limit.AfterSettle, "f/1 on 0")[0]
	r.submit(time.Second, "y")
	r.done(time.Second, r.sends(time.Second, limit.AfterSettle, "y/1 on 1")[0], denied)
	r.submit(time.Second, "z")
	r.done(time.Second, r.sends(time.Second, at(2*time.Second), "z/1 on 1")[0], denied)
	denials(time.Second, 0, 2)
	r.submit(time.Second, "g")
	r.done(time.Second, r.sends(time.Second, at(2*time.Second), "g/1 on 1")[0], accepted)
	denials(time.Second, 0, 0)
	r.done(time.Second, f, accepted)
}

// A nonce that was overtaken is refused rightly; one that nothing later can have overtaken is not, and that is counted.
func TestNoncesInOrder(t *testing.T) {
	r := newRig(t, queue.Config{MaxAttempts: 1}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, Gap: 10 * ms, InFlight: 9})
	bad := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}}
	r.submit(0, "a", "b")
	a := r.sends(0, at(10*ms), "a/1 on 0")[0]
	b := r.sends(10*ms, limit.AfterSettle, "b/1 on 0")[0]
	nonces := func(now time.Duration, want int) {
		t.Helper()
		if k := r.KeyInfo(at(now), 0); k.Nonces != want {
			t.Errorf("at %v: %d nonces in order refused in a row, want %d", now, k.Nonces, want)
		}
	}
	r.done(20*ms, a, bad)
	nonces(20*ms, 0)
	r.done(20*ms, b, bad)
	nonces(20*ms, 1)
	a = r.sends(time.Second+20*ms, at(10*time.Minute+20*ms), "a/1 on 0")[0] // not counted, with a nonce of its own
	r.done(time.Second+20*ms, a, accepted)
	nonces(time.Second+20*ms, 0)
}

// A denial is remembered only as long as the request lives. Thousands were denied by one key and
// expired; the next one does not die of it.
func TestDenialsOfWhatExpiresAreForgotten(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "bad", InFlight: 1}, dispatch.Key{Name: "good", InFlight: 1})
	now := time.Duration(0)
	deny := func(ttl time.Duration) dispatch.Attempt {
		if _, err := r.queue.Submit(at(now), queue.Request{ID: fmt.Sprint(now), Cost: limit.One, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatalf("at %v nothing goes", now)
		}
		r.Done(at(now), a, denied)
		r.Lift(at(now), a.Key) // of what is denied, nothing is served between
		now += 2 * time.Hour
		return a
	}
	full := 0
	for range 5000 {
		deny(time.Hour)
		r.Next(at(now)) // expires
		switch n := r.Denied(); {
		case n > 64:
			t.Fatalf("%d denials are kept in mind of requests that are no more", n)
		case n == 64:
			full++
		}
	}
	if full < 5000/64 {
		t.Errorf("64 denials were kept in mind %d times: they are looked through for fewer", full)
	}
	if c := r.queue.Counts(); c.Expired != 5000 || c.Dead != 0 {
		t.Errorf("%+v", c)
	}
	if a := deny(0); r.queue.Info(a.Ticket).State != queue.Waiting {
		t.Errorf("the next is %v", r.queue.Info(a.Ticket).State)
	}
}

// A request that was killed in flight and requeued has a new life: the answer of the one before is not for it.
func TestLateAnswerOfTheLifeBefore(t *testing.T) {
	for name, late := range map[string]dispatch.Answer{"accepted": accepted, "failed": {}, "invalid": {Invalid: true}, "banned": {Banned: true}} {
		r := newRig(t, queue.Config{}, dispatch.Key{}, dispatch.Key{})
		r.submit(0, "x")
		before := r.sends(0, limit.AfterSettle, "x/1 on 0")[0]
		r.queue.Kill(0, before.Ticket, "not any more")
		if err := r.queue.Requeue(0, r.queue.DeadLetters()[0].Ticket); err != nil {
			t.Fatal(err)
		}
		after := r.sends(0, limit.AfterSettle, "x/1 on 1")[0]
		r.done(0, before, late)
		r.has()
		if name != "banned" {
			r.sends(time.Minute, limit.AfterSettle)
		}
		r.done(time.Minute, after, accepted)
		r.has("x done")
	}
}

// A request that found out that a key still refuses does not wait for that key, where another is free.
func TestProbeGoesOnWithAnotherKey(t *testing.T) {
	for name, no := range map[string]dispatch.Answer{
		"no time named": limited,
		"an hour":       {Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Hour}},
		"ten minutes":   {Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 10 * time.Minute}},
	} {
		r := newRig(t, queue.Config{MaxLen: 2000}, twoKeys()...)
		waited := time.Duration(0)
		for now := time.Duration(0); now < 24*time.Hour; now += 10 * time.Second {
			r.submit(now, fmt.Sprint(now), fmt.Sprint(now, "b"))
			for then := now; r.queue.Counts().Waiting > 0 && then < now+10*time.Second; {
				a, wake, ok := r.Next(at(then))
				if !ok {
					then = min(time.Duration(wake), now+10*time.Second)
					continue
				}
				ans := accepted
				if a.Key == 1 {
					ans = no
				}
				r.done(then, a, ans)
				if a.Key == 0 {
					waited = max(waited, then-time.Duration(a.Submitted))
				}
			}
		}
		if waited > 10*time.Second {
			t.Errorf("%s: a request waited for %v beside a key that was free", name, waited)
		}
	}
}

// A request that one key alone can be asked about dies at the sixth denial.
func TestDeniedByTheOnlyKeyThere(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1}, dispatch.Key{Name: "bad"}, dispatch.Key{Name: "away"})
	r.Hold(0, 1, at(1000*time.Hour))
	sent := r.work(1, func(dispatch.Attempt) dispatch.Answer { return denied })
	if len(sent[0]) != 6 || len(sent[1]) != 0 {
		t.Errorf("sent at %v and %v", sent[0], sent[1])
	}
	r.has("0 dead")
}

// A request for which its key is to blame goes at once only if another key is there that serves.
func TestWhoMayAnother(t *testing.T) {
	for name, c := range map[string]struct {
		says   dispatch.Answer // of the other key
		then   func(r *rig, now mono.Time)
		atOnce bool
	}{
		"serving": {accepted, func(*rig, mono.Time) {}, true},
		"banned":  {accepted, func(r *rig, _ mono.Time) { r.Ban(1, "") }, false},
		"held":    {accepted, func(r *rig, now mono.Time) { r.Hold(now, 1, now.Add(time.Hour)) }, false},
		"refused": {limited, func(*rig, mono.Time) {}, false},
		"denied":  {denied, func(*rig, mono.Time) {}, false},
	} {
		r := newRig(t, queue.Config{}, dispatch.Key{InFlight: 1}, dispatch.Key{InFlight: 1})
		both := func(now time.Duration) (byKey [2]dispatch.Attempt) {
			r.submit(now, fmt.Sprint("a", now), fmt.Sprint("b", now))
			for i := range 2 {
				a, _, ok := r.Next(at(now))
				if !ok {
					t.Fatalf("%s: at %v only %d go", name, now, i)
				}
				byKey[a.Key] = a
			}
			return byKey
		}
		end := func(now time.Duration, a dispatch.Attempt, ans dispatch.Answer) {
			r.done(now, a, ans)
			r.queue.Cancel(at(now), a.Ticket)
		}
		for i, own := range []dispatch.Answer{accepted, accepted, limited} {
			now := time.Duration(i) * time.Minute
			a := both(now)
			end(now, a[0], own)
			end(now, a[1], c.says)
		}
		now := 3 * time.Minute
		a := both(now)
		c.then(r, at(now))
		r.done(now, a[0], limited)
		if wait := time.Duration(r.queue.Info(a[0].Ticket).NotBefore) - now; (wait == 0) != c.atOnce {
			t.Errorf("where the other key is %s, the request goes on after %v", name, wait)
		}
	}
}

// However certain the fault of the keys is, no request is sent without end: after a hundred denials
// that do not count, each counts.
func TestDeniedWithoutEnd(t *testing.T) {
	r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 1}, dispatch.Key{})
	times := map[string]int{}
	r.work(3, func(a dispatch.Attempt) dispatch.Answer {
		times[a.Request.ID]++
		return denied
	})
	if c := r.queue.Counts(); c.Dead != 3 || times["2"] != 101 {
		t.Errorf("%+v, denied %v", c, times)
	}
}

// The same of a nonce that is refused though it was in order.
func TestMisorderedWithoutEnd(t *testing.T) {
	r := newRig(t, queue.Config{MaxAttempts: 1}, dispatch.Key{Nonce: &dispatch.NonceConfig{}})
	times := 0
	r.work(1, func(dispatch.Attempt) dispatch.Answer {
		times++
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}}
	})
	if c := r.queue.Counts(); c.Dead != 1 || times != 101 {
		t.Errorf("%+v after %d", c, times)
	}
}

// The key that denied a request is remembered while it is refused for other reasons: the next key
// that denies it agrees.
func TestDenialOutlivesARefusal(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1, MaxAttempts: 9}, dispatch.Key{InFlight: 1}, dispatch.Key{InFlight: 1})
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], denied)
	now := time.Second
	failed := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}}
	r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 1")[0], failed)
	r.Hold(at(now), 0, at(time.Hour))
	now = time.Minute
	r.done(now, r.sends(now, limit.AfterSettle, "x/2 on 1")[0], denied)
	r.has("x dead")
}

// A key that denies what it has denied before is asked more and more rarely, too, while no other is there.
func TestDeniedAgain(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1}, dispatch.Key{Name: "bad", InFlight: 1}, dispatch.Key{Name: "away"})
	r.Hold(0, 1, at(1000*time.Hour))
	sent := r.work(3, func(dispatch.Attempt) dispatch.Answer { return denied })[0]
	for i := 3; i < 12; i++ { // until two are believed to be at fault themselves
		if gap, want := sent[i]-sent[i-1], time.Second<<(i-3); gap != want {
			t.Errorf("denial %d comes %v after the one before, want %v", i+1, gap, want)
		}
	}
}

// A key that is denied after a limit refused it is banned, and no request is at fault: none dies, whatever other keys
// say. One at a time tests it, more and more rarely. Then all go, those that tested it, too. Nothing is learned from an
// answer to a request that went before.
func TestBannedAfterRefusals(t *testing.T) {
	for _, keys := range []int{1, 2} {
		r := newRig(t, queue.Config{MaxLen: 2000, MaxAttempts: 2}, make([]dispatch.Key, keys)...)
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		r.submit(0, ids...)
		var flying []dispatch.Attempt
		for {
			a, _, ok := r.Next(0)
			if !ok {
				break
			}
			flying = append(flying, a)
		}
		late := flying[:keys] // the first of each key
		for i, a := range flying[keys:] {
			ans := denied
			if i < keys {
				ans = limited
			}
			r.done(10*ms, a, ans)
		}
		for _, a := range late {
			r.done(20*ms, a, accepted)
		}
		asked, last := 0, mono.Time(0)
		for now := 20 * ms; r.queue.Counts().Waiting > 0; {
			a, wake, ok := r.Next(at(now))
			if !ok {
				now = time.Duration(wake)
				continue
			}
			last = a.At
			if a.At < at(time.Minute) {
				if asked++; r.queue.Counts().InFlight > 1 {
					t.Errorf("%d keys: at %v another request tests a key that is banned", keys, a.At)
				}
				r.done(now, a, denied)
				continue
			}
			r.done(now, a, accepted)
		}
		if c := r.queue.Counts(); c.Done != len(ids) || asked != 5*keys || last > at(70*time.Second) {
			t.Errorf("%d keys: %+v, asked %d times, until %v", keys, c, asked, last)
		}
	}
}
