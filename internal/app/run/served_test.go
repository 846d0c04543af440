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
)

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
