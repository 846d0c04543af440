package ratetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Heroku's quota, from a level of 1: the timeline of one client, the log and the report.
func TestGCRA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g, err := ratetest.NewGCRA(ratetest.GCRAConfig{Level: 1, LogTo: &log})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the server's clock does not run yet
		start := time.Now()
		for _, step := range []struct {
			at     time.Duration
			status int
			left   string
		}{
			{0, 200, "0"},
			{0, 429, "0"},
			{799 * time.Millisecond, 429, "0"}, // 0.8 s each
			{800 * time.Millisecond, 200, "0"},
			{2400 * time.Millisecond, 200, "1"},
			{2 * time.Hour, 200, "4499"},
		} {
			time.Sleep(time.Until(start.Add(step.at)))
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/any/path", nil)
			r.Header.Set("User-Agent", "client 7")
			g.ServeHTTP(w, r)
			if left := w.Header().Get("RateLimit-Remaining"); w.Code != step.status || left != step.left {
				t.Errorf("at %v: %d with %s left, want %d with %s", step.at, w.Code, left, step.status, step.left)
			}
			if w.Header().Get("RateLimit-Multiplier") != "1" || w.Header().Get("Retry-After") != "" || !json.Valid(w.Body.Bytes()) {
				t.Errorf("at %v: %v %s", step.at, w.Header(), w.Body)
			}
		}
		// The bucket is full 4499·0.8 s after 2.4 s, so a refill of 3598.4 s was lost.
		if r := g.Report(); r.Accepted != 4 || r.Limited != 2 || r.Left != 4499 || r.Unused < 4497 || r.Unused > 4499 || r.Elapsed != 2*time.Hour || r.Peak != 1 {
			t.Errorf("%+v", r)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		var last ratetest.GCRALine
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 6 ||
			last != (ratetest.GCRALine{Checked: int64(2 * time.Hour), Client: "client 7", Status: 200, Remaining: 4499}) {
			t.Errorf("%d lines, %v, the last: %+v", len(lines), err, last)
		}
	})
}

// With a scale, latencies and the refill are by the server's clock. Requests under way are counted,
// and answered at the end.
func TestGCRAScaledAndConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := ratetest.NewGCRA(ratetest.GCRAConfig{Limit: 10, Window: time.Second, Scale: 10, Before: latency.Constant(time.Second), After: latency.Constant(2 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var all sync.WaitGroup
		codes := make([]int, 30)
		for i := range codes {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // 10 ms by its clock, which refills 0.1
				w := httptest.NewRecorder()
				g.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("x")))
				codes[i] = w.Code
			})
		}
		all.Wait()
		if took := time.Since(start); took != 329*time.Millisecond {
			t.Errorf("took %v", took)
		}
		for i, code := range codes {
			if want := map[bool]int{true: 200, false: 429}[i > 0 && i%10 == 0]; code != want {
				t.Errorf("request %d: %d, want %d", i, code, want)
			}
		}
		if r := g.Report(); r.Peak != 30 || r.Accepted != 2 {
			t.Errorf("%+v", r)
		}
		g.Close()
	})
}

func TestGCRAOverTCP(t *testing.T) {
	g, err := ratetest.NewGCRA(ratetest.GCRAConfig{Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(""); err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, want := range []int{200, 429} {
		r, err := http.Get(g.URL())
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%d, want %d", r.StatusCode, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestGCRAClosed(t *testing.T) {
	g, err := ratetest.NewGCRA(ratetest.GCRAConfig{LogTo: full{}})
	if err != nil {
		t.Fatal(err)
	}
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if err := g.Close(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("the log was cut off: %v", err)
	}
	w := httptest.NewRecorder()
	if g.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != 503 {
		t.Errorf("%d after Close", w.Code)
	}
}

func TestGCRARefusesBadConfig(t *testing.T) {
	for want, c := range map[string]ratetest.GCRAConfig{
		"Scale -1 is not above 0":                      {Scale: -1},
		"Level 4501 is not from 0 to the capacity":     {Level: 4501},
		"Level -1 is not from 0 to the capacity of 10": {Limit: 10, Window: time.Second, Level: -1},
		"Limit 0": {Window: time.Second},
	} {
		if _, err := ratetest.NewGCRA(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
