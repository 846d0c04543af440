package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/browser"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// The page, /metrics and the log of the server's judge agree, while requests wait and after that.
// The numbers are requests sent, refused and served, usage of the limit, tokens, and waiting
// requests. The server allows fewer than the proxy's limit, so that it refuses some.
func TestProxyNumbersAgree(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "a page, a server and metrics, each of which has tests of its own")
	b := browser.Open(t, 1400, 1000)
	const told, allowed, asked, prompt, completion = 20, 18, 50, 10, 5
	server := newLawful(t, allowed, time.Hour)
	server.later = "3600"
	server.more = func(w http.ResponseWriter, _ *http.Request, id int) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"%d","object":"chat.completion","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, id, prompt, completion, prompt+completion)
		return true
	}
	p := newPassing(t, nil, "--to", server.URL, "--limit", fmt.Sprintf("%d/h", told), "--tokens", "--max-wait", "9h", "--max-pause", "3h", "--log", "off")
	p.begin()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for id := range asked {
		clients.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("http://%s/v1/chat/completions?id=%d", p.at, id), strings.NewReader(`{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			_, _, _ = answerTo(http.DefaultClient, r)
		})
	}
	b.Go("http://" + p.admin + "/")
	agree := func(waiting int) {
		t.Helper()
		b.Until(fmt.Sprintf(`document.getElementById("tile-waiting").textContent === "%d" && document.getElementById("tile-flight").textContent === "0"`, waiting))
		refused, passed := server.told()
		sum := map[string]float64{}
		for name, n := range series(p.look("/metrics")) {
			name, labels, _ := strings.Cut(name, "{")
			if name == "paceline_requests_total" || name == "paceline_tokens_total" {
				for l := range strings.SplitSeq(strings.Trim(labels, "}"), ",") {
					if kind, is := strings.CutPrefix(l, "result="); is {
						sum[name+" "+strings.Trim(kind, `"`)] += n
					} else if kind, is := strings.CutPrefix(l, "kind="); is {
						sum[name+" "+strings.Trim(kind, `"`)] += n
					}
				}
			}
			sum[name] += n
		}
		for name, want := range map[string]int{
			"paceline_sent_total": passed + len(refused), "paceline_requests_total accepted": passed, "paceline_requests_total limited": len(refused),
			"paceline_limit_used": passed + len(refused), "paceline_limit_ceiling": told, "paceline_waiting": waiting, "paceline_in_flight": 0,
			"paceline_tokens_total input": passed * prompt, "paceline_tokens_total output": passed * completion,
		} {
			if sum[name] != float64(want) {
				t.Errorf("%s is %v, the server says %d", name, sum[name], want)
			}
		}
		texts := map[string]string{}
		b.Eval(`Object.fromEntries([...document.querySelectorAll("[id^=tile-]")].map(e => [e.id, e.textContent.replaceAll("\u00a0", " ")]))`, &texts)
		for id, want := range map[string]string{
			"tile-sent":        fmt.Sprintf("%d sent in all", passed+len(refused)),
			"tile-refused-all": fmt.Sprintf("in 15 min, %d in all", len(refused)),
			"tile-tokens-all":  fmt.Sprintf("%d in all", passed*(prompt+completion)),
		} {
			if texts[id] != want {
				t.Errorf("%s is %q, the server says %q", id, texts[id], want)
			}
		}
		var rows [][]string
		b.Eval(`[...document.querySelectorAll("#limits-table tbody tr")].map(tr => [...tr.cells].map(c => c.textContent.replaceAll("\u00a0", " ")))`, &rows)
		if used := fmt.Sprintf("%d of %d", passed+len(refused), told); len(rows) != 1 || !strings.HasPrefix(rows[0][1], used) {
			text, _ := json.Marshal(rows)
			t.Errorf("the limits are %s, the server says %s", text, used)
		}
	}
	agree(asked - allowed)
	if refused, passed := server.told(); passed != allowed || len(refused) == 0 {
		t.Errorf("%d passed, %d were refused: nothing is shown", passed, len(refused))
	}
	cancel()
	clients.Wait()
	agree(0)
	for _, c := range b.Complaints() {
		t.Errorf("the browser says: %s", c)
	}
}
