package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Nonces of the driver's own scale in nanoseconds begin with that scale. Nonces without a unit
// count milliseconds.
func TestUnitOfNonces(t *testing.T) {
	for _, c := range []struct {
		epoch  time.Time
		config dispatch.NonceConfig
		want   uint64
	}{
		{time.Time{}, dispatch.NonceConfig{Unit: 1}, uint64(5 * ms)},
		{time.Time{}, dispatch.NonceConfig{}, 5},
		{time.Unix(1, 0), dispatch.NonceConfig{}, 1005},
		{time.Unix(1, 0), dispatch.NonceConfig{Unit: 1}, uint64(time.Second + 5*ms)},
		{time.Unix(-1, 0), dispatch.NonceConfig{}, 1}, // before 1970 nothing is counted
		{time.Unix(1, 0), dispatch.NonceConfig{After: 1004}, 1005},
		{time.Unix(1, 0), dispatch.NonceConfig{After: 1005}, 1006},
	} {
		n, err := dispatch.NewNonce(c.epoch, c.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Next(at(5 * ms)); got != c.want || n.Last() != got {
			t.Errorf("%v, %+v: %d, want %d", c.epoch, c.config, got, c.want)
		}
		if got := n.Next(at(5 * ms)); got != c.want+1 {
			t.Errorf("%v, %+v: then %d", c.epoch, c.config, got)
		}
	}
}

// Twelve were in flight at noon, when the key's pause for three denials began; they are no new
// evidence. A request that was sent after that is.
func TestDeniedTogetherAtNoon(t *testing.T) {
	const noon = 12 * time.Hour
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b", Limiter: limit.MustRolling(1, 100*time.Hour)})
	var ids []string
	for i := range 13 {
		ids = append(ids, fmt.Sprint("r", i))
	}
	r.submit(noon, ids...)
	var open []dispatch.Attempt
	for {
		a, _, ok := r.Next(at(noon))
		if !ok {
			break
		}
		open = append(open, a)
	}
	denials := 0
	for _, a := range open {
		if a.Key == 0 {
			denials++
			r.done(noon+time.Second, a, denied)
			if got := r.KeyInfo(at(noon+time.Second), 0).Denials; got != min(denials, 3) {
				t.Fatalf("after %d denials they count %d", denials, got)
			}
		}
	}
	if denials != 12 {
		t.Fatalf("%d of %d went by the first key", denials, len(open))
	}
	until := r.KeyInfo(at(noon+time.Second), 0).Until
	if until != at(noon+2*time.Second) {
		t.Errorf("it stays away until %v", until)
	}
	a, _, ok := r.Next(until.Add(time.Hour))
	if !ok || a.Key != 0 {
		t.Fatalf("nothing goes after that: %+v", a)
	}
	r.Done(until.Add(time.Hour), a, denied)
	if info := r.KeyInfo(until.Add(time.Hour), 0); info.Denials != 4 || info.Until != until.Add(time.Hour+2*time.Second) {
		t.Errorf("%+v", info)
	}
}

// One request that a key denies again and again, since no other can be asked, is no news about the key.
func TestDeniedAgainByTheSame(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	r.Hold(0, 1, at(100*time.Hour))
	r.submit(0, "it")
	now := mono.Time(0)
	for n := range 5 {
		a, _, ok := r.Next(now)
		if !ok || a.Key != 0 || a.Number != 1 {
			t.Fatalf("at %v: %+v", now, a)
		}
		r.Done(now, a, denied)
		if got := r.KeyInfo(now, 0).Denials; got != 1 {
			t.Errorf("denied %d times: they count %d", n+1, got)
		}
		now = now.Add(5 * time.Minute)
	}
	a, _, _ := r.Next(now)
	r.Done(now, a, denied)
	r.has("it dead")
}

// A request that a refusing key is to blame for waits until the first key is asked again, a banned one apart.
func TestAskedAgain(t *testing.T) {
	for _, banned := range []bool{false, true} {
		r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
		r.submit(0, "it")
		a := r.sends(0, limit.AfterSettle, "it/1 on 0")[0]
		r.Hold(0, 0, at(time.Hour))
		r.Hold(0, 1, at(2*time.Hour))
		if banned {
			r.Ban(1, "why")
		}
		r.done(time.Second, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}})
		ticket, _, _ := r.queue.Lookup("it")
		if info := r.queue.Info(ticket); info.NotBefore != at(time.Hour+time.Second) || info.Returned != 1 {
			t.Errorf("banned %v: %+v", banned, info)
		}
		r.Lift(at(time.Second), 0)
	}
}

// taught is a limiter that learns a server's statements.
type taught struct {
	limit.Limiter
	heard [][]limit.Rule
}

