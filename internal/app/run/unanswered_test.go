package run

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
			t.Errorf("resend: %+v, %s", got.Totals, r.append(nil))
		}
		if r := got.dead["x"]; hold && (got.Dead != 1 || seen("x") != 1 || !strings.Contains(r.Error, "it may have been served, and is held back")) {
			t.Errorf("hold: %+v, %s", got.Totals, r.append(nil))
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
		t.Errorf("%+v, %s", got.Totals, r.append(nil))
	}
}
