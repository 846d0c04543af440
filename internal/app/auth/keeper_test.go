package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// mint gives numbered tokens, each after a second.
type mint struct {
	mu    sync.Mutex
	asked []time.Duration
	began time.Time
	lasts time.Duration
	fails func(n int) error
}

func (m *mint) Issue(ctx context.Context) (Token, error) {
	m.mu.Lock()
	m.asked = append(m.asked, time.Since(m.began))
	n := len(m.asked)
	m.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return Token{}, ctx.Err()
	}
	if m.fails != nil {
		if err := m.fails(n); err != nil {
			return Token{}, err
		}
	}
	return Token{Value: fmt.Sprint("token ", n), Lasts: m.lasts}, nil
}

func (m *mint) Secrets() map[string]string { return nil }
func (m *mint) String() string             { return "the mint" }

// kept is a Keeper, and all that it said.
type kept struct {
	*Keeper
	mint *mint

	mu   sync.Mutex
	said []string
	over error
	new  []string
}

func newKept(t *testing.T, m *mint) *kept {
	m.began = time.Now()
	k := &kept{mint: m}
	k.Keeper = New(Config{
		Issuer: m,
		Notice: func(s string) { k.mu.Lock(); defer k.mu.Unlock(); k.said = append(k.said, s) },
		Over: func(err error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.over != nil {
				t.Error("over twice")
			}
			k.over = err
		},
		New: func(s string) { k.new = append(k.new, s) },
	})
	t.Cleanup(k.Close)
	return k
}

// take waits as long as it takes.
func (k *kept) take(ctx context.Context) Pass {
	for {
		if p, ok := k.Take(ctx); ok || ctx.Err() != nil || k.ctx.Err() != nil {
			return p
		}
	}
}

// A hundred that want a token, and a hundred that are refused with it, ask for one each time; one
// goes first, and the others wait for its answer.
func TestNoStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		defer k.Close()
		var all sync.WaitGroup
		var first atomic.Int32
		for range 100 {
			all.Go(func() {
				p := k.take(t.Context())
				if time.Since(k.mint.began) == time.Second {
					first.Add(1)
				}
				time.Sleep(time.Second) // on its way
				if p.Value == "token 1" && time.Since(k.mint.began) > 4*time.Second {
					t.Error("sent after it was refused")
				}
				k.Answered(p)
				time.Sleep(time.Second)
				if v := k.Refused(p, false, "401"); v != Again {
					t.Error(v)
				}
				if p = k.take(t.Context()); p.Value != "token 2" {
					t.Error(p.Value)
				}
				time.Sleep(time.Second)
				k.Answered(p)
			})
		}
		all.Wait()
		if n := first.Load(); n != 1 {
			t.Errorf("%d went first", n)
		}
		// Asked for a second, one goes first for a second, all others then: the first is refused at
		// 3 s.
		if len(k.mint.asked) != 2 || k.mint.asked[1] != 3*time.Second || len(k.new) != 2 || k.over != nil || len(k.said) > 0 {
			t.Errorf("asked %v, over %v, said %v", k.mint.asked, k.over, k.said)
		}
	})
}

func TestNobodyGivesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{fails: func(int) error { return errors.New("no such user") }})
		defer k.Close()
		if _, ok := k.Take(t.Context()); ok {
			t.Error("there is none")
		}
		synctest.Wait()
		if !errors.Is(k.over, ErrNone) || k.over.Error() != "no token: the mint: no such user" {
			t.Error(k.over)
		}
	})
}

// A token that is renewed in vain is sent until its end, and then nothing is; who gives one again
// is believed.
func TestRenewedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{lasts: 40 * time.Second, fails: func(n int) error {
			if n > 1 && n < 6 {
				return errors.New("away")
			}
			if n == 6 {
				time.Sleep(130 * time.Millisecond)
			}
			return nil
		}})
		defer k.Close()
		k.Answered(k.take(t.Context()))
		time.Sleep(29 * time.Second) // it is renewed from 30 s on
		for time.Since(k.mint.began) < 39*time.Second {
			if p := k.take(t.Context()); p.Value != "token 1" {
				t.Fatal(p.Value)
			}
			time.Sleep(100 * time.Millisecond)
		}
		p := k.take(t.Context())
		if d := time.Since(k.mint.began); p.Value != "token 6" || d != 50130*time.Millisecond {
			t.Errorf("%s at %v", p.Value, d)
		}
		synctest.Wait()
		want := []string{
			"no new token: the mint: away; asked again in 1s, the one that is there is sent meanwhile",
			"no new token: the mint: away; asked again in 2s, the one that is there is sent meanwhile",
			"no new token: the mint: away; asked again in 4s, the one that is there is sent meanwhile",
			"no new token: the mint: away; asked again in 8s, nothing is sent meanwhile",
			"there is a token again after 19.1s",
		}
		if fmt.Sprint(k.said) != fmt.Sprint(want) {
			t.Errorf("said %q at %v", k.said, k.mint.asked)
		}
	})
}

func TestRefusedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		defer k.Close()
		for i := range 2 {
			if v, want := k.Refused(k.take(t.Context()), i > 0, "answered 401 Unauthorized: who are you?"), []Verdict{Again, Over}[i]; v != want {
				t.Errorf("refusal %d: %v, want %v", i, v, want)
			}
		}
		if !errors.Is(k.over, ErrRefused) || k.over.Error() != "no token that is accepted: the server refuses new tokens, too: answered 401 Unauthorized: who are you?" {
			t.Error(k.over)
		}
		if _, ok := k.Take(t.Context()); ok {
			t.Error("it is over")
		}
	})
}

// If there was a token and none has come for Patience, the Keeper gives up. The error differs from
// the one for no token ever.
func TestNoMoreAreGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{lasts: 40 * time.Second, fails: func(n int) error {
			if n > 1 {
				return errors.New("away")
			}
			return nil
		}})
		defer k.Close()
		for k.take(t.Context()); k.ctx.Err() == nil; k.take(t.Context()) {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if !errors.Is(k.over, ErrRefused) || errors.Is(k.over, ErrNone) || !strings.HasPrefix(k.over.Error(), "no token that is accepted: none for 10m") {
			t.Error(k.over)
		}
	})
}

// Over is called once: a refusal after Patience calls it no second time.
func TestOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{lasts: 40 * time.Second, fails: func(n int) error {
			if n > 2 {
				return errors.New("away")
			}
			return nil
		}})
		defer k.Close()
		k.Refused(k.take(t.Context()), false, "answered 401")
		p := k.take(t.Context())
		for ; k.ctx.Err() == nil; k.take(t.Context()) {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if p.Value != "token 2" || !errors.Is(k.over, ErrRefused) {
			t.Fatal(p.Value, k.over)
		}
		if v := k.Refused(p, true, "answered 401"); v != Over { // newKept fails at a second call
			t.Error(v)
		}
		asked := len(k.mint.asked)
		if _, ok := k.Take(t.Context()); ok || len(k.mint.asked) != asked {
			t.Error("asked again")
		}
	})
}

// Close is there only when the one who was asked is, and he is broken off.
func TestCloseBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		time.AfterFunc(time.Second/4, k.Close)
		if p := k.take(t.Context()); p.Generation != 0 || time.Since(k.mint.began) != time.Second/4 {
			t.Error(p, time.Since(k.mint.began))
		}
	})
}

// Stop breaks off a hanging call, and no request waits any more.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		time.AfterFunc(time.Second/2, k.Stop)
		if p := k.take(t.Context()); p.Generation != 0 || time.Since(k.mint.began) != time.Second/2 {
			t.Error(p, time.Since(k.mint.began))
		}
		k.Close()
		if k.over != nil || len(k.said) > 0 {
			t.Error(k.over, k.said)
		}
		if _, ok := k.Take(t.Context()); ok || len(k.mint.asked) != 1 {
			t.Error("asked again")
		}
	})
}

// A token that has ended by the time it is there is none.
func TestExpiredAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{lasts: time.Second / 2})
		defer k.Close()
		if p := k.take(t.Context()); p.Generation != 0 {
			t.Errorf("%+v", p)
		}
		synctest.Wait()
		if !errors.Is(k.over, ErrNone) || k.over.Error() != "no token: the mint: the token has expired already, or the clock of this machine is wrong" {
			t.Error(k.over)
		}
	})
}

// If the first request with a token gets no answer, the next goes at once, before the end of the
// trial.
func TestFirstIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		defer k.Close()
		if k.Waits() {
			t.Error("nobody asked for a token, and that is waited for")
		}
		first := k.take(t.Context())
		time.AfterFunc(time.Second, func() {
			if !k.Waits() {
				t.Error("the others do not wait for the first")
			}
		})
		time.AfterFunc(2*time.Second, func() { k.Unanswered(first) })
		second := k.take(t.Context())
		if at := time.Since(k.mint.began); at != 3*time.Second || second.Value != "token 1" {
			t.Errorf("the second goes with %q after %v", second.Value, at)
		}
		var third sync.WaitGroup
		third.Go(func() { k.take(t.Context()) })
		synctest.Wait()
		if !k.Waits() {
			t.Error("the others do not wait for the second")
		}
		k.Answered(second)
		third.Wait()
		if k.Waits() {
			t.Error("the others wait although the second was answered")
		}
	})
}

// The others go as soon as the first with a token is answered, and not when it was waited for long
// enough.
func TestOthersGoOnTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		defer k.Close()
		first := k.take(t.Context())
		time.AfterFunc(2*time.Second, func() { k.Answered(first) })
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				p := k.take(t.Context())
				if at := time.Since(k.mint.began); at != 3*time.Second || p.Value != "token 1" {
					t.Errorf("goes with %q after %v, want token 1 after 3s", p.Value, at)
				}
			})
		}
		others.Wait()
	})
}

// News about an older token wakes no request that waits for another token.
func TestNoNewsWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, &mint{})
		defer k.Close()
		first := k.take(t.Context())
		k.Answered(first)
		k.Refused(first, false, "401")
		woken := make(chan time.Duration, 1)
		go func() {
			k.Take(t.Context())
			woken <- time.Since(k.mint.began)
		}()
		synctest.Wait()
		k.Answered(first)
		k.Unanswered(first)
		if at := <-woken; at != 2*time.Second {
			t.Errorf("woken after %v, want 2s, when there is a new token", at)
		}
	})
}
