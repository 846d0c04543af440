package run

import (
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// With Config.OKStatus an answer 404 is a result. Another error is none, and a refusal by a limit stays one, whatever
// its status. A dead letter of a run before goes again, and is done.
func TestOKStatus(t *testing.T) {
	refused := false
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.RawQuery {
		case "a":
			w.WriteHeader(http.StatusNotFound)
		case "b":
			w.WriteHeader(http.StatusGone)
		case "c":
			if !refused {
				refused = true
				w.Header().Set("X-RateLimit-Remaining", "0")
				w.Header().Set("Retry-After", "0")
				http.Error(w, `{"message":"API rate limit exceeded"}`, http.StatusForbidden)
				return
			}
			w.WriteHeader(http.StatusForbidden)
		}
	})
	b := newBench(t)
	lines := []string{request("a", srv.URL+"?a"), request("b", srv.URL+"?b")}
	if got := b.run(lines...); got.err != nil || got.Done != 0 || got.Dead != 2 || got.ClientError != 2 {
		t.Fatalf("without: %+v, %v", got.Totals, got.err)
	}
	b.config.OKStatus, b.config.RetryDead = []int{http.StatusNotFound, http.StatusForbidden}, format.AllDead
	got := b.run(append(lines, request("c", srv.URL+"?c"))...)
	if got.err != nil || got.Done != 2 || got.Dead != 1 || got.ClientError != 1 || got.Rejected != 1 || got.Repeats != 0 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
	if r := got.results["a"]; r.State != "done" || r.Status != http.StatusNotFound {
		t.Errorf("its result is %+v", r)
	}
	if got := b.run(append(lines, request("c", srv.URL+"?c"))...); got.SkippedDone != 2 || seen("a") != 2 || seen("c") != 2 {
		t.Errorf("once more: %+v; %d and %d requests", got.Totals, seen("a"), seen("c"))
	}
}
