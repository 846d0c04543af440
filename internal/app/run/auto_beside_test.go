package run

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// statedServer is a server with windows of a minute, which begin with the test. Its answers take a while.
type statedServer struct {
	n      int64
	states bool
	took   time.Duration

	mu              sync.Mutex
	rule            rule.Timed
	began           time.Time
	served, refused [3]int // of each minute
}

func (s *statedServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(s.took / 2)
	s.mu.Lock()
	at := time.Since(s.began)
	minute := min(int(at/time.Minute), len(s.served)-1)
	passes := s.rule.Arrive(mono.Time(at), 1)
	if passes {
		s.served[minute]++
	} else {
		s.refused[minute]++
	}
	s.mu.Unlock()
	if s.states {
		w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=60`, s.n))
	}
	if !passes {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	time.Sleep(s.took / 2)
}

// Beside a known limit, --limit auto takes nothing from it where the server is silent, even if many
// requests must be in flight for it. It keeps to a tighter limit that answers state. A tighter one
// that they do not state it finds by refusals.
func TestAutoBesideLimits(t *testing.T) {
	race.Without(t) // TestWrongLimit has refusals beside a limit
	for _, c := range []struct {
		name      string
		server    int64
		states    bool
		took      time.Duration
		strangers bool
		keys      int // of one organization
		least     int // of the server's limit in the first two minutes
		refused   int // the most
	}{
		{"the same, silent", 600, false, 6 * time.Second, false, 0, 99, 0},
		{"the same, silent, strangers", 600, false, 6 * time.Second, true, 0, 99, 0},
		{"the same, stated", 600, true, 6 * time.Second, false, 0, 99, 0},
		{"tighter, stated", 300, true, 300 * time.Millisecond, false, 0, 99, 1},
		{"tighter, silent", 300, false, 20 * time.Millisecond, false, 0, 70, 9},
		{"the same, silent, keys of one organization", 600, false, 6 * time.Second, false, 2, 99, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			made, err := rule.NewCalendar(rule.CalendarConfig{Limit: c.server, Window: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			s := &statedServer{n: c.server, states: c.states, took: c.took, rule: made, began: time.Now()}
			b, url, _ := virtualBench(t, s.ServeHTTP)
			b.config.Auto = &Auto{Seed: 3, Strangers: c.strangers}
			b.config.Limits = []format.Rate{minutely(600, limit.Requests, false)}
			b.config.Attempts, b.config.Concurrency, b.config.Out, b.config.Stdout = 100, 0, "-", io.Discard
			b.config.Timeout = time.Minute
			b.config.Organizations = map[string]string{}
			for i := range c.keys {
				name := fmt.Sprint("key", i)
				b.config.Keys = append(b.config.Keys, format.Key{Name: name, Secret: "secret of " + name})
				b.config.Organizations[name] = "acme"
			}
			b.drain = func(r *Run) { time.Sleep(2 * time.Minute); r.Drain() }
			if out := b.run(requests(1500, url)...); out.err != nil || len(out.Found) != 1 || c.states && out.Found[0].Seconds != 60 {
				t.Fatal(out.err, out.Found)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			served, refused := s.served[0]+s.served[1], s.refused[0]+s.refused[1]
			t.Logf("%s: served %v, refused %v", c.name, s.served, s.refused)
			if served*100 < c.least*2*int(c.server) || refused > c.refused {
				t.Errorf("%s: %d served of %d, and %d refused; want at least %d %% and at most %d",
					c.name, served, 2*c.server, refused, c.least, c.refused)
			}
		})
	}
}
