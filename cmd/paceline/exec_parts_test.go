//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/capture"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// Two programs and a paceline run at one key are one client each, whatever the number of their requests
// at a time: each gets its part by weight, and the server refuses none of them.
func TestExecParts(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.NotShort(t, "package proxy divides by weight in virtual time")
	need.Program(t, "curl")
	need.Program(t, "timeout")
	s := newLawful(t, 30, time.Second)
	s.anyURL()
	var arrivals struct {
		sync.Mutex
		at [3][]time.Time // of each run, which has ids of its own
	}
	s.more = func(_ http.ResponseWriter, _ *http.Request, id int) bool {
		arrivals.Lock()
		defer arrivals.Unlock()
		run := min(id/2000, 2)
		arrivals.at[run] = append(arrivals.at[run], time.Now())
		return false
	}
	p := ofRuns(t)
	p.runOf("--to", s.URL, "--limit", "30/s") // so the daemon is there before they begin
	const seconds = 6
	curls := func(atOnce, first int) []string {
		return []string{"sh", "-c", fmt.Sprintf("timeout %d curl -sZ --parallel-immediate --parallel-max %d -o /dev/null '%s/?id=[%d-%d]'; true", seconds, atOnce, s.URL, first, first+999)}
	}
	var urls strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&urls, "%s/?id=%d\n", s.URL, 5000+i)
	}
	file := write(t, "urls.txt", urls.String())
	runs := []struct {
		flags   []string
		program []string
		said    keeper.Figures
	}{
		{flags: []string{"--weight", "3"}, program: curls(60, 0)},
		{program: curls(30, 2000)},
	}
	if _, _, err := capture.Command(""); err == nil { // Go uses no proxy for an address of this machine
		runs = append(runs, runs[1])
		runs[2].flags = []string{"--capture"}
		runs[2].program = []string{"timeout", "-s", "INT", fmt.Sprint(seconds), os.Args[0], "run", "--limit", "1000/s", "--out", filepath.Join(t.TempDir(), "out"), file}
	}
	var all sync.WaitGroup
	dir, ready := t.TempDir(), t.TempDir()
	// The programs begin together, however long a busy machine takes to start the last of them.
	const together = `: >"$0/%d"; until [ $(ls "$0" | wc -l) -ge %d ]; do sleep 0.05; done; exec "$@"`
	for i := range runs {
		r := &runs[i]
		summary := filepath.Join(dir, fmt.Sprint(i))
		args := append([]string{"exec", "--quiet", "--summary", summary, "--to", s.URL, "--limit", "30/s"}, r.flags...)
		c := p.program(append(append(args, "--", "sh", "-c", fmt.Sprintf(together, i, len(runs)), ready), r.program...)...)
		all.Go(func() {
			out, err := c.CombinedOutput()
			if _, exited := err.(*exec.ExitError); err != nil && (!exited || i != 2) { // a run that is stopped has work left
				t.Errorf("run %d: %v %s", i, err, out)
			}
			for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the daemon writes it a moment later
				b, err := os.ReadFile(summary)
				if err == nil && json.Unmarshal(b, &r.said) == nil {
					return
				}
				if time.Since(began) > patient {
					t.Errorf("run %d: %v, %s", i, err, out)
					return
				}
			}
		})
	}
	all.Wait()
	refused, passed := s.told()
	if len(refused) > 0 {
		t.Errorf("%d are refused: %v", len(refused), refused[0])
	}
	for i := range runs {
		if len(arrivals.at[i]) == 0 {
			t.Fatalf("nothing of run %d has come", i)
		}
	}
	sent, span := sentTogether(arrivals.at[:len(runs)])
	t.Logf("%d passed; in %v together %d", passed, span, sent)
	if span < time.Second {
		t.Fatalf("they sent together for %v alone", span)
	}
	for i := range runs[1:] {
		if got := float64(sent[0]) / float64(sent[i+1]); got < 2 || got > 6 {
			t.Errorf("weight 3 has %d requests, and run %d of weight 1 has %d", sent[0], i+1, sent[i+1])
		}
	}
}

// sentTogether counts what each run sent in the last three seconds in which all of them did, and returns how long
// that was. On a busy machine runs begin and end apart, and one sends its first request long before its second.
func sentTogether(runs [][]time.Time) (sent []int, span time.Duration) {
	from, to := time.Time{}, time.Now()
	for _, at := range runs {
		from, to = latest(from, at[0]), earliest(to, at[len(at)-1])
	}
	from = latest(from, to.Add(-3*time.Second))
	for _, arrivals := range runs {
		n := 0
		for _, at := range arrivals {
			if !at.Before(from) && !at.After(to) {
				n++
			}
		}
		sent = append(sent, n)
	}
	return sent, to.Sub(from)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
