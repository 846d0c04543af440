package auth

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func at(d time.Duration) mono.Time { return mono.Time(d) }

// ready looks at a life at an instant.
func ready(t *testing.T, l *life, now time.Duration, may, ask bool, wake mono.Time) {
	t.Helper()
	if m, a, w := l.Ready(at(now)); m != may || a != ask || w != wake {
		t.Fatalf("at %v: %v, ask %v, wake %v, want %v, %v, %v", now, m, a, w, may, ask, wake)
	}
}

// issued has a token be asked for and given at once.
func issued(t *testing.T, l *life, now time.Duration, value string, lasts time.Duration, want complaint) {
	t.Helper()
	l.Asks(at(now))
	if c := l.Issued(at(now), Token{value, lasts}); c != want {
		t.Fatalf("at %v: token %s: %q, want %q", now, value, c, want)
	}
}

// A token of an hour is renewed a minute before its end, beside its use, and not sent in its last
// second.
func TestRenewedBeforeItExpires(t *testing.T) {
	l := newLife(LifeConfig{})
	ready(t, l, 0, false, true, limit.AfterSettle)
	l.Asks(at(0))
	ready(t, l, 0, false, false, limit.AfterSettle) // one is asked for
	if c := l.Issued(at(2*time.Second), Token{"one", time.Hour}); c != fine {
		t.Fatal(c)
	}
	p := l.Take(at(2 * time.Second))
	l.Answered(p)
	ready(t, l, 59*time.Minute-1, true, false, limit.AfterSettle)
	ready(t, l, 59*time.Minute, true, true, limit.AfterSettle)
	l.Asks(at(59 * time.Minute))
	ready(t, l, time.Hour-time.Second-1, true, false, limit.AfterSettle)
	ready(t, l, time.Hour-time.Second, false, false, limit.AfterSettle)
	if c := l.Issued(at(time.Hour), Token{"two", time.Hour}); c != fine {
		t.Fatal(c)
	}
	// It is not suspect: no request waits for the first one with it.
	l.Take(at(time.Hour))
	ready(t, l, time.Hour, true, false, limit.AfterSettle)
	if l.Refused(at(time.Hour), p, false) != Again {
		t.Error("a refusal of the token before is no news")
	}
	ready(t, l, time.Hour, true, false, limit.AfterSettle)
}

func TestShortTokens(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 4*time.Second, fine)
	l.Answered(l.Take(at(0)))
	ready(t, l, 3*time.Second-1, true, false, limit.AfterSettle)
	ready(t, l, 3*time.Second, true, true, limit.AfterSettle)
	ready(t, l, 3800*time.Millisecond-1, true, true, limit.AfterSettle)
	ready(t, l, 3800*time.Millisecond, false, true, limit.AfterSettle)
}

// The first request with a token that follows a refused one goes alone, for five seconds at most.
func TestOneGoesFirst(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 0, fine)
	p := l.Take(at(0))
	ready(t, l, time.Second, false, false, at(trial))
	ready(t, l, trial, true, false, limit.AfterSettle)
	l.Take(at(trial)) // the first had its time: all go
	ready(t, l, trial, true, false, limit.AfterSettle)
	l.Answered(p)

	if l.Refused(at(time.Minute), p, false) != Again {
		t.Fatal("a token that served does not any more")
	}
	ready(t, l, time.Minute, false, true, limit.AfterSettle)
	issued(t, l, time.Minute, "one", 0, same)
	if next, over := l.Failed(at(time.Minute)); next != at(time.Minute+time.Second) || over {
		t.Fatalf("asked again at %v, over %v", next, over)
	}
	ready(t, l, time.Minute, false, false, at(time.Minute+time.Second))
	issued(t, l, time.Minute+time.Second, "two", 0, fine)
	p = l.Take(at(time.Minute + time.Second))
	ready(t, l, time.Minute+2*time.Second, false, false, at(time.Minute+6*time.Second))
	if !l.Unanswered(p) {
		t.Error("others wait for it")
	}
	ready(t, l, time.Minute+2*time.Second, true, false, limit.AfterSettle)
	p = l.Take(at(time.Minute + 2*time.Second))
	if !l.Answered(p) || l.Answered(p) {
		t.Error("the first answer is news, and no other")
	}
}

