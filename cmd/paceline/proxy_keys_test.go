package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/ratetest"
)

// Keys of a proxy's file are added, removed, renamed and put back while 40 clients wait. The exchange, which bans a key
// after ten refusals, refuses nothing, and every client gets its answers.
func TestProxyKeysOfAFile(t *testing.T) {
	t.Parallel()
	const window = 250 * time.Millisecond
	exchange, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"s1", "s2", "s3"}, Limit: 20, Window: window, AnyNonce: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(exchange)
	defer server.Close()
	p := newPassing(t, nil)
	text := func(keys ...string) string {
		var all strings.Builder
		all.WriteString("version: 1\nlisten: " + p.at + "\nadmin: " + p.admin + "\nmax_wait: 1m\nupstreams:\n- to: " + server.URL +
			"\n  limits: [20/250ms]\n  query: {api_key: '{key}'}\n  keys:\n")
		for _, k := range keys {
			name, secret, _ := strings.Cut(k, " ")
			fmt.Fprintf(&all, "  - {name: %s, env: PL_%s}\n", name, secret)
		}
		return all.String()
	}
	file := write(t, "proxy.yaml", text("K1 s1", "K2 s2"))
	p.args, p.env = []string{"proxy", "--config", file}, []string{"PL_s1=s1", "PL_s2=s2", "PL_s3=s3"}
	p.begin()
	var sent atomic.Int64
	done := make(chan struct{})
	var clients sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 40}}
	defer client.CloseIdleConnections()
	for range 40 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				resp, err := client.Get(fmt.Sprintf("http://%s%s?nonce=%d", p.at, ratetest.Path, sent.Add(1)))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("answered %d", resp.StatusCode)
					return
				}
			}
		})
	}
	applied := func() float64 {
		return series(p.look("/metrics"))["paceline_config_last_reload_success_timestamp_seconds"]
	}
	for _, keys := range [][]string{{"K1 s1", "K2 s2", "K3 s3"}, {"K2 s2", "K3 s3"}, {"K2 s2", "K3 s3", "K1 s1"}, {"K2 s1", "K1 s3"},
		{"K9 s2", "K2 s1", "K1 s3"}} {
		was := applied()
		if err := os.WriteFile(file, []byte(text(keys...)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.process.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); applied() == was; time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("keys %v are not applied: %s", keys, p.said.String())
			}
		}
		for was, end := sent.Load(), time.Now().Add(time.Minute); sent.Load() < was+40 && time.Now().Before(end); {
			time.Sleep(2 * time.Millisecond)
		}
	}
	close(done)
	clients.Wait()
	if report := exchange.Report(); report.Judge.Total.Limited != 0 || int64(report.Received) != sent.Load() || sent.Load() < 200 {
		t.Errorf("%d sent, %d received, %d refused", sent.Load(), report.Received, report.Judge.Total.Limited)
	}
	p.stop()
}
