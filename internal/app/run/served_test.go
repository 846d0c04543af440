package run

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
)

// The fitting rate is that of the requests accepted between refusals, from the second on. Refusals
// of requests in flight together count as one.
func TestServings(t *testing.T) {
	var s servings
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	hear := func(sent, now time.Duration, r limit.Result, want bool) {
		t.Helper()
		if got := s.hear(at(sent), at(now), r); got != want {
			t.Errorf("at %v: %v", now, got)
		}
	}
	for range 500 { // all of a minute
		hear(0, time.Second, limit.Accepted, false)
	}
	hear(0, time.Second, limit.Limited, true)
	hear(0, 2*time.Second, limit.Limited, false)
	if _, _, is := s.news(2); is {
		t.Error("one refusal tells nothing")
	}
	for minute := range 4 {
		d := time.Duration(minute) * time.Minute
		for range 500 {
			hear(d+3*time.Second, d+4*time.Second, limit.Accepted, false)
		}
		hear(d+4*time.Second, d+5*time.Second, limit.Unknown, false)
		hear(d+4*time.Second, d+5*time.Second, limit.Limited, true)
		n, in, is := s.news(enoughRefusals)
		if is != (minute == 1) || is && (n != 500 || in != time.Minute) {
			t.Errorf("minute %d: %d in %v, %v", minute, n, in, is)
		}
	}
	if _, _, is := s.news(2); is {
		t.Error("it is what was told")
	}
	for want, in := range map[string]time.Duration{"19/s": 1049 * time.Millisecond, "10/s": 2 * time.Second, "20/m": time.Minute, "1/3m10s": 3800 * time.Second} {
		if got := rateText(20, in); got != want {
			t.Errorf("20 in %v: %s, want %s", in, got, want)
		}
	}
}

// The server allows 20 a second, and states nothing. The run reports the fitting rate. After a
// refusal not everything goes at once: with a fast start, 1006 were refused.
func TestLLMWithoutALimit(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		second, used, refused := time.Time{}, 0, 0
		network := fakeconn.New()
		gate := make(chan struct{}, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			gate <- struct{}{}
			defer func() { <-gate }()
			if now := time.Now().Truncate(time.Second); now != second {
				second, used = now, 0
			}
			if used++; used > 20 {
				refused++
				http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"choices": []int{}, "usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1}})
		})}
		go func() { _ = srv.Serve(network) }()
		var said []string
		v := &virtually{t: t, config: Config{Out: out, Concurrency: 64}, tamper: func(r *Run) {
			r.c.Notice = func(s string) { said = append(said, s) }
		}}
		v.send(network, ofModel("gpt-4o", 0, 400))
		_ = srv.Close()
		v.once(400)
		t.Logf("%d refused of 400 in %v; %q", refused, v.took, said)
		told := ""
		for _, s := range said {
			if strings.Contains(s, "no limit was given") {
				told = s
			}
		}
		if v.err != nil || refused > 600 || told == "" || !strings.Contains(told, "would fit") {
			t.Errorf("%v; %d refused, said %q", v.err, refused, said)
		}
	})
}