// Where no token ever served, the second that is refused ends it; where one has, the third.
func TestRefusedForGood(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 0, fine)
	if v := l.Refused(at(0), l.Take(at(0)), false); v != Again {
		t.Fatal(v)
	}
	ready(t, l, 0, false, true, limit.AfterSettle) // the first time, another is asked for at once
	issued(t, l, 0, "two", 0, fine)
	if v := l.Refused(at(0), l.Take(at(0)), true); v != Over {
		t.Fatal(v)
	}
	ready(t, l, time.Hour, false, false, limit.Never)

	l = newLife(LifeConfig{})
	issued(t, l, 0, "one", 0, fine)
	p := l.Take(at(0))
	l.Answered(p)
	for range 3 { // all that were in flight
		if v := l.Refused(at(0), p, false); v != Again {
			t.Fatal(v)
		}
	}
	issued(t, l, 0, "two", 0, fine)
	if v := l.Refused(at(0), l.Take(at(0)), true); v != OwnFault {
		t.Fatalf("%v: a request that two tokens did not help may be at fault", v)
	}
	ready(t, l, 0, true, false, limit.AfterSettle)
	p = l.Take(at(0))
	ready(t, l, 0, false, false, at(trial)) // another goes first
	if v := l.Refused(at(0), p, false); v != Again {
		t.Fatal(v)
	}
	ready(t, l, 0, false, false, at(time.Second)) // more and more rarely
	issued(t, l, time.Second, "three", 0, fine)
	if v := l.Refused(at(time.Second), l.Take(at(time.Second)), true); v != Over {
		t.Fatal(v)
	}
}

// One request that is always refused, among others that are served, ends nothing.
func TestOneIsAlwaysRefused(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "token 0", 0, fine)
	l.Answered(l.Take(at(0)))
	for i := range 100 {
		if v := l.Refused(at(0), l.Take(at(0)), i > 0); v != Again {
			t.Fatalf("%d: %v", i, v)
		}
		issued(t, l, 0, "token "+string(rune('a'+i)), 0, fine)
		if v := l.Refused(at(0), l.Take(at(0)), true); v != OwnFault {
			t.Fatalf("%d: %v", i, v)
		}
		l.Answered(l.Take(at(0))) // another
	}
}

func TestFailures(t *testing.T) {
	l := newLife(LifeConfig{})
	l.Asks(at(0))
	if _, over := l.Failed(at(0)); !over {
		t.Error("who gives none at first never will")
	}
	l = newLife(LifeConfig{})
	issued(t, l, 0, "old", -time.Second, expired)
	if _, over := l.Failed(at(0)); !over {
		t.Error("who gives old ones at first always will")
	}

	l = newLife(LifeConfig{Patience: time.Minute})
	issued(t, l, 0, "one", time.Hour, fine)
	l.Answered(l.Take(at(0)))
	now, delays := 59*time.Minute, []time.Duration{1, 2, 4, 8, 16, 30, 30}
	for i, d := range delays {
		l.Asks(at(now))
		next, over := l.Failed(at(now))
		if next != at(now+d*time.Second) || over != (i == len(delays)-1) {
			// It is sent until 59:59; from then on there is none, and none was given for a minute.
			t.Fatalf("failure %d at %v: next at %v, over %v", i, now, next, over)
		}
		_, lacks := l.Lacks(at(now))
		if lacks != (now >= time.Hour-time.Second) {
			t.Errorf("at %v: lacks %v", now, lacks)
		}
		now += d * time.Second
	}
}

// A token lacks where none is left that may be sent, and none was to be had: for each reason alone.
func TestLacks(t *testing.T) {
	l := newLife(LifeConfig{})
	lacks := func(now time.Duration, want bool) {
		t.Helper()
		if _, got := l.Lacks(at(now)); got != want {
			t.Errorf("at %v: lacks %v", now, got)
		}
	}
	lacks(0, false) // no call so far
	l.Asks(at(0))
	l.Failed(at(0))
	lacks(0, true)
	issued(t, l, 0, "one", time.Hour, fine)
	lacks(0, false)
	p := l.Take(at(0))
	l.Answered(p)
	l.Refused(at(time.Minute), p, false)
	lacks(time.Minute, false) // one is about to be given
	l.Asks(at(time.Minute))
	l.Failed(at(time.Minute))
	lacks(time.Minute, true)
	l.Asks(at(2 * time.Minute))
	l.Failed(at(2 * time.Minute))
	if since, _ := l.Lacks(at(3 * time.Minute)); since != at(time.Minute) {
		t.Errorf("since %v, and the first failure was after a minute", since)
	}
	lasts := 4 * time.Minute
	issued(t, l, 2*time.Minute, "two", lasts, fine)
	l.Answered(l.Take(at(2 * time.Minute)))
	l.Asks(at(5 * time.Minute))
	l.Failed(at(5 * time.Minute))
	lacks(6*time.Minute-time.Second-1, false) // the one that is there is still sent
	lacks(6*time.Minute-time.Second, true)
	if since, _ := l.Lacks(at(6 * time.Minute)); since != at(5*time.Minute) {
		t.Errorf("since %v, and these failures began after 5 minutes", since)
	}
}

