package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
)

// asked is one request that arrived at the server of polled.
type asked struct {
	at   time.Duration
	path string
}

// polled runs n requests in rounds, in a bubble. The server answers after 100 ms, and answers 500 to what fails names.
func polled(t *testing.T, b *bench, n int, fails string) (out ran, got []asked) {
	began := time.Now()
	var mu sync.Mutex
	b.network = fakeconn.New()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, asked{time.Since(began), r.URL.Path})
		mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		if r.URL.Path == fails {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, r.URL.Path)
	})}
	go func() { _ = srv.Serve(b.network) }()
	defer func() {
		time.Sleep(time.Minute)
		srv.Close()
	}()
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"id":"q%d","url":"http://server.test/%d"}`, i, i))
	}
	out = b.run(lines...)
	return out, got
}

// rounds returns the rounds of the results of each id, in the order of the file.
func rounds(t *testing.T, path string) map[string][]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]int{}
	for line := range strings.Lines(string(text)) {
		var r format.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		of[r.ID] = append(of[r.ID], r.Round)
	}
	return of
}

// With room in the limits, every request is asked in every round, and another run goes on with the next round.
func TestPollsEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Limits = []format.Rate{{N: 10, Per: time.Second, Text: "10/s"}}
		b.config.Every, b.config.Rounds = 5*time.Second, 3
		for again := range 2 {
			out, got := polled(t, b, 4, "")
			if out.err != nil || out.Done != 12 || out.Skipped != 0 || out.Left != 0 || out.Rounds != 3*(again+1) || len(got) != 12 {
				t.Fatalf("%v, %+v, %d asked", out.err, out.Totals, len(got))
			}
			for i, a := range got {
				if round := time.Duration(i / 4); a.at < round*5*time.Second || a.at >= round*5*time.Second+time.Second {
					t.Errorf("request %d came at %v", i, a.at)
				}
			}
			if strings.Contains(out.notices, "the limits allow") {
				t.Errorf("notices: %s", out.notices)
			}
		}
		for id, all := range rounds(t, b.config.Out) {
			if fmt.Sprint(all) != "[1 2 3 4 5 6]" {
				t.Errorf("%s: rounds %v", id, all)
			}
		}
	})
}

// Where the limits are too low for the interval, that is said, nobody is asked twice before all were asked once, and
// the limits are used.
func TestPollsWithinLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Limits = []format.Rate{{N: 2, Per: time.Second, Text: "2/s"}}
		b.config.Every, b.config.Until = 5*time.Second, time.Now().Add(10*time.Minute-2*time.Second) // between two rounds
		const n = 12
		out, got := polled(t, b, n, "/3")
		if out.err != nil || out.Left != 0 || out.Done+out.Dead != len(got) {
			t.Fatalf("%v, %+v, %d asked", out.err, out.Totals, len(got))
		}
		if want := "12 requests every 5 s need 2.4/s; the limits allow 2/s: each is asked every 6 s"; !strings.Contains(out.notices, want) {
			t.Errorf("notices: %s", out.notices)
		}
		times, window := map[string]int{}, time.Second+100*time.Millisecond
		for i, a := range got {
			times[a.path]++
			for p := range n {
				if less := times[fmt.Sprintf("/%d", p)]; times[a.path] > less+1 {
					t.Fatalf("at %v %s was asked %d times, /%d %d times", a.at, a.path, times[a.path], p, less)
				}
			}
			if i >= 2 && a.at-got[i-2].at < time.Second {
				t.Errorf("three within %v at %v", a.at-got[i-2].at, a.at)
			}
		}
		if least := int((10*time.Minute - 2*time.Second) / window * 2); len(got) < least { // each window ends 1 s after its answers
			t.Errorf("%d asked, want at least %d", len(got), least)
		}
		if turns := 120 * n; out.Done+out.Dead+out.Skipped != turns {
			t.Errorf("%d done, %d dead, %d skipped: want %d turns", out.Done, out.Dead, out.Skipped, turns)
		}
		if a := out.Age; a == nil || a.Never != 1 || a.P50 < 2500 || a.P50 > 5500 || a.P99 < 5000 || a.P99 > 12000 {
			t.Errorf("ages %+v", a)
		}
	})
}

// A wrong line is told of before anything is sent, also if the input can be read only once.
func TestPollsReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t).config
		c.Every, c.Dial = time.Second, fakeconn.New().Dial
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		err = r.Send(t.Context(), "in", strings.NewReader("{\"id\":\"a\",\"url\":\"http://server.test/\"}\n{\n"))
		if !errors.Is(err, ErrInput) || !errors.Is(err, ErrUnsent) {
			t.Error(err)
		}
		if n, err := r.Close(); err != nil || n.Sends != 0 {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// Ctrl-C in a pause between rounds ends the run at once, and nothing is left.
func TestPollsDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Every = time.Hour
		b.drain = func(r *Run) {
			time.Sleep(90 * time.Minute)
			if p := r.Progress(); p.Rounds != 2 || p.Age == nil || p.Age.P50 < 1.7e6 || p.Age.P50 > 1.9e6 {
				t.Errorf("progress: %d rounds, ages %+v", p.Rounds, p.Age)
			}
			r.Drain()
		}
		began := time.Now()
		out, got := polled(t, b, 2, "")
		if took := time.Since(began); out.err != nil || out.Left != 0 || len(got) != 4 || took > 92*time.Minute {
			t.Errorf("%v, %+v, %d asked in %v", out.err, out.Totals, len(got), took)
		}
	})
}
