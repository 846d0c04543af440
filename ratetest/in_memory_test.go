package ratetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// A client sees the same Exchange in memory as over a socket: its latency, its refusals, and an
// answer that comes too late.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exchange, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"k"}, Before: latency.Constant(20 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: ratetest.InMemory(exchange)}
		get := func(n int) int {
			resp, err := client.Get(fmt.Sprintf("http://exchange.test%s?api_key=k&req_id=1&nonce=%d", ratetest.Path, n))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		began := time.Now()
		for n := range 20 {
			if status := get(n + 1); status != http.StatusOK {
				t.Fatalf("request %d: %d", n, status)
			}
		}
		if took := time.Since(began); took != 400*time.Millisecond {
			t.Errorf("20 answers of 20 ms took %v", took)
		}
		if status := get(21); status != http.StatusTooManyRequests {
			t.Errorf("the 21st in a second: %d", status)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		late, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://exchange.test"+ratetest.Path+"?api_key=k&req_id=1&nonce=22", nil)
		if _, err := client.Do(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("10 ms for an answer that takes 20: %v", err)
		}
	})
}

// The handler gets the same request as from a server: a body, a host, a target. The client's
// request stays unchanged.
func TestInMemoryRequest(t *testing.T) {
	var target, body string
	rt := ratetest.InMemory(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		target, body = r.Method+" "+r.Host+" "+r.RequestURI, string(b)
		r.Header.Set("X-Mine", "changed")
		w.WriteHeader(http.StatusTeapot)
	}))
	req, err := http.NewRequest(http.MethodPost, "http://a.test/p%2Fq?x=1", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusTeapot || resp.Request != req {
		t.Fatalf("%v, %v", resp, err)
	}
	if target != "POST a.test /p%2Fq?x=1" || body != "hello" || req.Header.Get("X-Mine") != "" {
		t.Errorf("%q %q, and the client's own header field is now %q", target, body, req.Header.Get("X-Mine"))
	}
	req, _ = http.NewRequest("", "http://a.test", nil)
	if _, err := rt.RoundTrip(req); err != nil || target != "GET a.test /" || body != "" {
		t.Errorf("%v: %q %q", err, target, body)
	}
}