// A run that had tokens gives up when for ten minutes there was none, whether the last one ended or
// was refused; and never while one may be sent.
func TestPatience(t *testing.T) {
	const patience = 10 * time.Minute
	for _, c := range []struct {
		name    string
		lasts   time.Duration
		refused bool
		fails   bool // at last
	}{{"refused", 0, true, true}, {"ended", time.Minute, false, true}, {"still there", 0, false, false}} {
		for _, generations := range []int{1, 2} {
			l := newLife(LifeConfig{})
			for range generations {
				issued(t, l, 0, c.name, c.lasts, fine)
			}
			p := l.Take(at(0))
			l.Answered(p)
			if c.refused {
				l.Refused(at(0), p, false)
			}
			for _, now := range []time.Duration{time.Hour, time.Hour + patience - 1, time.Hour + patience} {
				l.Asks(at(now))
				if _, over := l.Failed(at(now)); over != (c.fails && now == time.Hour+patience) {
					t.Errorf("%s, the token of number %d, %v after the first failure: over %v", c.name, generations, now-time.Hour, over)
				}
			}
		}
	}
}

// The token that is given in the instant in which it may no longer be sent is none.
func TestIssuedTooLate(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  complaint
	}{{3800*time.Millisecond - 1, fine}, {3800 * time.Millisecond, expired}} {
		l := newLife(LifeConfig{})
		if l.Any() {
			t.Error("there is a token before any was given")
		}
		l.Asks(at(0))
		if got := l.Issued(at(c.after), Token{"one", 4 * time.Second}); got != c.want || l.Any() != (c.want == fine) {
			t.Errorf("given after %v: %q, want %q; ever one: %v", c.after, got, c.want, l.Any())
		}
	}
}

// Another token is asked for in time while the first request with this one is still waited for.
func TestRenewedWhileOneGoesFirst(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 4*time.Second, fine)
	l.Take(at(0))
	ready(t, l, 3*time.Second, false, true, at(trial))
}

// A request is refused with another token, too, after its trial took too long and the others went
// along. Then the next request goes alone again.
func TestOwnAfterTheTrial(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 0, fine)
	p := l.Take(at(0))
	l.Answered(p)
	l.Refused(at(0), p, false)
	issued(t, l, 0, "two", 0, fine)
	slow := l.Take(at(0))
	l.Take(at(trial))
	ready(t, l, trial, true, false, limit.AfterSettle)
	if v := l.Refused(at(trial), slow, true); v != OwnFault {
		t.Fatal(v)
	}
	l.Take(at(trial))
	ready(t, l, trial, false, false, at(2*trial))
}

// Only the end of the request that goes first has another try the token at once.
func TestUnanswered(t *testing.T) {
	l := newLife(LifeConfig{})
	issued(t, l, 0, "one", 0, fine)
	first := l.Take(at(0))
	if l.Unanswered(Pass{Generation: first.Generation}) {
		t.Error("another than the first")
	}
	l.Answered(first)
	if l.Unanswered(first) {
		t.Error("nobody waits for it")
	}
	l.Refused(at(0), first, false)
	issued(t, l, 0, "two", 0, fine)
	second := l.Take(at(0))
	if l.Unanswered(first) {
		t.Error("it went with the token before")
	}
	ready(t, l, 0, false, false, at(trial))
	if !l.Unanswered(second) {
		t.Error("others wait for it")
	}
}

func TestEvery(t *testing.T) {
	l := newLife(LifeConfig{Every: 10 * time.Minute})
	issued(t, l, 0, "one", time.Minute, fine)
	l.Answered(l.Take(at(0)))
	ready(t, l, 10*time.Minute-1, true, false, limit.AfterSettle)
	ready(t, l, 10*time.Minute, true, true, limit.AfterSettle)
}
