package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An answer that was served in part goes to the client as it came, with a field that says so, and
// the next request waits as long as the refused part asks for. A client does not see a refusal with
// status 200: its request goes again.
func TestPartly(t *testing.T) {
	const seven = 7 * time.Second
	for _, c := range []struct {
		kind, body, answer, field string
		waits                     time.Duration
	}{
		{"application/json", `{"requests":[{"method":"POST"}]}`, `{"responses":[{"status":201},{"status":429,"headers":{"Retry-After":"7"}}]}`, "served=1, refused=1", seven},
		{"application/json", `{"RequestItems":{}}`, `{"UnprocessedItems":{"T":[{},{}]}}`, "refused=2", time.Second},
		{"application/json", `{"model":"m"}`, `{"error":{"type":"rate_limit_error","retry_after":7}}`, "", seven},
		{"text/event-stream", `{"model":"m"}`, "data: {\"error\":{\"code\":429,\"retry_after\":7}}\n\n", "", seven},
	} {
		synctest.Test(t, func(t *testing.T) {
			var came atomic.Int32
			server := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if came.Add(1) == 1 {
					w.Header().Set("Content-Type", c.kind)
					w.Write([]byte(c.answer))
					return
				}
				w.Write([]byte("fine"))
			})
			x := virtual(t, server, to(mustURL(t, "http://server.test"), "100/s"))
			began, want, sends := time.Now(), "fine", int32(3)
			if c.field != "" {
				want, sends = c.answer, 2
			}
			resp, body := x.do("POST", "/", c.body)
			if resp.StatusCode != 200 || body != want || resp.Header.Get(FieldPartly) != c.field {
				t.Errorf("%s: %d %q, %q", c.answer, resp.StatusCode, body, resp.Header.Get(FieldPartly))
			}
			resp, body = x.do("POST", "/", c.body)
			if took := time.Since(began).Round(c.waits / 10); body != "fine" || resp.Header.Get(FieldPartly) != "" || took != c.waits || came.Load() != sends {
				t.Errorf("%s: then %q after %v, want %v; sent %d times, want %d", c.answer, body, took, c.waits, came.Load(), sends)
			}
		})
	}
}
