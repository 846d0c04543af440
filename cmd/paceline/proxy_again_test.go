//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A key without credit is excluded, as the page's numbers and the log show. SIGUSR1 puts it back
// into use. If no key is left, requests are refused at once.
func TestProxyKeysTriedAgain(t *testing.T) {
	const one, two = "sk-again-one-5Hq8", "sk-again-two-9Vw3"
	var paid, expired atomic.Bool
	var sent [2]atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		sent[map[string]int{one: 0, two: 1}[key]].Add(1)
		if key == one && !paid.Load() || key == two && expired.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`)
		}
	}))
	defer server.Close()
	p := newPassing(t, []string{one, two}, "--to", server.URL, "--limit", "1000/s", "--key-env", "AGAIN_ONE,AGAIN_TWO", "--header", "Authorization: Bearer {key}")
	p.env = []string{"AGAIN_ONE=" + one, "AGAIN_TWO=" + two}
	p.begin()
	ask := func(n, want int) (text string) {
		t.Helper()
		for range n {
			resp, err := http.Get("http://" + p.at)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if text = string(b); resp.StatusCode != want {
				t.Errorf("%d %s, expected %d", resp.StatusCode, b, want)
			}
		}
		return text
	}
	state := func(key string) string {
		t.Helper()
		for name, n := range series(p.look("/metrics")) {
			if n == 1 && strings.HasPrefix(name, "paceline_key_state{") && strings.Contains(name, `key="`+key+`"`) {
				_, state, _ := strings.Cut(name, `state="`)
				return strings.TrimSuffix(state, `"}`)
			}
		}
		return "none"
	}
	again := func(says string) {
		t.Helper()
		if err := p.process.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); !strings.Contains(p.said.String(), says); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it does not say %q: %s", says, p.said.String())
			}
		}
	}
	ask(10, 200)
	if state("AGAIN_ONE") != "no credit" || state("AGAIN_TWO") != "ok" || sent[0].Load() != 1 || sent[1].Load() != 10 || !strings.Contains(p.said.String(), "key=AGAIN_ONE") {
		t.Errorf("%s, %s, %d and %d sent: %s", state("AGAIN_ONE"), state("AGAIN_TWO"), sent[0].Load(), sent[1].Load(), p.said.String())
	}
	host := strings.TrimPrefix(server.URL, "http://")
	again("tried again: AGAIN_ONE of " + host + "\n") // too early
	ask(10, 200)
	if state("AGAIN_ONE") != "no credit" || sent[0].Load() != 2 {
		t.Errorf("%s, %d sent", state("AGAIN_ONE"), sent[0].Load())
	}
	expired.Store(true)
	ask(1, 429) // it is the answer of the server
	if text := ask(1, 502); !strings.Contains(text, "no-key-left") || !strings.Contains(text, "AGAIN_TWO: it has no credit") || sent[1].Load() != 21 {
		t.Errorf("%d sent, %s", sent[1].Load(), text)
	}
	paid.Store(true)
	expired.Store(false)
	again("tried again: AGAIN_ONE of " + host + ", AGAIN_TWO of " + host)
	ask(10, 200)
	if state("AGAIN_ONE") != "ok" || state("AGAIN_TWO") != "ok" || sent[0].Load() < 6 || sent[1].Load() < 24 {
		t.Errorf("%s, %s, %d and %d sent", state("AGAIN_ONE"), state("AGAIN_TWO"), sent[0].Load(), sent[1].Load())
	}
	again("no key is out of use")
	p.stop()
}
