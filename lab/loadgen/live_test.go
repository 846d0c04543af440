package loadgen_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest"
)

const asClient = "PACELINE_TEST_AS_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) == "1" {
		if err := loadgen.Serve(context.Background(), os.Stdin, os.Stdout, nil); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func asProcess(ctx context.Context) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), asClient+"=1")
	return c
}

// Ten virtual minutes of six clients at 75 requests a minute, in half a second; in two under the race detector, where with the other
// packages' tests beside it a request takes longer than it should take to be its turn.
func fleet(name string) loadgen.Fleet {
	scale := 1000.0
	if race.Enabled {
		scale = 300
	}
	return loadgen.Fleet{
		Client: loadgen.Config{Strategy: name, Params: strategy.Params{Rate: 1.25, Burst: 4500},
			Threads: 3, Scale: scale, Duration: 10 * time.Minute, Seed: 1},
		Processes: 2,
		Server:    ratetest.GCRAConfig{Level: 100},
	}
}

// What clients report is what the server saw, in one process and in two.
func TestFleet(t *testing.T) {
	for _, processes := range []bool{false, true} {
		for _, strategy := range []string{"exponential-increase-gradual-decrease", "aimd"} {
			t.Run(fmt.Sprintf("%s, processes %t", strategy, processes), func(t *testing.T) {
				t.Parallel()
				f := fleet(strategy)
				if processes {
					f.Command = asProcess
				}
				lines := 0
				f.Tell = func(l loadgen.Line) {
					if lines++; !strings.HasPrefix(l.String(), map[int]string{0: "0#", 1: "1#"}[l.Process]) {
						t.Errorf("%s", l)
					}
				}
				r, err := f.Run(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", strategy, err)
				}
				// Requests under way at the end are answered, and nobody hears it.
				unheard := r.Server.Accepted + r.Server.Limited - r.Requests
				if unheard < 0 || unheard > r.Clients || lines != r.Requests {
					t.Errorf("%s: the server answered %d + %d, clients heard %d in %d lines", strategy, r.Server.Accepted, r.Server.Limited, r.Requests, lines)
				}
				// 100 and ten minutes of refill, and what the processes took to end.
				if r.Served < 200 || r.Served > 1000 || r.Clients != 6 || len(r.RequestCount) != 6 || !r.Complete || r.Seconds < 590 || r.Seconds > 600 || math.Abs(r.OptimumSleep-4.8) > 1e-9 {
					t.Errorf("%s: %+v", strategy, r)
				}
				sum := 0
				for _, n := range r.RequestCount {
					sum += n
				}
				if sum != r.Requests || r.Jain <= 0 || r.Jain > 1 || r.Sleep.Max < r.Sleep.Median {
					t.Errorf("%s: %+v", strategy, r)
				}
			})
		}
	}
}

// Whose next turn is after the end is there until the end.
func TestFleetStays(t *testing.T) {
	t.Parallel()
	f := fleet("fair")
	f.Client.Params = strategy.Params{Rate: 1.0 / 3600, Burst: 1}
	f.Server = ratetest.GCRAConfig{Level: 1}
	r, err := f.Run(t.Context())
	if err != nil || !r.Complete || r.Requests == 0 || r.Seconds < 590 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestFleetInterrupted(t *testing.T) {
	t.Parallel()
	f := fleet("exponential-backoff")
	f.Command, f.Client.Duration = asProcess, 1000*time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	answers := 0
	f.Tell = func(loadgen.Line) {
		if answers++; answers == 20 {
			cancel()
		}
	}
	r, err := f.Run(ctx)
	if err != nil || r.Complete || r.Requests < 20 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestClientFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	c := fleet("retry-only").Client
	c.URL = server.URL
	if err := loadgen.Run(t.Context(), c, nil, func(loadgen.Line) {}); err == nil || !strings.Contains(err.Error(), "answered 404, neither 2xx nor 429") {
		t.Errorf("%v", err)
	}
	server.Close()
	c.Duration = time.Hour
	if err := loadgen.Run(t.Context(), c, nil, func(loadgen.Line) {}); err == nil || !strings.Contains(err.Error(), "10 failures in a row") {
		t.Errorf("%v", err)
	}
	f := fleet("retry-only")
	f.Command = func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "client process") {
		t.Errorf("%v", err)
	}
}

func TestBadConfig(t *testing.T) {
	for want, change := range map[string]func(f *loadgen.Fleet){
		"Processes 0 is not above 0": func(f *loadgen.Fleet) { f.Processes = 0 },
		"Threads 0 is not above 0":   func(f *loadgen.Fleet) { f.Client.Threads = 0 },
		"Scale NaN is not above 0":   func(f *loadgen.Fleet) { f.Client.Scale = math.NaN() },
		"Duration -1s":               func(f *loadgen.Fleet) { f.Client.Duration = -time.Second },
		`strategy "best" is none of`: func(f *loadgen.Fleet) { f.Client.Strategy = "best" },
		"Rate 0":                     func(f *loadgen.Fleet) { f.Client.Params.Rate = 0 },
		"Level 4501":                 func(f *loadgen.Fleet) { f.Server.Level = 4501 },
	} {
		f := fleet("aimd")
		change(&f)
		if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, in := range []string{"", "{}", `{"url": 1}`, `{"color": "red"}`} {
		if err := loadgen.Serve(t.Context(), strings.NewReader(in), nil, nil); err == nil {
			t.Errorf("%q is a configuration", in)
		}
	}
}

// Somebody else's server: 40 requests, and then none. Processes follow two strategies in turn.
func TestAnybodysServer(t *testing.T) {
	var left atomic.Int64
	left.Store(40)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := left.Add(-1)
		w.Header().Set("X-RateLimit-Remaining", strconv.FormatInt(max(n, 0), 10))
		if n < 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	f := fleet("")
	f.Client.URL, f.Processes, f.Strategies = server.URL, 3, []string{"aimd", "exponential-backoff"}
	f.Sample = time.Minute
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Server != nil || r.URL != server.URL || r.Strategy != "aimd+exponential-backoff" || !slices.Equal(r.Strategies, []string{"aimd", "exponential-backoff", "aimd"}) {
		t.Errorf("%+v", r)
	}
	if r.Served > 40 || r.Served < 40-r.Clients || r.Limited == 0 || !r.Complete || len(r.Series.At) != 11 {
		t.Errorf("%d served, %d limited, %d samples", r.Served, r.Limited, len(r.Series.At))
	}
}
