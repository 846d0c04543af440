package ratetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/ratetest"
)

// Without a socket, and with a log: each request is a line, and a Record at hand.
func ExampleInMemory() {
	var log bytes.Buffer
	exchange, err := ratetest.NewExchange(ratetest.Config{
		Keys: []string{"mine"}, Limit: 10, Window: time.Second, AnyNonce: true,
		Keep: 10, LogTo: &log,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := http.Client{Transport: ratetest.InMemory(exchange)}
	resp, err := client.Get("http://exchange" + ratetest.Path + "?api_key=mine&nonce=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()

	var line ratetest.LogLine
	if err := json.NewDecoder(&log).Decode(&line); err != nil {
		fmt.Println(err)
	}
	fmt.Println(resp.StatusCode, line.Key, line.Verdict)
	for _, r := range exchange.Records() {
		fmt.Println(r.Verdict.Status() == resp.StatusCode, r.Checked >= r.Received)
	}
	// Output:
	// 200 mine accepted
	// true true
}

// A quota that strangers share, with its log and its report.
func ExampleGCRAReport() {
	var log bytes.Buffer
	quota, err := ratetest.NewGCRA(ratetest.GCRAConfig{Limit: 60, Window: time.Hour, Level: 1, LogTo: &log})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := http.Client{Transport: ratetest.InMemory(quota)}
	for range 2 {
		resp, err := client.Get("http://quota/")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	var report ratetest.GCRAReport = quota.Report()
	fmt.Println(report.Accepted, "accepted,", report.Limited, "refused")
	var line ratetest.GCRALine
	if err := json.NewDecoder(&log).Decode(&line); err != nil {
		fmt.Println(err)
	}
	fmt.Println(line.Status, line.Remaining)
	// Output:
	// 1 accepted, 1 refused
	// 200 0
}
