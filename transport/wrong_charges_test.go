package transport_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// spender is a server that states the weight that is used, as Binance does. Each path has its own weight.
type spender struct {
	mu   sync.Mutex
	used int64
	cost map[string]int64

	stranger, n int // a stranger uses 90 before answer number stranger
}

func (s *spender) answer(_ int, r *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == s.stranger {
		s.used += 90
	}
	s.used += s.cost[r.URL.Path]
	return reply(200, "", "X-Mbx-Used-Weight-1m", fmt.Sprint(s.used))
}

// weighing sends requests one after the other, and returns what each did cost, and the log.
func weighing(t *testing.T, s *spender, charges []provider.Charge, paths ...string) (costs []int64, log string) {
	t.Helper()
	var b bytes.Buffer
	tr := mustNew(t, transport.Config{Base: newBase(0, s.answer), Charges: charges, Logger: slog.New(slog.NewTextHandler(&b, nil)),
		Ended: func(a transport.Attempt) { costs = append(costs, a.Cost[limit.Weight]) }})
	for _, path := range paths {
		do(t, tr, get(t, "https://api.binance.com"+path))
	}
	return costs, b.String()
}

// A cost that is too small is noticed within three answers, said once, and mended. A cost that is too
// large stays, and so do those of other routes.
func TestWrongCostsAreNoticed(t *testing.T) {
	weight := func(on string, n int64) provider.Charge {
		return provider.Charge{On: on, Cost: map[provider.Unit]int64{provider.Weight: n}}
	}
	for _, c := range []struct {
		name    string
		cost    map[string]int64
		charges []provider.Charge
		paths   []string
		want    []int64
		says    string // of the line that mends it; empty: nothing
	}{
		{"a route that no row names", map[string]int64{"/api/v3/new": 20}, nil, []string{"/api/v3/new", "/api/v3/new", "/api/v3/new", "/api/v3/new", "/api/v3/new"},
			[]int64{1, 1, 20, 20, 20}, `{on: \"GET /api/v3/new\", cost: \"20 weight\"}`},
		{"a planted cost", map[string]int64{"/api/v3/account": 20}, []provider.Charge{weight("GET /api/v3/account", 1)}, []string{"/api/v3/account", "/api/v3/account", "/api/v3/account", "/api/v3/account"},
			[]int64{1, 1, 1, 20}, `{on: \"GET /api/v3/account\", cost: \"20 weight\"}`},
		{"a charge with a condition keeps it", map[string]int64{"/x": 30}, []provider.Charge{weight("GET /x?n>5", 10), weight("GET /x", 30)}, []string{"/x?n=9", "/x?n=9", "/x?n=9", "/x?n=9", "/x?n=1"},
			[]int64{10, 10, 10, 30, 30}, `{on: \"GET /x?n>5\", cost: \"30 weight\"}`},
		{"identifiers", map[string]int64{"/x/1": 7, "/x/2": 7}, nil, []string{"/x/1", "/x/2", "/x/1", "/x/2"}, []int64{0, 0, 7, 7}, `{on: \"GET /x/*\", cost: \"7 weight\"}`},
		{"a cost that is too large", map[string]int64{"/x": 2}, []provider.Charge{weight("GET /x", 9)}, []string{"/x", "/x", "/x", "/x"}, []int64{9, 9, 9, 9}, ""},
		{"steps that differ", map[string]int64{"/x": 2, "/y": 3}, nil, []string{"/x", "/y", "/x", "/y", "/x"}, []int64{0, 0, 0, 3, 2}, `{on: \"GET /y\", cost: \"3 weight\"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			costs, log := weighing(t, &spender{cost: c.cost}, c.charges, c.paths...)
			if !slices.Equal(costs, c.want) || strings.Contains(log, "add_to_charges") != (c.says != "") || !strings.Contains(log, c.says) {
				t.Errorf("costs %v, want %v; log\n%s", costs, c.want, log)
			}
			if strings.Count(log, "level=WARN") > 2 {
				t.Errorf("said more than once:\n%s", log)
			}
		})
	}
}

// Nothing is learned while other requests are under way, nor from a stranger's single step.
func TestStepsOfOthersTeachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spender{cost: map[string]int64{"/a": 1, "/b": 50}}
		var costs []int64
		var mu sync.Mutex
		charges := []provider.Charge{{On: "GET /a", Cost: map[provider.Unit]int64{provider.Weight: 1}}, {On: "GET /b", Cost: map[provider.Unit]int64{provider.Weight: 50}}}
		tr := mustNew(t, transport.Config{Base: newBase(time.Second, s.answer), Charges: charges, Ended: func(a transport.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			if a.Request.URL.Path == "/a" {
				costs = append(costs, a.Cost[limit.Weight])
			}
		}})
		var all sync.WaitGroup
		for range 20 { // the two overlap
			all.Go(func() { do(t, tr, get(t, "https://api.binance.com/a")) })
			all.Go(func() { do(t, tr, get(t, "https://api.binance.com/b")) })
			time.Sleep(600 * time.Millisecond)
		}
		all.Wait()
		for range 3 {
			do(t, tr, get(t, "https://api.binance.com/a"))
			s.mu.Lock()
			s.used += int64(len(costs)) // a stranger, who never uses as much twice
			s.mu.Unlock()
			do(t, tr, get(t, "https://api.binance.com/a"))
		}
		if slices.Max(costs) != 1 {
			t.Errorf("costs %v", costs)
		}
	})
}

// What is used of the address is used by all keys. Of two keys that send in turn, each step has a
// request of the other in it, and teaches nothing. Before, each seemed to cost twice as much.
func TestStepsOfOtherKeysTeachNothing(t *testing.T) {
	s := &spender{cost: map[string]int64{"/a": 20, "/b": 30}}
	var costs []int64
	tr := mustNew(t, transport.Config{Base: newBase(0, s.answer), Charges: []provider.Charge{{On: "GET /a", Cost: map[provider.Unit]int64{provider.Weight: 20}}},
		Ended: func(a transport.Attempt) { costs = append(costs, a.Cost[limit.Weight]) }})
	for _, path := range []string{"/a", "/a", "/a", "/b", "/b"} {
		for _, key := range []string{"k", "l"} {
			do(t, tr, get(t, "https://api.binance.com"+path, "Authorization", "Bearer "+key))
		}
	}
	// A cost that no row names is noticed at once, whosever request it is.
	if want := []int64{20, 20, 20, 20, 20, 20, 0, 30, 30, 30}; !slices.Equal(costs, want) {
		t.Errorf("costs %v, want %v", costs, want)
	}
}

// A route counts in the resource that its answer names.
func TestRoutesMove(t *testing.T) {
	var b bytes.Buffer
	var in []string
	tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response {
		return reply(200, "", "X-RateLimit-Resource", "search", "X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "29", "X-RateLimit-Reset", "946684860")
	}), Logger: slog.New(slog.NewTextHandler(&b, nil)), Ended: func(a transport.Attempt) { in = append(in, a.Partition.Resource) }})
	for _, path := range []string{"/new/search?q=1", "/new/search?q=2", "/search/code", "/new/search"} {
		do(t, tr, get(t, "https://api.github.com"+path, "Authorization", "Bearer k"))
	}
	do(t, tr, get(t, "https://api.github.com/new/search")) // without a key it counts with its address
	if want := []string{"core", "search", "code_search", "search", "address search"}; !slices.Equal(in, want) {
		t.Errorf("counted in %q, want %q", in, want)
	}
	if log := b.String(); strings.Count(log, `{on: \"GET /new/search\", resource: \"search\"}`) != 1 || strings.Count(log, "counts in another") != 2 {
		t.Errorf("%s", log)
	}
}

// A row whose number is less than what the answer says is said to be wrong, once. Its requests reserve
// what they did cost.
func TestAnswersCorrectCharges(t *testing.T) {
	var b bytes.Buffer
	var costs []int64
	row := provider.Charge{On: "POST *", Cost: map[provider.Unit]int64{provider.Weight: 10}, Answer: map[provider.Unit]provider.Expression{provider.Weight: whole{}}}
	tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response { return reply(200, "25") }), Charges: []provider.Charge{row},
		Logger: slog.New(slog.NewTextHandler(&b, nil)), Ended: func(a transport.Attempt) { costs = append(costs, a.Cost[limit.Weight]) }})
	for range 4 {
		do(t, tr, request(t, http.MethodPost, "http://a.test/x", "{}"))
	}
	if !slices.Equal(costs, []int64{10, 25, 25, 25}) || strings.Count(b.String(), `costs="25 weight" not="10 weight" add_to_charges="{on: \"POST *\", cost: \"25 weight\"}"`) != 1 {
		t.Errorf("%v\n%s", costs, b.String())
	}
}

