// Package tenants contains a test, called the Story, that each adapter for a job queue has to pass.
// In this test a queue has ten workers, and a strict server counts the requests of each of two
// tenants (customers) separately. By answers 429 with a Retry-After, the server asks one tenant to
// send nothing for a while. Meanwhile the jobs of the other tenant have to use at least a required
// part of their limit. At the end each job must have been served once, and no request refused for
// exceeding a limit.
package tenants

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The tenants of a Story.
const (
	Paused = "paused"
	Busy   = "busy"
)

// Workers is how many jobs a queue may work on at once.
const Workers = 10

// Window is that of the limits.
const Window = time.Second

// Header is the field of a request with its tenant.
const Header = "X-Tenant"

// Story is a pause of one tenant. The zero value is no story.
type Story struct {
	// Jobs is how many jobs the paused tenant has, and Pause how long it is asked to stay away.
	Jobs  int
	Pause time.Duration
	// Limits are the requests in any Window, by tenant.
	Limits map[string]int64
	// RTT is the time of a request.
	RTT time.Duration
}

// Short is a Story of a few seconds, and Long the whole one.
var (
	Short = Story{Jobs: 1000, Pause: 6 * time.Second, Limits: map[string]int64{Paused: 200, Busy: 40}, RTT: 10 * time.Millisecond}
	Long  = Story{Jobs: 1000, Pause: time.Minute, Limits: map[string]int64{Paused: 50, Busy: 40}, RTT: 10 * time.Millisecond}
)

// Job is a job of a tenant.
type Job struct{ Tenant, ID string }

// All returns the jobs, in the order in which they are enqueued. Those of the busy tenant are more than
// enough for the pause, and stand between the others.
func (s *Story) All() (all []Job) {
	busy := int(float64(s.Limits[Busy]) * (s.Pause.Seconds() + 3))
	p, b := 0, 0
	for p < s.Jobs || b < busy {
		if p*busy <= b*s.Jobs && p < s.Jobs || b == busy {
			all = append(all, Job{Paused, "p" + strconv.Itoa(p)})
			p++
		} else {
			all = append(all, Job{Busy, "b" + strconv.Itoa(b)})
			b++
		}
	}
	return all
}

// Limiter makes a tenant's limiter.
func (s *Story) Limiter(tenant string) (limit.Limiter, error) {
	return limit.NewRolling(limit.RollingConfig{Limit: s.Limits[tenant], Window: Window})
}

// Server is the strict server. Its clock begins at its first request.
type Server struct {
	Story

	mu      sync.Mutex
	base    time.Time
	rules   map[string]rule.Rule
	pause   time.Duration // its end; 0: it has not begun
	known   time.Duration // when the first refusal had surely come
	served  map[string][]time.Duration
	counts  map[string]int // by the id of a job
	refused int            // by a limit
	late    int            // refused in the pause after it was known
}

// NewServer returns a Server of a Story.
func NewServer(t testing.TB, s Story) *Server {
	t.Helper()
	x := &Server{Story: s, rules: map[string]rule.Rule{}, served: map[string][]time.Duration{}, counts: map[string]int{}}
	for tenant, n := range s.Limits {
		r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: Window})
		if err != nil {
			t.Fatal(err)
		}
		x.rules[tenant] = r
	}
	return x
}

func (x *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(x.RTT / 2)
	left, ok := x.decide(r.Header.Get(Header), r.URL.Query().Get("id"))
	time.Sleep(x.RTT / 2)
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int((left+time.Second-1)/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	fmt.Fprint(w, "served")
}

// decide counts a request, and returns how long its tenant has to stay away if it is refused.
func (x *Server) decide(tenant, id string) (left time.Duration, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base.IsZero() {
		x.base = time.Now()
	}
	now := time.Since(x.base)
	if tenant == Paused && x.pause == 0 {
		x.pause, x.known = now+x.Pause, now+x.RTT+200*time.Millisecond
	}
	switch {
	case tenant == Paused && now < x.pause:
		if now > x.known {
			x.late++
		}
		return x.pause - now, false
	case !x.rules[tenant].Arrive(mono.Time(now), 1):
		x.refused++
		return Window, false
	}
	x.served[tenant] = append(x.served[tenant], now)
	x.counts[id]++
	return 0, true
}

// Figures are what became of a Story.
type Figures struct {
	// Busy is the part of its limit that the busy tenant used in the pause.
	Busy float64
	// After is how long after the pause the last job of the paused tenant was served, and Least the
	// least that its limit needs for so many.
	After, Least time.Duration
	// Refused were refused by a limit, and InPause after the pause was known to those who were refused
	// first. Another process does not know it, and has ten workers.
	Refused, InPause int
	// Served is how many jobs were served, and Doubled how many of them more than once.
	Served, Doubled int
}

// Figures returns what became of it so far.
func (x *Server) Figures() (f Figures) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.Refused, f.InPause = x.refused, x.late
	for _, n := range x.counts {
		f.Served++
		if n > 1 {
			f.Doubled++
		}
	}
	begin := x.pause - x.Pause
	during := 0
	for _, at := range x.served[Busy] {
		if at >= begin && at < x.pause {
			during++
		}
	}
	f.Busy = float64(during) / (float64(x.Limits[Busy]) * x.Pause.Seconds() / Window.Seconds())
	f.Least = time.Duration((int64(x.Jobs)-1)/x.Limits[Paused]) * Window
	if done := x.served[Paused]; len(done) > 0 {
		f.After = done[len(done)-1] - x.pause
	}
	return f
}

// Until waits until n jobs were served, and fails the test after so long a time.
func (x *Server) Until(t testing.TB, n int, most time.Duration) {
	t.Helper()
	for end := time.Now().Add(most); x.Figures().Served < n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: %+v of %d jobs", most, x.Figures(), n)
		}
	}
}

// Hold fails the test if an adapter in so many processes did not do what is asked of it.
func (x *Server) Hold(t testing.TB, least float64, processes int) {
	t.Helper()
	f := x.Figures()
	t.Logf("busy %.1f %% of its limit in the pause of %v; then paused was done in %v, where its limit needs %v: %+v", 100*f.Busy,
		x.Pause, f.After.Round(time.Millisecond), f.Least, f)
	if all := len(x.All()); f.Busy < least || f.Refused != 0 || f.InPause > (processes-1)*Workers || f.Served != all || f.Doubled != 0 {
		t.Errorf("%+v: want at least %v of the busy limit, no refusal, and each of %d jobs once", f, least, all)
	}
}

// Order returns how far the jobs of the paused tenant came before and after their turn at most, as parts
// of all of them. order has their names.
func (x *Server) Order(order []string) (early, late float64) {
	for i, id := range order {
		n, _ := strconv.Atoi(id[1:])
		early, late = max(early, float64(n-i)), max(late, float64(i-n))
	}
	all := float64(max(len(order), 1))
	return early / all, late / all
}

// Request returns the request of a job.
func Request(ctx context.Context, url string, j Job) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/?id="+j.ID, nil)
	if err == nil {
		r.Header.Set(Header, j.Tenant)
	}
	return r, err
}
