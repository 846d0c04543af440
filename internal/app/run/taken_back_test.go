package run

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/sending"
)

// A run that is interrupted takes back what waits in paceline proxy. The next run knows that nothing of it was sent, and
// that the one of which the proxy said otherwise may have been.
func TestARunTakesBackWhatWaits(t *testing.T) {
	held, answers := make(chan struct{}, 10), atomic.Bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if answers.Load() {
			return
		}
		say := func(state string) {
			w.Header().Set(sending.FieldLine, state)
			w.WriteHeader(http.StatusProcessing)
		}
		if say(sending.LineWaits); strings.HasSuffix(q.URL.Path, "/sent") {
			say(sending.LineSent)
			say(sending.LineWaits) // it was refused, and waits again
		}
		held <- struct{}{}
		<-q.Context().Done() // its client is gone
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	b := newBench(t)
	b.drain = func(r *Run) {
		for range 4 {
			<-held
		}
		r.Drain()
	}
	lines := append(requests(3, srv.URL), request("sent", srv.URL+"/sent"))
	if got := b.run(lines...); got.Left != 4 || got.Done+got.Dead != 0 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
	answers.Store(true)
	b.drain = nil
	got := b.run(lines...)
	for id, r := range got.results {
		if r.PossibleRepeat != (id == "sent") {
			t.Errorf("%s: possible repeat %v", id, r.PossibleRepeat)
		}
	}
	if got.Done != 4 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}
