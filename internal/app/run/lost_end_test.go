package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// A power cut takes the ends of the results and of the journal, each at any byte. The next run
// sends again what has no result any more, and names each as a possible repeat.
func TestBothEndsLost(t *testing.T) {
	const n = 40
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
			time.Sleep(20 * time.Millisecond)
			fmt.Fprint(w, q.URL.RawQuery)
		})
		b.config.Concurrency = 8
		b.config.Limits = []format.Rate{{N: 100, Per: time.Second, Text: "100/s"}}
		var lines []string
		for i := range n {
			lines = append(lines, request(fmt.Sprint("r", i), url+"?"+fmt.Sprint(i)))
		}
		b.run(lines...)
		results, sends := contents(t, b.config.Out), contents(t, output.JournalOf(b.config.Out))
		rng := rand.New(rand.NewPCG(7, 8))
		repeats, unnamed := 0, 0
		for trial := range 30 {
			time.Sleep(time.Hour)
			b.config.Out = filepath.Join(t.TempDir(), "out.jsonl")
			// The journal always has its first line, without which the run says that it is gone.
			first := bytes.IndexByte(sends, '\n') + 1
			kept := results[:rng.IntN(len(results))]
			if trial%3 == 0 { // at the end of a line
				kept = kept[:bytes.LastIndexByte(kept, '\n')+1]
			}
			write(t, b.config.Out, kept)
			// One that ends with a whole line by chance looks like one that lost nothing.
			cut := first + 1 + rng.IntN(len(sends)-first-1)
			if sends[cut-1] == '\n' {
				cut--
			}
			write(t, output.JournalOf(b.config.Out), sends[:cut])
			whole := bytes.Count(kept, []byte("\n"))
			got := b.run(lines...)
			if got.err != nil || got.SkippedDone != whole || got.Done != n-whole {
				t.Fatalf("%+v, %v", got.Totals, got.err)
			}
			for _, r := range got.results {
				if bytes.Contains(kept, []byte(`{"id":"`+r.ID+`","state"`)) && strings.Contains(string(kept[:bytes.LastIndexByte(kept, '\n')+1]), `{"id":"`+r.ID+`","state"`) {
					continue
				}
				if repeats++; !r.PossibleRepeat {
					unnamed++
				}
			}
		}
		if unnamed > 0 || repeats < n {
			t.Errorf("%d of %d repeats are not named", unnamed, repeats)
		}
	})
}

// A run that ends in another way names nothing that was not sent: neither after its end, nor after
// a kill between the results and the journal.
func TestNoEndLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {})
		b.config.Concurrency = 1
		b.run(requests(10, url)...)
		sends := contents(t, output.JournalOf(b.config.Out))
		for name, text := range map[string][]byte{"at its end": sends, "before the last answer": sends[:bytes.LastIndexByte(sends[:len(sends)-1], '\n')+1]} {
			out := b.config.Out
			b.config.Out = filepath.Join(t.TempDir(), "out.jsonl")
			write(t, b.config.Out, contents(t, out))
			write(t, output.JournalOf(b.config.Out), text)
			if got := b.run(requests(20, url)...); got.Repeats != 0 || got.Done != 10 || strings.Contains(got.notices, "lost its end") {
				t.Errorf("%s: %+v\n%s", name, got.Totals, got.notices)
			}
			b.config.Out = out
		}
	})
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
