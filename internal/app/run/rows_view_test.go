package run

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// numberedRequests have an id and a query each.
func numberedRequests(n int, url string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = request(fmt.Sprint(i), fmt.Sprintf("%s/?%d", url, i))
	}
	return lines
}

// The view's disk fills up, and then has room again. The sending stops, nothing is written after a
// gap, and another run shows all.
func TestFullDiskUnderTheView(t *testing.T) {
	srv, seen := counting(t, func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Millisecond) }) // over several syncs
	b := newBench(t)
	b.config.Ordered, b.config.Concurrency = true, 4
	lines := numberedRequests(80, srv.URL)
	b.tamper = func(r *Run) {
		r.store.ThroughView(func(h durable.Handle) durable.Handle { return &failsOnce{Handle: h} })
	}
	first := b.run(lines...)
	if !errors.Is(first.err, ErrOutput) || first.Lost != 0 || first.lines != 0 {
		t.Fatalf("%+v, %d lines, %v", first.Totals, first.lines, first.err)
	}
	b.tamper = nil
	second := b.run(lines...)
	if second.err != nil || second.lines != 80 || first.Done+second.Done != 80 {
		t.Fatalf("again: %+v, %d lines, %v", second.Totals, second.lines, second.err)
	}
	for i := range lines {
		if n := seen(fmt.Sprint(i)); n != 1 {
			t.Errorf("%d was sent %d times", i, n)
		}
	}
}

// once fails at the first write, half-way.
type failsOnce struct {
	durable.Handle
	failed bool
}

func (o *failsOnce) Write(b []byte) (int, error) {
	if o.failed {
		return o.Handle.Write(b)
	}
	o.failed = true
	n, _ := o.Handle.Write(b[:len(b)/2])
	return n, errors.New("no space left on device")
}

// If a body cannot be written, its request counts as left, and the run stops. Another run sends it
// again, by name.
func TestFullDiskUnderBodies(t *testing.T) {
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "body of "+q.URL.RawQuery) })
	b := newBench(t)
	dir := filepath.Join(t.TempDir(), "dir")
	b.config.OutDir, b.config.Out, b.config.Concurrency = dir, output.IndexOf(dir), 2
	lines := numberedRequests(20, srv.URL)
	b.tamper = func(*Run) {
		if err := os.Remove(filepath.Join(dir, "results.unfinished")); err != nil {
			t.Error(err)
		}
	}
	first := b.run(lines...)
	if !errors.Is(first.err, ErrOutput) || first.Unwritten == 0 || first.Unwritten > 2 || first.Left != 20 || first.lines != 0 {
		t.Fatalf("%+v, %d lines, %v", first.Totals, first.lines, first.err)
	}
	b.tamper = nil
	second := b.run(lines...)
	if second.err != nil || second.Done != 20 || second.lines != 20 || second.Repeats != first.Unwritten {
		t.Fatalf("again: %+v, %d lines, %v", second.Totals, second.lines, second.err)
	}
	for i := range lines {
		id := fmt.Sprint(i)
		text, err := os.ReadFile(filepath.Join(dir, id+".txt"))
		if n := seen(id); err != nil || string(text) != "body of "+id || n != 1 && !(n == 2 && second.results[id].PossibleRepeat) {
			t.Errorf("%s was sent %d times, and has %q, %v", id, n, text, err)
		}
	}
}

// A run that is broken off shows all rows up to the first request that has not ended, and reports
// how many wait. On standard output it shows those, too.
func TestOrderedBrokenOff(t *testing.T) {
	for _, out := range []string{"file", "standard output"} {
		t.Run(out, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, url, _ := virtualBench(t, func(_ http.ResponseWriter, q *http.Request) {
					if q.URL.RawQuery == "3" {
						<-q.Context().Done()
					}
				})
				var stdout lockedBuffer
				b.config.Ordered, b.config.Concurrency, b.config.Timeout, b.config.Attempts = true, 2, time.Minute, 1000
				if out != "file" {
					b.config.Out, b.config.Stdout = "-", &stdout
				}
				b.drain = func(r *Run) {
					time.Sleep(10 * time.Second)
					r.Drain()
				}
				ran := b.run(numberedRequests(8, strings.TrimSuffix(url, "/"))...)
				var text string
				if text = stdout.String(); out == "file" {
					b, err := os.ReadFile(b.config.Out)
					if text = string(b); err != nil {
						t.Fatal(err)
					}
				}
				want := map[string]string{"file": "0 1 2", "standard output": "0 1 2 4 5 6 7"}[out]
				var got []string
				for line := range strings.Lines(text) {
					id, _, _ := strings.Cut(strings.TrimPrefix(line, `{"id":"`), `"`)
					got = append(got, id)
				}
				says := strings.Contains(ran.notices, "4 results wait in "+output.RowsOf(b.config.Out)+" for one before them that has not ended")
				if strings.Join(got, " ") != want || ran.Left != 1 || says != (out == "file") {
					t.Errorf("%q, %+v %s", got, ran.Totals, ran.notices)
				}
			})
		})
	}
}
