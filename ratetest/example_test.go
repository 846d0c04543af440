package ratetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// The client under test sends 30 requests from 8 goroutines. The exchange accepts 10 in any 100 ms
// and answers late. The exchange then reports the requests, and its judge checks the rule.
func ExampleNewExchange() {
	exchange, err := ratetest.NewExchange(ratetest.Config{
		Keys:  []string{"mine"},
		Limit: 10, Window: 100 * time.Millisecond, AnyNonce: true,
		Before: latency.Uniform(0, 5*time.Millisecond), After: latency.Uniform(0, 5*time.Millisecond),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(exchange)
	defer server.Close()

	gate := paceline.NewGate(limit.MustRolling(10, 100*time.Millisecond))
	send := func(n int) error {
		query := url.Values{"api_key": {"mine"}, "nonce": {strconv.Itoa(n)}}
		resp, err := http.Get(server.URL + ratetest.Path + "?" + query.Encode())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := g; n < 30; n += 8 {
				if err := gate.Do(context.Background(), limit.One, func() error { return send(n) }); err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	wg.Wait()
	report := exchange.Report()
	fmt.Println(report.Received, "received,", report.Judge.Total.Limited, "refused")
	// Output: 30 received, 0 refused
}

// A quota that strangers share, as at Heroku. The clock of the server runs a hundred times faster.
func ExampleNewGCRA() {
	quota, err := ratetest.NewGCRA(ratetest.GCRAConfig{Limit: 60, Window: time.Hour, Level: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(quota)
	defer server.Close()
	for range 3 {
		resp, err := http.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode, "left:", resp.Header.Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 left: 1
	// 200 left: 0
	// 429 left: 0
}
