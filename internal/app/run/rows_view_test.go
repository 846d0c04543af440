package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
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
		r.store.view.to.Through(func(h durable.Handle) durable.Handle { return &failsOnce{Handle: h} })
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
	b.config.OutDir, b.config.Out, b.config.Concurrency = dir, IndexOf(dir), 2
	lines := numberedRequests(20, srv.URL)
	b.tamper = func(*Run) {
		if err := os.Remove(filepath.Join(dir, unfinished)); err != nil {
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
				says := strings.Contains(ran.notices, "4 results wait in "+RowsOf(b.config.Out)+" for one before them that has not ended")
				if strings.Join(got, " ") != want || ran.Left != 1 || says != (out == "file") {
					t.Errorf("%q, %+v %s", got, ran.Totals, ran.notices)
				}
			})
		})
	}
}

// Nothing more is read while the most rows wait for one request. Reading goes on once that has
// ended.
func TestOrderHoldsBack(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int   // that are read at once
		size int64 // of the line of each
	}{{"many", mostOutOfOrder, 1}, {"large", 3, mostBytesOutOfOrder/2 + 1}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrder()
				read := 0
				go func() {
					for i := range c.n + 5 {
						o.read(format.HashOf(fmt.Sprint(i)), true)
						read++
						if i > 0 {
							o.ended(format.HashOf(fmt.Sprint(i)), span{at: int64(i), n: c.size})
						}
					}
				}()
				synctest.Wait()
				if read != c.n {
					t.Errorf("%d are read, want %d", read, c.n)
				}
				o.ended(format.HashOf("0"), span{})
				for shown := 0; shown < c.n+5; {
					s, ok := o.next()
					if !ok {
						synctest.Wait()
						continue
					}
					if s.at != int64(shown) {
						t.Fatalf("%d is shown for %d", s.at, shown)
					}
					shown++
				}
				if o.bytes != 0 || len(o.ends) != 0 {
					t.Errorf("%d bytes and %d ends are left", o.bytes, len(o.ends))
				}
			})
		})
	}
}

// FuzzOrder: in any order of ends, the shown rows are in order, each once. After rest, all ended
// ones are shown.
func FuzzOrder(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(3))
	f.Add(uint64(7), uint8(200), uint8(60))
	f.Fuzz(func(t *testing.T, seed uint64, n, never uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		o := newOrder()
		d := func(i int) format.Hash { return format.HashOf(fmt.Sprint(i)) }
		var going, shown []int
		ended := map[int]bool{}
		take := func(next func() (span, bool)) {
			for s, ok := next(); ok; s, ok = next() {
				shown = append(shown, int(s.at))
			}
		}
		for i := range int(n) {
			anew := rng.IntN(4) > 0
			if !anew || rng.IntN(3) == 0 { // a run before
				o.ended(d(i), span{at: int64(i), n: 5, isOld: true})
			}
			if o.read(d(i), anew); anew {
				going = append(going, i)
			} else {
				ended[i] = true
			}
			for len(going) > 0 && rng.IntN(2) == 0 {
				at := rng.IntN(len(going))
				if i := going[at]; rng.IntN(256) >= int(never) {
					o.ended(d(i), span{at: int64(i), n: 5})
					ended[i] = true
				}
				going = slices.Delete(going, at, at+1)
			}
			take(o.next)
		}
		if !slices.IsSorted(shown) {
			t.Fatalf("%v", shown)
		}
		for i := range shown {
			if shown[i] != i {
				t.Fatalf("%v: before those that have not ended nothing is shown", shown)
			}
		}
		take(o.rest)
		if len(shown) != len(ended) || !slices.IsSorted(shown) || o.bytes != 0 {
			t.Fatalf("%d of %d are shown: %v; %d bytes", len(shown), len(ended), shown, o.bytes)
		}
	})
}
