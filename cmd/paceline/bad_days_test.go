package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// badDay is a run of 60 requests on a day on which something breaks.
type badDay struct {
	t      *testing.T
	dir    string
	in     string
	out    string
	server *httptest.Server
	serve  atomic.Pointer[http.HandlerFunc] // what it does instead of answering
	mu     sync.Mutex
	seen   map[string]int
	errs   *syncBuffer // if not nil, what the run says goes here
}

const badDayRequests = 60

func newBadDay(t *testing.T) *badDay {
	d := &badDay{t: t, dir: t.TempDir(), seen: map[string]int{}}
	d.in, d.out = filepath.Join(d.dir, "in.jsonl"), filepath.Join(d.dir, "out.jsonl")
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		d.mu.Lock()
		d.seen[q.URL.Query().Get("id")]++
		d.mu.Unlock()
		if f := d.serve.Load(); f != nil {
			(*f)(w, q)
		}
	}))
	t.Cleanup(d.server.Close)
	if err := os.WriteFile(d.in, []byte(numbered(badDayRequests, d.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *badDay) arrived() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, k := range d.seen {
		n += k
	}
	return n
}

// run runs the command and expects an exit code and words on standard error, all of them.
func (d *badDay) run(code int, words []string, args ...string) {
	d.t.Helper()
	errs := cmp.Or(d.errs, &syncBuffer{})
	got := execute(d.t.Context(), append([]string{"run", "--out", d.out, "--progress", "off", "--backoff-base", "1ms", "--limit", "20/100ms"}, append(args, d.in)...), strings.NewReader(""), io.Discard, errs)
	stderr := errs.String()
	if got != code {
		d.t.Errorf("exit %d, want %d: %s", got, code, stderr)
	}
	for _, w := range words {
		if !strings.Contains(stderr, w) {
			d.t.Errorf("%q is not said: %s", w, stderr)
		}
	}
}

// whole asserts that each of n ids is there exactly once, and that what came twice is named.
func (d *badDay) whole(n int) {
	d.t.Helper()
	count, repeat := map[string]int{}, map[string]bool{}
	for _, r := range results(d.t, d.out) {
		count[r.ID]++
		repeat[r.ID] = r.PossibleRepeat
	}
	for i := range n {
		id := fmt.Sprint(i)
		if count[id] != 1 {
			d.t.Errorf("%s has %d results", id, count[id])
		}
		if d.seen[id] > 1 && !repeat[id] {
			d.t.Errorf("%s arrived %d times and is not named", id, d.seen[id])
		}
	}
	if len(count) != n {
		d.t.Errorf("%d ids, want %d", len(count), n)
	}
}

// Faults during a run, each driven through the command. Where a fault has more
// sides than one they are in tests of their own:
//
//	outage               TestRunWaitsForItsServer, TestRunGivesUpAnOutage, tests of stack.Breaker
//	fd limit             TestRunOutOfFiles
//	close without answer tests of internal/send, TestUnanswered, TestSoak
//	full disk            TestFullDisk of internal/app/run and internal/app/durable: each file, at each line
//	wrong certificate    TestRunWithAWrongHost
//	kill -9              TestRunKilled, TestRunBatchKilled, TestSoak
//	refusals, lies       TestSoak
func TestBadDays(t *testing.T) {
	t.Parallel()
	for _, day := range []struct {
		name string
		test func(*badDay)
	}{
		{"close without answer", closedWithoutAnswer},
		{"an answer cut short", cutShort},
		{"full disk", fullDisk},
		{"missing journal", missingJournal},
		{"growing input", growingInput},
		{"outage in the middle", outageInTheMiddle},
	} {
		t.Run(day.name, func(t *testing.T) {
			t.Parallel()
			day.test(newBadDay(t))
		})
	}
}

// Every sixth request is read and its connection closed: it is sent again, and named.
func closedWithoutAnswer(d *badDay) {
	var n atomic.Int32
	f := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%6 == 0 {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = c.Close()
			}
		}
	})
	d.serve.Store(&f)
	d.run(0, []string{"60 done", "0 dead, 0 lost", " possible repeats"}, "--attempts", "20")
	d.whole(badDayRequests)
}

