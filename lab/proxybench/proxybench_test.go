// Package proxybench measures what `paceline proxy` adds to a request, beside
// net/http/httputil.ReverseProxy. Each is a process of its own, before the same server and under the
// same load; they take turns, and the figures are medians of rounds. It has nothing but tests.
//
// The server and the load are in this process. On a machine with few cores they take time from each
// proxy alike. The comparison is between proxies, and with no proxy at all.
//
//	go test ./lab/proxybench -bench . -benchtime 5x     five rounds: half a minute
//	go test ./lab/proxybench -bench . -benchtime 10x -beside OTHER     with another build of paceline, as of before a change
package proxybench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
)

const (
	together = 64 // connections, where many ask at once
	streams  = 20
)

var (
	requests = flag.Int("requests", 3000, "requests one after the other in a round, and ten times as many at once")
	beside   = flag.String("beside", "", "another build of paceline, to be measured as well")
)

// asPeer makes the test binary the ReverseProxy to compare with.
const asPeer = "PACELINE_TEST_AS_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) == "1" {
		fmt.Fprintln(os.Stderr, serve(os.Args[1], os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// way is one way to the server, and what was measured of it: a value a round, by its unit.
type way struct {
	name    string
	program *daemon.Config // nil: there is no proxy
	figures map[string][]float64
}

// ways are no proxy, paceline and ReverseProxy before a server. program is that of paceline.
func ways(program, url string) []*way {
	args := []string{"proxy", "--to", url, "--listen", "ADDRESS", "--admin", "off", "--log", "off", "--limit", "none"}
	all := []*way{
		{"direct", nil, map[string][]float64{}},
		{"paceline", &daemon.Config{Program: program, Args: args}, map[string][]float64{}},
		{"ReverseProxy", &daemon.Config{Program: os.Args[0], Args: []string{"ADDRESS", url}, Env: []string{asPeer + "=1"}},
			map[string][]float64{}},
	}
	if *beside != "" {
		all = append(all, &way{"beside", &daemon.Config{Program: *beside, Args: args}, map[string][]float64{}})
	}
	return all
}

// build returns the path of the program paceline.
func build(tb testing.TB) string {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skip("it reads /proc")
	}
	dir := tb.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/paceline").CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "paceline")
}

// BenchmarkProxy has a round an iteration. What is added is to the way without a proxy, one request at a time; the
// processor time is the proxy's, and the rate that of 64 clients.
func BenchmarkProxy(b *testing.B) {
	up := newUpstream()
	defer up.Close()
	all := ways(build(b), up.URL)
	for round := 0; b.Loop(); round++ {
		for i := range all { // each begins a round as often as the others
			if err := all[(i+round)%len(all)].measure(b.Context(), up.Listener.Addr().String(), *requests); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // the length of a round says nothing
	for _, w := range all {
		for unit, values := range w.figures {
			if w.program != nil && strings.HasPrefix(unit, "p") {
				unit, values = "added-"+unit, less(values, all[0].figures[unit])
			}
			b.ReportMetric(median(values), w.name+"-"+unit)
		}
	}
}

// TestRound: a short round has every figure of each way. The figures are the machine's, and are not looked at.
func TestRound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	up := newUpstream()
	defer up.Close()
	for _, w := range ways(build(t), up.URL) {
		want := []string{"p50-µs", "p99-µs", "requests/s", "first-event-ms", "event-µs"}
		if w.program != nil {
			want = append(want, "CPU-µs", "CPU-µs-of-many")
		}
		if err := w.measure(t.Context(), up.Listener.Addr().String(), 20); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		for _, unit := range want {
			if len(w.figures[unit]) != 1 {
				t.Errorf("%s: %q is missing in %v", w.name, unit, w.figures)
			}
		}
	}
}

// A proxy that does not start is an error.
func TestNoProgram(t *testing.T) {
	if err := ways("/no/such", "http://127.0.0.1:1")[1].measure(t.Context(), "", 1); err == nil {
		t.Error("a program that is not there was measured")
	}
}

// measure adds a round. The server is at an address.
func (w *way) measure(ctx context.Context, server string, n int) error {
	if w.program == nil {
		return w.pass(ctx, server, n, func() (time.Duration, error) { return 0, nil })
	}
	dir, err := os.MkdirTemp("", "proxybench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := *w.program
	c.Dir = dir
	d, err := daemon.Start(c)
	if err != nil {
		return err
	}
	defer d.Stop()
	return w.pass(ctx, d.Address, n, func() (time.Duration, error) { return used(d.PID()) })
}

// pass measures the way at an address. spent is the processor time that its proxy has used.
func (w *way) pass(ctx context.Context, address string, n int, spent func() (time.Duration, error)) error {
	// not measured: it opens the connections and warms up the code
	if _, _, err := closed(ctx, address, plainPath, together, together*20); err != nil {
		return err
	}
	keep := func(unit string, v float64) { w.figures[unit] = append(w.figures[unit], v) }
	send := func(unit string, clients, n int) (took []time.Duration, wall time.Duration, err error) {
		before, err := spent()
		if err != nil {
			return nil, 0, err
		}
		if took, wall, err = closed(ctx, address, plainPath, clients, n); err != nil {
			return nil, 0, err
		}
		after, err := spent()
		if w.program != nil {
			keep(unit, micros(after-before)/float64(n))
		}
		return took, wall, err
	}
	took, _, err := send("CPU-µs", 1, n)
	if err != nil {
		return err
	}
	keep("p50-µs", micros(at(took, 0.5)))
	keep("p99-µs", micros(at(took, 0.99)))
	_, wall, err := send("CPU-µs-of-many", together, 10*n)
	if err != nil {
		return err
	}
	keep("requests/s", float64(10*n)/wall.Seconds())
	first, under, err := events(ctx, address, streams)
	if err != nil {
		return err
	}
	keep("first-event-ms", micros(at(first, 0.5))/1000)
	keep("event-µs", micros(at(under, 0.5)))
	return nil
}

// used is the processor time of a process.
func used(pid int) (time.Duration, error) {
	const ticks = 100 // how many of the kernel's units are in a second, on all Linux there is
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in brackets, which may hold spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / ticks), errors.Join(err1, err2)
}

// at returns the value below which a part of the sorted values is.
func at(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// less has the differences between two ways, round by round.
func less(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]-b[i])
	}
	return all
}
