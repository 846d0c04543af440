package run

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/transport"
)

// From a fifth of a run on, the ETA differs from the real end by a tenth of the real rest at most, or by
// two seconds, for these kinds of runs. Its plan differs by a tenth, where limits bind.
func TestETAOfKinds(t *testing.T) {
	race.Without(t) // TestLLMETA asks a run beside its sends, too
	need.NotShort(t, "TestLLMETA has an ETA, and package tally the arithmetic")
	// Times are spread evenly, for each test alike. Of 300 runs with slow answers of drawn times, one ETA was wrong by
	// 10.6 % at a fifth: the mean of its last answers was that far off.
	var drawn float64
	ms := func(least, most int) time.Duration {
		drawn += math.Phi
		part := drawn - math.Floor(drawn)
		return time.Duration(least+int(part*float64(most-least+1))) * time.Millisecond
	}
	for _, c := range []struct {
		name   string
		limits []format.Rate
		n      int
		plan   bool // the limits bind, and the plan knows all of it
		set    func(v *inTime)
		input  func(n int) []string
		answer func(n int) (wait time.Duration, status int)
	}{
		{name: "a window of a second", limits: []format.Rate{perSecond(20)}, n: 600, plan: true},
		{name: "a window of a minute", limits: []format.Rate{{N: 60, Per: time.Minute, Text: "60/m"}}, n: 600, plan: true},
		{name: "a bucket", limits: []format.Rate{{N: 10, Per: time.Second, Bucket: true, Burst: 50, Text: "10/s"}}, n: 600, plan: true},
		{name: "two limits", limits: []format.Rate{perSecond(20), {N: 60, Per: time.Minute, Text: "60/m"}}, n: 480, plan: true},
		{name: "slow answers", limits: []format.Rate{perSecond(50)}, n: 800, set: func(v *inTime) { v.config.Concurrency = 8 },
			answer: func(int) (time.Duration, int) { return ms(300, 1300), 200 }},
		{name: "no limit", n: 1500, answer: func(int) (time.Duration, int) { return ms(20, 400), 200 }},
		{name: "two keys", limits: []format.Rate{perSecond(10)}, n: 1000, plan: true, set: func(v *inTime) { v.keys("a", "b") }},
		{name: "a fifth fails in passing", limits: []format.Rate{perSecond(20)}, n: 800, set: func(v *inTime) {
			v.config.Attempts, v.config.Backoff = 10, pool.Backoff{Base: 100 * time.Millisecond, Max: time.Second}
		}, answer: func(n int) (time.Duration, int) {
			if n%5 == 0 {
				return ms(20, 60), 503
			}
			return ms(20, 60), 200
		}},
		{name: "a server that gets slower", limits: []format.Rate{perSecond(100)}, n: 3000,
			answer: func(n int) (time.Duration, int) {
				return ms(50, 150) + time.Duration(min(n, 150))*1200*time.Microsecond, 200
			}},
		{name: "nonces, in order", limits: []format.Rate{perSecond(20)}, n: 400, set: func(v *inTime) { v.keys("a"); v.nonces() },
			answer: func(int) (time.Duration, int) { return ms(60, 100), 200 }},
		{name: "300/m and 10/s", limits: []format.Rate{minutely(300, 0, false), perSecond(10)}, n: 500, plan: true},
		{name: "three limits at two keys", limits: []format.Rate{minutely(60, 0, false), perSecond(2),
			{N: 12, Per: 10 * time.Second, Unit: limit.Requests, Text: "12/10s"}}, n: 300, plan: true, set: func(v *inTime) { v.keys("a", "b") }},
		{name: "half of it is used", limits: []format.Rate{perSecond(20)}, n: 300, plan: true, set: func(v *inTime) { v.config.Use = 0.5 }},
		{name: "half of a window of a minute", limits: []format.Rate{minutely(60, 0, false)}, n: 200, plan: true,
			set: func(v *inTime) { v.config.Use = 0.5 }},
		{name: "a resource takes longest", limits: []format.Rate{perSecond(20)}, n: 600, plan: true, set: searching, input: mixed},
		{name: "a resource at two keys", limits: []format.Rate{perSecond(20)}, n: 600, plan: true, input: mixed,
			set: func(v *inTime) { searching(v); v.keys("b") }},
		{name: "a resource beside slower ones", limits: []format.Rate{perSecond(2)}, n: 600, plan: true, set: searching, input: mixed},
		{name: "a Base with one server", n: 400, plan: true, set: byServers(minutely(60, 0, false))},
		{name: "a Base with two servers", n: 2000, plan: true, set: byServers(perSecond(20), minutely(300, 0, false))},
		{name: "a Base with slow answers", n: 1500, set: func(v *inTime) { byServers(perSecond(20))(v); v.config.Concurrency = 64 },
			answer: func(int) (time.Duration, int) { return ms(700, 1300), 200 }},
		{name: "a Base whose answers take longest", n: 1000, set: func(v *inTime) { byServers(perSecond(20))(v); v.config.Concurrency = 8 },
			answer: func(int) (time.Duration, int) { return ms(700, 1300), 200 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				n := 0
				drawn = 0
				v := newInTime(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					n++
					wait, status := ms(20, 60), 200
					if c.answer != nil {
						wait, status = c.answer(n)
					}
					mu.Unlock()
					time.Sleep(wait)
					w.WriteHeader(status)
				}), c.limits...)
				if c.set != nil {
					c.set(v)
				}
				type look struct {
					done float64
					at   time.Time
					eta  time.Duration
				}
				var looks []look
				var plan Plan
				ended := make(chan struct{})
				var watching sync.WaitGroup
				v.opened = func(r *Run) {
					plan = r.Plan(time.Now())
					watching.Go(func() {
						for next := 0.2; next < 0.95; {
							select {
							case <-ended:
								return
							case <-time.After(500 * time.Millisecond):
							}
							p := r.Progress()
							if done := float64(p.Done) / float64(c.n); done >= next {
								looks, next = append(looks, look{done, time.Now(), p.ETA}), next+0.1
							}
						}
					})
				}
				began := time.Now()
				input := requests(c.n, "http://server/")
				if c.input != nil {
					input = c.input(c.n)
				}
				got := v.run(input)
				end := time.Now()
				close(ended)
				watching.Wait()
				if got.err != nil || got.Done != c.n || len(looks) < 4 {
					t.Fatalf("%d of %d done, %d looks, %v", got.Done, c.n, len(looks), got.err)
				}
				var said strings.Builder
				for _, l := range looks {
					left := end.Sub(l.at)
					off := (l.eta - left).Abs()
					text := fmt.Sprintf(" %.0f%%: %.1f of %.1f s;", 100*l.done, l.eta.Seconds(), left.Seconds())
					said.WriteString(text)
					if off > left/10 && off > 2*time.Second {
						t.Errorf("after%s", text)
					}
				}
				took := end.Sub(began).Seconds()
				t.Logf("ETA after%s plan: %.1f of %.1f s", &said, plan.Seconds, took)
				if len(c.limits) > 1 && c.plan && (got.OfLimit < 95 || got.OfLimit > 100.01) {
					t.Errorf("%.1f %% of what the limits allow together", got.OfLimit)
				}
				if c.plan && math.Abs(plan.Seconds-took) > took/10 {
					t.Errorf("the plan was %.1f s, and it took %.1f s", plan.Seconds, took)
				}
			})
		})
	}
}

// byServers makes a Base that keeps the limits of several servers, as an upstream of the proxy does.
func byServers(limits ...format.Rate) func(v *inTime) {
	return func(v *inTime) {
		var targets []transport.Target
		for i, l := range limits {
			name := fmt.Sprintf("server%d", i)
			targets = append(targets, transport.Target{Name: name, Host: name, Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				made, err := l.Limiter(limit.Arrivals{})
				if err != nil {
					v.Error(err)
				}
				return made
			}})
			v.config.Servers = append(v.config.Servers, rate.Server{Name: name, Limits: []rate.Repeated{{Limit: l, Times: 1}}})
		}
		v.config.Base = transport.Must(transport.Config{Targets: targets, Base: ratetest.InMemory(v.server),
			Begins: func(r *http.Request) { sending.Begins(r.Context()) }})
	}
}

// searching limits the searches of GitHub.
func searching(v *inTime) {
	v.keys("a")
	v.config.Resources = []ResourceLimit{{Resource: "search", Rate: minutely(30, 0, false)}}
}

// mixed is requests to GitHub, of which a third are searches.
func mixed(n int) []string { return slices.Concat(lines(n/3, "/search/a"), lines(n-n/3, "/user")) }
