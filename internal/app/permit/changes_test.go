package permit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// strict is a server that counts in a rolling second.
type strict struct {
	mu            sync.Mutex
	base          time.Time
	rule          rule.Amendable
	sent, refused int
}

func (s *strict) arrive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if !s.rule.Arrive(mono.Of(s.base, time.Now()), 1) {
		s.refused++
	}
}

// turn gives the server another limit, with what was sent before, and returns what it counted.
func (s *strict) turn(t *testing.T, n int64) (sent int) {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, s.sent, s.rule = s.sent, 0, r
	return sent
}

// A limit changes while calls wait for it: up, down, and to another window, and a strict server refuses none.
// A paused limit grants nothing.
func TestALimitChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=20/s")})
		server := &strict{base: time.Now()}
		server.turn(t, 20)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for range 40 {
			c := d.program()
			wg.Go(func() {
				for ctx.Err() == nil {
					got, err := d.post(ctx, c, "/v1/acquire", `{"limit": "orders"}`)
					if err != nil || got.status != 200 {
						continue
					}
					server.arrive()
					d.post(ctx, c, "/v1/settle", settled(got.Permits[0], `"result":"accepted"`))
				}
			})
		}
		time.Sleep(10 * time.Second)
		rate := func(n int64, change func(), least int) {
			t.Helper()
			if n == 50 { // a server allows more before its client sends more
				server.turn(t, n)
			}
			change()
			server.turn(t, n)
			time.Sleep(10 * time.Second)
			if sent := server.turn(t, n); sent < least {
				t.Errorf("%d in 10 s of %d/s, want %d", sent, n, least)
			}
		}
		change := func(name, to, want string) func() {
			return func() {
				if said, err := d.Change(name, to); err != nil || said != want {
					t.Errorf("%q, %v, want %q", said, err, want)
				}
			}
		}
		rate(50, change("orders", "50/s", "limit orders: 20/s is 50/s now"), 450)
		rate(10, change("", "10/s", "limit orders: 50/s is 10/s now"), 80)
		rate(10, change("orders: 10/s", "1/100ms", "limit orders: 10/s is 1/100ms now"), 60)
		rate(10, func() { d.Change("", "10/s") }, 80)
		if server.refused > 0 {
			t.Errorf("%d were refused", server.refused)
		}
		if err := d.Rest("orders", time.Time{}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		server.turn(t, 10)
		if got := d.says(d.program(), "/v1/acquire", `{"limit": "orders", "max_wait": 0.1}`); got.kind() != "paused" || !strings.Contains(got.Detail, "by paceline ctl") {
			t.Errorf("in a pause: %+v", got)
		}
		time.Sleep(time.Minute)
		if sent := server.turn(t, 10); sent > 0 || len(d.Rests()) != 1 || d.Rests()[0].Resource != "orders" {
			t.Errorf("%d sent in a pause; %+v", sent, d.Rests())
		}
		rate(10, func() { d.Resume("") }, 80)
		if len(d.Rests()) > 0 || server.refused > 0 {
			t.Errorf("at the end: %+v, %d refused", d.Rests(), server.refused)
		}
	})
}

// What a user means has to be one rate. A daemon that joins with the rates of the start changes nothing.
func TestMeantRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=20/s+1000/h", "mail=14/s")})
		for _, c := range []struct{ name, to, said, err string }{
			{"", "5/m", "", "5/m for which limit? expected its name before it: mail: 14/s or orders: 20/s or orders: 1000/h"},
			{"", "5/s", "", "for which limit?"},
			{"", "900/h", "limit orders: 1000/h is 900/h now", ""},
			{"orders", "9/s", "limit orders: 20/s is 9/s now", ""},
			{"14/s", "15/s", "limit mail: 14/s is 15/s now", ""},
			{"post", "15/s", "", "for which limit?"},
			{"mail", "none", "", `"none"`},
		} {
			if said, err := d.Change(c.name, c.to); said != c.said || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s: %q, %v", c.name, c.to, said, err)
			}
		}
		if err := d.Add(limitsOf(t, "orders=20/s+1000/h"), nil); err != nil {
			t.Errorf("the same limit as at the start: %v", err)
		}
		if err := d.Add(limitsOf(t, "orders=21/s"), nil); err == nil {
			t.Error("another one is taken")
		}
		if got := strings.Join(d.Rates(), ", "); got != "mail: 15/s, orders: 9/s, orders: 900/h" || len(d.Changes()) != 3 {
			t.Errorf("%s; %v", got, d.Changes())
		}
		if err := d.Rest("post", time.Time{}); err == nil || !strings.Contains(err.Error(), `no limit "post", expected mail or orders`) {
			t.Error(errors.Unwrap(err), err)
		}
	})
}