func (l *taught) State(_ mono.Time, all []limit.Rule) { l.heard = append(l.heard, slices.Clone(all)) }
func (l *taught) Refills(*limit.Outcome) uint8        { return 0 }
func (l *taught) Resume(mono.Time, []limit.Past)      {}

// The key's limiter learns an answer's statements, and its usage and lessons can be read.
func TestWhatAKeyIsTold(t *testing.T) {
	l := &taught{Limiter: limit.MustRolling(10, time.Second)}
	r := newRig(t, queue.Config{Host: initial}, dispatch.Key{Name: "a", Limiter: l}, dispatch.Key{Name: "b"})
	r.submit(0, "x1", "y2")
	r.Hold(0, 1, at(time.Hour))
	all := r.sends(0, limit.AfterSettle, "x1/1 on 0", "y2/1 on 0")
	if x, y := all[0].Host(), all[1].Host(); x != "x" || y != "y" || (&dispatch.Attempt{}).Host() != "" {
		t.Errorf("they go to %q and %q", x, y)
	}
	ans := accepted
	ans.Stated = []limit.Rule{{Burst: 7}}
	r.done(time.Second, all[0], ans)
	r.done(time.Second, all[1], accepted)
	if len(l.heard) != 1 || len(l.heard[0]) != 1 || l.heard[0][0].Burst != 7 {
		t.Errorf("it heard %v", l.heard)
	}

	limited := perSecond(10)
	r = newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b", Limiter: limited})
	r.Hold(0, 0, at(time.Hour))
	r.submit(0, "1", "2", "3")
	all = r.sends(0, limit.AfterSettle, "1/1 on 1", "2/1 on 1", "3/1 on 1")
	for _, a := range all[:2] {
		r.done(ms, a, accepted)
	}
	r.done(2*ms, all[2], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}})
	if used := r.AppendUsage([]limit.Usage{{Limit: "before"}}, at(2*ms), 1); len(used) != 2 || used[0].Limit != "before" || used[1].Allowed != 10 || used[1].Used != 3 {
		t.Errorf("used are %+v", used)
	}
	if lessons := r.Lessons(1); len(lessons) != 1 || lessons[0].Fits != 2 || r.Lessons(0) != nil {
		t.Errorf("learned is %+v", lessons)
	}
}

// Hosts are listed in the order of their names, and a held host that is forgotten blocks nothing.
func TestAHeldHostIsForgotten(t *testing.T) {
	host := func(r *queue.Request) string { return r.ID }
	r := newRig(t, queue.Config{Host: host}, dispatch.Key{})
	for _, name := range []string{"c", "e", "a", "d", "b"} {
		r.submit(0, name)
	}
	all := r.sends(0, limit.AfterSettle, "c/1 on 0", "e/1 on 0", "a/1 on 0", "d/1 on 0", "b/1 on 0")
	for range 8 { // the order of a map is by chance
		var names strings.Builder
		for _, h := range r.Hosts(0) {
			names.WriteString(h.Host)
		}
		if names.String() != "abcde" {
			t.Fatalf("told in the order %s", names.String())
		}
	}
	for _, a := range all {
		r.done(0, a, accepted)
	}

	unreachable := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}}
	r.submit(time.Second, "gone")
	for now := at(time.Second); len(r.Down(now)) == 0; {
		a, wake, ok := r.Next(now)
		if ok {
			r.Done(now, a, unreachable)
			continue
		}
		now = wake
	}
	now := 10 * time.Second
	a, _, ok := r.Next(at(now))
	if !ok {
		t.Fatal("no probe")
	}
	r.Done(at(now), a, unreachable)
	now += 20 * time.Second
	if a, _, ok = r.Next(at(now)); !ok {
		t.Fatal("no second probe")
	}
	r.Done(at(now), a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}, Returned: true}) // it waits again at once
	if _, wake, ok := r.Next(at(now)); ok || wake >= limit.AfterSettle || wake <= at(now) {
		t.Fatalf("it is held until %v", wake)
	}
	ticket, _, _ := r.queue.Lookup("gone")
	r.queue.Cancel(at(now), ticket)
	for i := range 1100 {
		r.submit(now, fmt.Sprint("other", i))
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatal("another host does not go")
		}
		r.Done(at(now), a, accepted)
	}
	if slices.ContainsFunc(r.Hosts(at(now)), func(h dispatch.HostInfo) bool { return h.Host == "gone" }) || len(r.Down(at(now))) != 0 {
		t.Error("it is not forgotten")
	}
	if _, wake, ok := r.Next(at(now)); ok || wake != limit.Never {
		t.Errorf("nothing is to be done, until %v", wake)
	}
	r.submit(now, "gone")
	if _, _, ok := r.Next(at(now)); !ok {
		t.Error("of a host that was forgotten nothing is known, and nobody goes there")
	}
}
