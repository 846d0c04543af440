package run

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/pool"
)

// An attempt without an answer may have been served. It is sent again and says so, or is held back.
func TestUnanswered(t *testing.T) {
	for _, hold := range []bool{false, true} {
		var n atomic.Int32
		srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {
			if n.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
		})
		b := newBench(t)
		b.config.HoldUnanswered = hold
		got := b.run(request("x", srv.URL+"/?x"))
		if r := got.results["x"]; !hold && (got.Done != 1 || !r.PossibleRepeat || got.Repeats != 1 || seen("x") != 2) {
			t.Errorf("resend: %+v, %s", got.Totals, r.Append(nil))
		}
		if r := got.dead["x"]; hold && (got.Dead != 1 || seen("x") != 1 || !strings.Contains(r.Error, "it may have been served, and is held back")) {
			t.Errorf("hold: %+v, %s", got.Totals, r.Append(nil))
		}
	}
	// The same choice applies to the requests that a dead process left.
	for _, hold := range []bool{false, true} {
		srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {})
		b := newBench(t)
		b.config.HoldUnanswered = hold
		journal := fmt.Sprintf("{\"run\":\"x\",\"timeout\":1}\n{\"send\":1,\"id\":\"x\",\"key\":\"default\",\"cost\":1,\"at\":%d}\n", time.Now().Add(-time.Hour).UnixNano())
		if err := os.WriteFile(b.config.Out+".journal", []byte(journal), 0o644); err != nil {
			t.Fatal(err)
		}
		got := b.run(request("x", srv.URL+"/?x"), request("y", srv.URL+"/?y"))
		if !strings.Contains(got.notices, "1 request was sent but not answered") || !strings.Contains(got.notices, "unanswered: x\n") || got.results["y"].PossibleRepeat {
			t.Errorf("notices:\n%s", got.notices)
		}
		if !hold && (seen("x") != 1 || !got.results["x"].PossibleRepeat || got.Repeats != 1) {
			t.Errorf("resend: %+v", got.Totals)
		}
		if hold && (seen("x") != 0 || got.Dead != 1 || got.Repeats != 0 || got.dead["x"].Error == "") {
			t.Errorf("hold: %+v, %v", got.Totals, got.dead)
		}
	}
}

// A request that may have been served and is then invalid is a dead letter that says both. The user
// who mends it needs both.
func TestUnansweredAndDead(t *testing.T) {
	var n atomic.Int32
	srv, seen := counting(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	got := newBench(t).run(request("x", srv.URL+"/?x"))
	if r := got.dead["x"]; got.Dead != 1 || !r.PossibleRepeat || seen("x") != 2 {
		t.Errorf("%+v, %s", got.Totals, r.Append(nil))
	}
}

// failing answers the first request of an id in one way, after it has done the work, and all others
// well. The way is the path: a status, "half" or "silent".
func failing(w http.ResponseWriter, q *http.Request, first bool) {
	way := q.URL.Path[1:]
	status, err := strconv.Atoi(way)
	switch {
	case !first:
	case err == nil:
		w.WriteHeader(status)
	case way == "wait":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case way == "half":
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"ok":`)
	case way == "silent":
		time.Sleep(10 * time.Second) // longer than the attempt waits
	case way == "switched":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
			conn.Close()
		}
	}
}

// A server does the work and then fails to deliver its answer. What may have been served is named
// if it goes again, and is a dead letter with --unanswered hold; all else goes again, unnamed.
func TestServedAndNotAnswered(t *testing.T) {
	const served, not, never, odd = "may have been served", "was surely not served", "does not pass", "may have been served, and does not pass"
	ways := map[string]string{
		"500": served, "502": served, "503": served, "504": served, "507": served, "408": served, "520": served, "524": served, "529": served,
		"half": served, "silent": served,
		"429": not, "425": not, "wait": not,
		"501": never, "505": never, "404": never, "switched": odd,
	}
	for _, hold := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			came := map[string]bool{}
			b, url, seen := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				first := !came[q.URL.Path]
				came[q.URL.Path] = true
				mu.Unlock()
				failing(w, q, first)
			})
			b.config.HoldUnanswered = hold
			var lines []string
			for way := range ways {
				lines = append(lines, fmt.Sprintf(`{"id":%q,"method":"POST","url":%q,"body":{}}`, way, url+way+"?"+way))
			}
			got := b.run(lines...)
			time.Sleep(10 * time.Second) // the silent one is over, too
			for way, what := range ways {
				r, n, sends, repeat := got.results[way], seen(way), 2, what == served
				if dead := what == never || what == odd || what == served && hold; dead {
					r, sends, repeat = got.dead[way], 1, false
				}
				if held := r.Class == "held"; n != sends || r.PossibleRepeat != repeat || r.ID == "" || held != (hold && (what == served || what == odd)) {
					t.Errorf("hold %v: %s %s: sent %d times, %s", hold, way, what, n, r.Append(nil))
				}
			}
		})
	}
}

// A request whose attempt was answered 503 waits for the next one as the run ends. The next run does not call it
// unanswered, nor does the run after that.
func TestFailedIsNotUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, seen := virtualBench(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		b.config.Backoff = pool.Backoff{Base: time.Hour, Max: time.Hour}
		b.drain = func(r *Run) { time.Sleep(time.Minute); r.Drain() }
		if got := b.run(request("x", url+"?x")); got.Left != 1 || got.Rejected != 0 || seen("x") != 1 {
			t.Fatalf("%+v, sent %d times", got.Totals, seen("x"))
		}
		b.drain, b.tamper = nil, (*Run).Drain // it opens the files, and sends nothing
		for range 2 {
			got := b.run(request("x", url+"?x"))
			if !strings.Contains(got.notices, "1 request failed in the run before, as with a 503") ||
				!strings.Contains(got.notices, "  failed: x\n") || strings.Contains(got.notices, "not answered") {
				t.Errorf("notices:\n%s", got.notices)
			}
		}
	})
}
