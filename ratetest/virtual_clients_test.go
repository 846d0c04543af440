package ratetest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/ratetest"
)

// ask sends a request in memory, and returns the answer's status and text.
func ask(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	text, _ := io.ReadAll(w.Body)
	return w.Code, strings.TrimSpace(string(text))
}

// TestVirtualClients: ten goroutines send for 12 minutes of virtual time. How many requests are
// refused is arithmetic, and the log has the same bytes each time, whichever goroutine starts first.
func TestVirtualClients(t *testing.T) {
	fleet := func(pause string) (string, ratetest.GCRAReport) {
		var log bytes.Buffer
		g, err := ratetest.NewGCRA(ratetest.GCRAConfig{VirtualClients: 10, Capacity: 10, LogTo: &log})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				sleep := fmt.Sprintf("/clock/sleep?client=%d&seconds=", i)
				ask(g, fmt.Sprintf("%s%d.5", sleep, i))
				for range 90 {
					ask(g, "/")
					ask(g, sleep+pause)
				}
				ask(g, fmt.Sprintf("/clock/leave?client=%d", i))
			})
		}
		all.Wait()
		return log.String(), g.Report()
	}
	first, r := fleet("8")
	if again, _ := fleet("8"); again != first {
		t.Errorf("another log:\n%.300s\nafter\n%.300s", again, first)
	}
	// The bucket is empty at the first request. From then on, 900 in 12 minutes are the limit itself.
	if r.Accepted+r.Limited != 900 || r.Limited < 1 || r.Limited > 10 || r.Elapsed.Seconds() < 719 {
		t.Errorf("pauses of 8 s: %+v", r)
	}
	if _, r := fleet("4"); r.Accepted < 450 || r.Accepted > 460 || r.Accepted+r.Limited != 900 {
		t.Errorf("pauses of 4 s: %+v", r)
	}
}

// TestVirtualClientsExchange: a window of the exchange ends by the virtual clock.
func TestVirtualClientsExchange(t *testing.T) {
	x, err := ratetest.NewExchange(ratetest.Config{VirtualClients: 1, AnyNonce: true})
	if err != nil {
		t.Fatal(err)
	}
	send := func(want int) {
		t.Helper()
		if status, text := ask(x, ratetest.Path+"?api_key=key1"); status != want {
			t.Errorf("%d %s, want %d", status, text, want)
		}
	}
	for range 20 {
		send(200)
	}
	send(429)
	if status, now := ask(x, "/clock/sleep?client=a&seconds=1"); status != 200 || now != "1" {
		t.Errorf("%d %s", status, now)
	}
	send(429) // the window holds both of its ends, in whole milliseconds
	ask(x, "/clock/sleep?client=a&seconds=0.001")
	send(200)
	if r := x.Report(); r.Judge.Faults != 0 || r.Elapsed != 1_001_000_000 {
		t.Errorf("%+v", r)
	}
}
