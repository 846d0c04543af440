package run

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit/mono"
)

// strict is a server that refuses all beyond its limit, which changes. Arrivals before a change count in the new limit.
type strict struct {
	mu       sync.Mutex
	began    time.Time
	rule     rule.Rule
	arrived  []mono.Time
	latest   time.Time
	refused  int
	answer   time.Duration // how long an answer takes
	inFlight int
	most     int // at once
}

func (s *strict) limit(n int64, per time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: per})
	if err != nil {
		panic(err)
	}
	for _, at := range s.arrived {
		r.Fits(at, 1)
		r.Count(at, 1, true)
	}
	s.rule = r
}

func (s *strict) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	now := time.Now()
	at := mono.Of(s.began, now)
	passes := s.rule.Arrive(at, 1)
	if passes {
		s.arrived = append(s.arrived, at)
	} else {
		s.refused++
	}
	s.latest, s.inFlight = now, s.inFlight+1
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	time.Sleep(s.answer)
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
	if !passes {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// within is how many requests arrived after from, until to.
func (s *strict) within(from, to time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.arrived {
		if at > mono.Time(from) && at <= mono.Time(to) {
			n++
		}
	}
	return n
}

// steered runs n requests against a strict server in a bubble, with what steer does beside them.
func steered(t *testing.T, n int, limits []string, keys int, s *strict, steer func(*Run), tune ...func(*Config)) ran {
	s.began = time.Now()
	b, url, _ := virtualBench(t, s.ServeHTTP)
	for _, text := range limits {
		b.config.Limits = append(b.config.Limits, mustRate(t, text))
	}
	for i := range keys {
		name := string(rune('A' + i))
		b.config.Keys = append(b.config.Keys, format.Key{Name: name, Secret: name + "-s3cret-Of-9a7Kq"})
	}
	for _, f := range tune {
		f(&b.config)
	}
	b.drain = steer
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"%s?%d"}`, i, url, i))
	}
	return b.run(lines...)
}

func mustRate(t *testing.T, text string) format.Rate {
	l, err := rate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A limit that is lowered, raised, or gets another window holds at a strict server that changes at the
// same instant, and is used in full.
func TestSetLimitWhileItRuns(t *testing.T) {
	for _, c := range []struct {
		from, to string
		n        int64
		per      time.Duration
		least    int // requests in the 20 s after the change and a window
	}{
		{"20/s", "5/s", 5, time.Second, 93}, // a window and an answer last for 1.07 s
		{"5/s", "20/s", 20, time.Second, 380},
		{"20/s", "60/10s", 60, 10 * time.Second, 110},
		{"60/10s", "20/s", 20, time.Second, 355}, // as above
		{"1/s", "30/m", 30, time.Minute, 0},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &strict{answer: 70 * time.Millisecond}
				s.limit(mustRate(t, c.from).N, mustRate(t, c.from).Per)
				change := 10*time.Second + 330*time.Millisecond
				steered(t, 1000, []string{c.from}, 0, s, func(r *Run) {
					time.Sleep(change)
					s.limit(c.n, c.per)
					was, is, err := r.SetLimit("", c.to)
					if err != nil || was != c.from || is != c.to || strings.Join(r.Limits(), " ") != c.to {
						t.Errorf("%q became %q, %v; the limits are %q", was, is, err, r.Limits())
					}
					time.Sleep(c.per + 20*time.Second)
					if p := r.Progress(); p.Allowed != mustRate(t, c.to).Speed() {
						t.Errorf("progress says that %v/s are allowed", p.Allowed)
					}
					r.Drain()
				})
				if s.refused > 0 {
					t.Errorf("%d requests were refused", s.refused)
				}
				if got := s.within(change+c.per, change+c.per+20*time.Second); got < c.least {
					t.Errorf("%d requests in 20 s of %s, want %d at least", got, c.to, c.least)
				}
			})
		})
	}
}

// The summary's ceiling counts each limit for its own time.
func TestCeilingOfALimitThatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{answer: time.Millisecond}
		s.limit(100, time.Second)
		res := steered(t, 1200, []string{"100/s"}, 1, s, func(r *Run) {
			time.Sleep(10 * time.Second)
			s.limit(10, time.Second)
			if _, _, err := r.SetLimit("100/s", "10/s"); err != nil {
				t.Error(err)
			}
		})
		if res.Percent < 90 || res.Percent > 100 || res.Keys[0].Percent < 90 || res.Keys[0].Percent > 100 {
			t.Errorf("%.1f %% of the ceiling, of key A %.1f %%", res.Percent, res.Keys[0].Percent)
		}
		if s.refused > 0 || res.Done != 1200 {
			t.Errorf("%d refused, %d done", s.refused, res.Done)
		}
	})
}

// A limit that cannot be meant, read or changed is an error that says what was expected, and nothing changes.
func TestSetLimitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{}
		s.limit(1, time.Second)
		steered(t, 30, []string{"1/s", "50/m"}, 0, s, func(r *Run) {
			time.Sleep(time.Second)
			for _, c := range []struct{ name, to, says string }{
				{"", "30/h", "30/h may be for each of several limits; expected the name of one before it: 1/s or 50/m"},
				{"2/s", "1/s", `no limit "2/s", expected 1/s or 50/m`},
				{"1/s", "fast", `"fast" does not say per what time, expected 100/min`},
				{"1/s", "0/s", `"0/s"`},
				{"1/s", "10 tokens/s", `"10 tokens/s" counts tokens, and 1/s counts requests; expected the same`},
				{"1/s", "10/d@Europe/Paris", "has another zone than 1/s; expected the same"},
			} {
				if _, _, err := r.SetLimit(c.name, c.to); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("limit %s %s: %v, want %s", c.name, c.to, err, c.says)
				}
			}
			if got := strings.Join(r.Limits(), " "); got != "1/s 50/m" {
				t.Errorf("the limits are %s", got)
			}
			if was, is, err := r.SetLimit("", "40/m"); was != "50/m" || is != "40/m" || err != nil {
				t.Errorf("40/m made %q of %q, %v", is, was, err)
			}
			r.Drain()
		})
	})
}

// A paused key sends nothing until then, and the others go on; a pause of all keys holds all. A request
// waits, and does not end. The progress says why.
func TestPauseAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{answer: 5 * time.Millisecond}
		s.limit(20, time.Second)
		res := steered(t, 400, []string{"10/s"}, 2, s, func(r *Run) {
			for _, c := range []struct {
				name  string
				until time.Duration // from now; 0: until resume
				in3s  int           // requests in the 3 s from a second later on
				why   string
			}{
				{"A", time.Hour, 30, "limit 10/s of key B"},
				{"", 0, 0, "paceline ctl resume, of key A"},
			} {
				var until time.Time
				if c.until > 0 {
					until = time.Now().Add(c.until)
				}
				if err := r.Pause(c.name, until); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				began := time.Since(s.began)
				time.Sleep(3*time.Second - time.Millisecond)
				if n := s.within(began, began+3*time.Second); n != c.in3s {
					t.Errorf("pause %q: %d in 3 s, want %d", c.name, n, c.in3s)
				}
				if p := r.Progress(); p.Why != c.why || (p.Why == "" || c.until == 0) && p.ETA != 0 {
					t.Errorf("pause %q: it waits for %q, ETA %v", c.name, p.Why, p.ETA)
				}
			}
			const none = `no key "C", expected A or B, or no name for all of them`
			if err := r.Pause("C", time.Time{}); err == nil || err.Error() != none {
				t.Errorf("pause C: %v", err)
			}
			began := time.Since(s.began)
			if err := r.Pause("", time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute - time.Millisecond)
			if n := s.within(began, began+time.Hour); n > 0 {
				t.Errorf("%d before the end of the pause", n)
			}
			time.Sleep(time.Second)
			if n := s.within(began, began+time.Hour); n < 20 {
				t.Errorf("%d in the first second after it", n)
			}
			if err := r.Pause("", time.Time{}); err != nil {
				t.Error(err)
			}
			if err := r.Resume(""); err != nil {
				t.Error(err)
			}
		})
		if s.refused > 0 || res.Done != 400 {
			t.Errorf("%d refused, %d done of 400", s.refused, res.Done)
		}
	})
}

// The bound of attempts in flight may be raised and lowered, and may follow the answers again.
func TestSetConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{answer: time.Second}
		s.limit(1e6, time.Second)
		atOnce := func(during time.Duration) int {
			time.Sleep(2 * time.Second)
			s.mu.Lock()
			s.most = 0
			s.mu.Unlock()
			time.Sleep(during)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.most
		}
		steered(t, 4000, []string{"1000/s"}, 0, s, func(r *Run) {
			for _, n := range []int{3, 100, 7, 0} {
				if err := r.SetConcurrency(n); err != nil {
					t.Error(err)
				}
				want := n
				if n == 0 {
					want = 10 // of --concurrency
				}
				if got := atOnce(3 * time.Second); got != want {
					t.Errorf("concurrency %d: %d at once", n, got)
				}
				if got := r.InFlight(); got != want {
					t.Errorf("concurrency %d: it says %d", n, got)
				}
			}
			for _, n := range []int{-1, 1 << 20} {
				if err := r.SetConcurrency(n); err == nil || !strings.Contains(err.Error(), "expected 1 to ") {
					t.Errorf("concurrency %d: %v", n, err)
				}
			}
			r.Drain()
		}, func(c *Config) { c.Concurrency = 10 })
	})
}

// Several groups have the attempts in flight together, also when their bound changes.
func TestSetConcurrencyOfGroups(t *testing.T) {
	c := Config{Keys: make([]format.Key, 1), Concurrency: 3}
	c.inFlight, c.inFlightFor = c.bounds()
	f := sending.NewFlights(c.inFlight, c.inFlightFor, 1, c.mostEver())
	var landed []func()
	for _, n := range []int{0, 100, 7, 2, 50} {
		f.Fix(n)
		want := n
		if n == 0 {
			want = 3
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1000 { // a full slot and an ended context are both ready: one of them is drawn
			if land, ok := f.TakeOff(ctx, 0); ok {
				landed = append(landed, land)
			}
		}
		if len(landed) != want {
			t.Errorf("concurrency %d: %d in flight", n, len(landed))
		}
		for _, land := range landed {
			land()
		}
		landed = nil
	}
}