// whole is an Expression: the document is the number.
type whole struct{}

func (whole) Count(document []byte) (n int64, err error) {
	_, err = fmt.Sscan(string(document), &n)
	return n, err
}

// Forty requests at once of a dear route that no row names: the first goes, and shows the cost of the
// others before they go. The limits know that cost first, too: the Recorder takes a while for each. Nothing is used
// beyond the limit.
func TestUnknownRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spender{cost: map[string]int64{"/known": 10, "/dear": 50}}
		tr := mustNew(t, transport.Config{Base: newBase(time.Second, s.answer), Recorder: laggingBook{&kept{}}, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return rolling(t, 1000, time.Minute, limit.Weight)
			}
			return nil
		}, Charges: []provider.Charge{{On: "GET /known", Cost: map[provider.Unit]int64{provider.Weight: 10}}}})
		do(t, tr, get(t, "https://api.binance.com/known"))
		began := time.Now()
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { do(t, tr, get(t, "https://api.binance.com/dear")) })
		}
		time.Sleep(50 * time.Second)
		s.mu.Lock()
		if s.used > 1000 || s.used < 900 {
			t.Errorf("%d used in the first minute, of 1000", s.used)
		}
		s.mu.Unlock()
		all.Wait()
		if took := time.Since(began); s.used != 2010 || took > 130*time.Second {
			t.Errorf("%d used in the end, after %v", s.used, took)
		}
	})
}

// A stranger's use in the step of the first request is believed until the next one, and no longer.
func TestFirstStepsOfStrangers(t *testing.T) {
	s := &spender{cost: map[string]int64{"/a": 1, "/b": 5}}
	costs, log := weighing(t, s, nil, "/a", "/b", "/b", "/b")
	if !slices.Equal(costs, []int64{0, 0, 5, 5}) || strings.Count(log, "add_to_charges") != 1 {
		t.Errorf("%v %s", costs, log)
	}
	s = &spender{cost: map[string]int64{"/a": 1, "/b": 5}, stranger: 2}
	if costs, log = weighing(t, s, nil, "/a", "/b", "/b", "/b", "/b", "/b"); !slices.Equal(costs, []int64{0, 0, 95, 0, 0, 5}) || !strings.Contains(log, `cost: \"5 weight\"`) {
		t.Errorf("%v %s", costs, log)
	}
}

// laggingBook is a Recorder that takes a millisecond to settle.
type laggingBook struct{ *kept }

func (l laggingBook) Settle(n int64, cost limit.Cost, o limit.Outcome) {
	time.Sleep(time.Millisecond)
	l.kept.Settle(n, cost, o)
}
