package fairshare_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// beside is Hints beside their configured limit.
type beside struct {
	own, all limit.Limiter
	hints    *fairshare.Hints
}

func besideRolling(n int64, per time.Duration) beside {
	own := limit.MustRolling(n, per)
	h := must(fairshare.NewHints(fairshare.HintsConfig{Own: own}))
	return beside{own, limit.NewAll(own, h), h}
}

// sends sends n requests at the instant sent, which are answered at the instant now. The last
// answer has the remainder.
func (b beside) sends(n int, sent, now mono.Time, o limit.Outcome) {
	leases := make([]*limit.Sent, n)
	for i := range leases {
		leases[i] = limittest.Admit(b.all, sent, limit.One)
	}
	for i, l := range leases {
		said := o
		said.Remaining[limit.Requests] += int64(n - 1 - i)
		b.all.Settle(now, l, &said)
	}
}

// A rolling server gives usage back bit by bit, and its reset is when all of it, or some, is back.
// Where the configured limit has counted as much as the server, it decides. The first request that
// it lets go goes alone. When that was served all go by it.
func TestHintsOfWhatIsOurOwn(t *testing.T) {
	b := besideRolling(4, 10*time.Second)
	b.sends(2, 0, at(100*ms), says(2, 10*time.Second))
	b.sends(2, at(5*time.Second), at(5100*ms), says(0, 10*time.Second)) // literally: none until 15.1 s
	now := b.own.Ready(at(6*time.Second), limit.One)
	if got := b.all.Ready(at(6*time.Second), limit.One); got != now || now > at(10200*ms) {
		t.Fatalf("ready at %v, want %v, when the first two are back", got, now)
	}
	if got := limit.NotBefore(b.hints, at(6*time.Second), 1, limit.Cost{}, limit.One); got > now {
		t.Errorf("foreseen at %v", got)
	}
	asks := limittest.Admit(b.all, now, limit.One)
	if got := b.all.Ready(now, limit.One); got != at(15100*ms) {
		t.Errorf("beside the one that sees whether that is so, another is ready at %v", got)
	}
	b.all.Settle(now.Add(100*ms), asks, new(says(1, 5*time.Second)))
	if got := b.all.Ready(now.Add(100*ms), limit.One); got != now.Add(100*ms) {
		t.Errorf("when that was served, another is ready at %v", got)
	}
	b.sends(1, now.Add(100*ms), now.Add(200*ms), says(0, 10*time.Second))
	now = b.own.Ready(now.Add(200*ms), limit.One)
	limittest.Admit(b.all, now, limit.One)
	if got := b.all.Ready(now, limit.One); got != now {
		t.Errorf("what is asked once is asked again: ready at %v", got)
	}
}

// A stated reset may be two seconds late, and no more. A larger lack than was counted here went to
// strangers. The configured limit does not explain a hint of another limit.
func TestHintsThatAreNotOurOwn(t *testing.T) {
	for _, c := range []struct {
		name string
		left int64
		told time.Duration
		want time.Duration // 0: when the configured limit has it
	}{
		{"two seconds late", 0, 2999 * ms, 0},
		{"later than that", 0, 3 * time.Second, 3002 * ms},
		{"a stranger had one", -1, 2999 * ms, 3001 * ms},
	} {
		b := besideRolling(4, time.Second)
		n := 4 + int(c.left)
		b.sends(n, at(ms), at(2*ms), says(0, c.told))
		want := at(c.want)
		if c.want == 0 {
			want = b.own.Ready(at(2*ms), limit.One)
		}
		if got := b.all.Ready(at(2*ms), limit.One); got != want {
			t.Errorf("%s: ready at %v, want %v", c.name, got, want)
		}
	}
	b := besideRolling(4, time.Second)
	b.sends(1, 0, at(ms), says(5, 2*time.Second)) // there was more left than is configured
	b.sends(3, at(ms), at(2*ms), says(0, 2*time.Second))
	if got := b.all.Ready(at(2*ms), limit.One); got != at(2001*ms) {
		t.Errorf("of another limit: ready at %v", got)
	}
}

// Usage that came back while an answer was on its way was still in the server's count.
func TestHintsOfWhatCameBackMeanwhile(t *testing.T) {
	b := besideRolling(2, time.Second)
	b.sends(1, 0, at(100*ms), says(1, 3*time.Second))
	last := limittest.Admit(b.all, at(1050*ms), limit.One) // the first counts until 1.1 s
	b.all.Settle(at(1150*ms), last, new(says(0, 2*time.Second)))
	if got := b.all.Ready(at(1150*ms), limit.One); got != at(1150*ms) {
		t.Errorf("ready at %v", got)
	}
}