// Half of each fourth body, and then nothing.
func cutShort(d *badDay) {
	var n atomic.Int32
	f := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, strings.Repeat("x", 500))
		}
	})
	d.serve.Store(&f)
	d.run(0, []string{"60 done", "0 dead, 0 lost"}, "--attempts", "20")
	d.whole(badDayRequests)
	for _, r := range results(d.t, d.out) {
		if r.Body != nil && *r.Body != "" {
			d.t.Errorf("half an answer is stored: %+v", r)
		}
	}
}

// No file may grow beyond a few kB: it stops, says so, and goes on where there is room again.
func fullDisk(d *badDay) {
	sh := need.Program(d.t, "sh")
	c := program(d.t, "run", "--limit", "none", "--concurrency", "4", "--progress", "off", "--out", d.out, d.in)
	c.Args = append([]string{"sh", "-c", `ulimit -f 8 && exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path = sh
	said, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "file too large") || d.arrived() >= badDayRequests {
		d.t.Fatalf("%v, %d arrived: %s", err, d.arrived(), said)
	}
	d.run(0, []string{"0 lost"})
	d.whole(badDayRequests)
}

// Half of the results are there, and the times of the sends are not known. The run reports that,
// and waits until no earlier send can count any more.
func missingJournal(d *badDay) {
	d.run(0, nil)
	text, err := os.ReadFile(d.out)
	if err != nil {
		d.t.Fatal(err)
	}
	half := strings.SplitAfter(string(text), "\n")[:badDayRequests/2]
	if err := os.WriteFile(d.out, []byte(strings.Join(half, "")), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Remove(d.out + ".journal"); err != nil {
		d.t.Fatal(err)
	}
	clear(d.seen) // that those are sent again is what was asked for
	began := time.Now()
	d.run(0, []string{"journal", "30 done"}, "--limit", "1000/700ms")
	if took := time.Since(began); took < 700*time.Millisecond {
		d.t.Errorf("it began within a window: %v", took)
	}
	d.whole(badDayRequests)
}

// Lines come to the input while it is read and sent: that is said, and the next run sends them.
func growingInput(d *badDay) {
	var once sync.Once
	f := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() {
			file, err := os.OpenFile(d.in, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				d.t.Error(err)
				return
			}
			defer file.Close()
			all := numbered(badDayRequests+30, d.server.URL)
			if _, err := file.WriteString(strings.TrimPrefix(all, numbered(badDayRequests, d.server.URL))); err != nil {
				d.t.Error(err)
			}
		})
	})
	d.serve.Store(&f)
	d.run(cli.ExitSomeFailed, []string{"0 lost", "30 lines were appended to " + d.in + " after it was checked, and left for another run"}, "--queue", "5", "--concurrency", "2")
	d.run(0, []string{"0 lost"})
	d.whole(badDayRequests + 30)
}

// The server goes away with requests in flight, and is back once that was said.
func outageInTheMiddle(d *badDay) {
	at, handler := d.server.Listener.Addr().String(), d.server.Config.Handler
	half, gone := make(chan struct{}), make(chan struct{})
	var n atomic.Int32
	f := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		switch k := n.Add(1); {
		case k == badDayRequests/2:
			close(half)
			fallthrough
		case k > badDayRequests/2: // they are in flight
			<-gone
		}
	})
	d.serve.Store(&f)
	var errs syncBuffer
	d.errs = &errs
	var outage sync.WaitGroup
	outage.Go(func() {
		<-half
		d.server.Listener.Close()
		d.server.CloseClientConnections()
		close(gone)
		d.server.Close()
		for end := time.Now().Add(time.Minute); !strings.Contains(errs.String(), "nothing arrives at "+at) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		again := httptest.NewUnstartedServer(handler)
		l, err := net.Listen("tcp", at)
		if err != nil {
			d.t.Error(err)
			return
		}
		_ = again.Listener.Close()
		again.Listener = l
		again.Start()
		d.t.Cleanup(again.Close)
	})
	d.run(0, []string{"60 done", "0 dead, 0 lost", "nothing arrives at " + at, " is back after "})
	outage.Wait()
	d.whole(badDayRequests)
}