// Whose window is longer than is configured is refused at once, after a hundred of these and after
// a thousand more: three times in an hour.
func TestHintsOfAWindowThatIsLonger(t *testing.T) {
	b := besideRolling(1, time.Second)
	all, now, refused, served := b.all, mono.Time(0), 0, 0
	ends := mono.Time(-1)
	for now < at(time.Hour) {
		lease := limittest.Admit(all, now, limit.One)
		arrived := now.Add(ms)
		o := says(0, 0)
		if arrived < ends {
			o.Result = limit.Limited
			refused++
		} else {
			ends = arrived.Add(2 * time.Second)
			served++
		}
		o.Reset[limit.Requests] = ends.Sub(arrived)
		now = arrived.Add(ms)
		all.Settle(now, lease, &o)
		now = all.Ready(now, limit.One)
	}
	if refused != 3 || served < 1790 {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

// With many requests in flight, the room at their sending is kept for the last instants alone. A
// changed limit is not taken for the old one.
func TestHintsOfManyInFlight(t *testing.T) {
	for _, c := range []struct {
		name     string
		step     time.Duration // between one and the next
		change   bool
		explains bool
	}{
		{"at one instant", 0, false, true},
		{"each at its own", 1, false, false},
		{"another limit came", 0, true, false},
	} {
		own := &growing{Limiter: limit.MustRolling(100, time.Second)}
		h := must(fairshare.NewHints(fairshare.HintsConfig{Own: own}))
		all := limit.NewAll(own, h)
		b := beside{own, all, h}
		b.sends(1, 0, at(100*ms), says(99, 3*time.Second))
		now := at(1050 * ms)
		last := limittest.Admit(all, now, limit.One) // the first still counts, and it does not when this is answered
		for range 64 {
			now = now.Add(c.step)
			limittest.Admit(h, now.Add(1), limit.Cost{limit.Weight: 1})
		}
		own.grown = c.change
		all.Settle(at(1150*ms), last, new(says(98, 2*time.Second)))
		all.Settle(at(1150*ms), limittest.Admit(all, at(1150*ms), limit.Cost{98}), &limit.Outcome{Result: limit.Accepted})
		if got := all.Ready(at(1150*ms), limit.One) == at(1150*ms); got != c.explains {
			t.Errorf("%s: another goes: %t", c.name, got)
		}
	}
}

// growing has two limits from some instant on.
type growing struct {
	limit.Limiter
	grown bool
}

func (g *growing) Rules() []limit.Rule {
	all, _ := limit.Rules(g.Limiter)
	return all
}

func (g *growing) AppendUsage(to []limit.Usage, now mono.Time) []limit.Usage {
	if g.grown {
		to = append(to, limit.Usage{Unit: limit.Weight, Allowed: 1})
	}
	return limit.AppendUsage(to, g.Limiter, now)
}

// trusted are Hints whose configured limit of six was right once. Nothing is in flight, and two are
// left until 19.2 s.
func trusted() (b beside, now mono.Time) {
	b = besideRolling(6, 10*time.Second)
	b.sends(3, 0, at(100*ms), says(3, 10*time.Second))
	b.sends(3, at(5*time.Second), at(5100*ms), says(0, 10*time.Second))
	now = b.own.Ready(at(6*time.Second), limit.One)
	b.sends(1, now, now.Add(100*ms), says(2, 9*time.Second))
	return b, now.Add(100 * ms)
}

// Hints that believed the configured limit no longer do when a stranger shows, in a remainder or by
// a refusal.
func TestHintsOfAStrangerWhoCameLater(t *testing.T) {
	b, now := trusted()
	b.sends(2, now, now.Add(ms), says(0, 9*time.Second))
	free := b.own.Ready(now.Add(ms), limit.One)
	if got := b.all.Ready(now.Add(ms), limit.One); got != free {
		t.Fatalf("ready at %v, want %v", got, free)
	}
	b.sends(1, free, free.Add(ms), says(1, 4*time.Second)) // of three that have come back, two should be left
	if got := b.all.Ready(free.Add(2*ms), limit.One); got < at(19*time.Second) {
		t.Errorf("a stranger had one, and another is ready at %v", got)
	}

	b, now = trusted()
	if got := b.hints.Ready(now, limit.Cost{3}); got != now {
		t.Fatalf("three are left to the configured limit at %v", got)
	}
	refused := says(2, 9*time.Second)
	refused.Result = limit.Limited
	b.sends(1, now, now.Add(ms), refused)
	if got := b.hints.Ready(now.Add(ms), limit.Cost{3}); got < at(19*time.Second) {
		t.Errorf("after a refusal three are ready at %v", got)
	}
}

// A request sent before a word arrived does not show that the word was wrong.
func TestHintsOfWhatWasSentBefore(t *testing.T) {
	b := besideRolling(4, 10*time.Second)
	b.sends(2, 0, at(100*ms), says(2, 10*time.Second))
	early := limittest.Admit(b.all, at(5*time.Second), limit.One)
	b.sends(1, at(5*time.Second), at(5100*ms), says(0, 10*time.Second))
	b.all.Settle(at(5200*ms), early, new(says(0, 10*time.Second)))
	now := b.own.Ready(at(6*time.Second), limit.One)
	limittest.Admit(b.all, now, limit.One)
	if got := b.all.Ready(now, limit.One); got <= now {
		t.Errorf("two at once are to see: ready at %v", got)
	}
}
