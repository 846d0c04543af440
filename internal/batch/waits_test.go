package batch

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// What the head waits for is what all behind it wait for.
func TestWaits(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	var w waits
	w.look(at(0), "")
	early := w.until(at(50))
	w.look(at(100), "limit 20/s")
	w.look(at(140), "limit 20/s")
	middle := w.until(at(200))
	w.look(at(300), "outage of h")
	w.look(at(1300), "")
	late := w.until(at(5000))
	w.look(at(6000), "limit 20/s")
	for _, c := range []struct {
		from, to []time.Duration
		want     string
	}{
		{early, middle, "map[limit 20/s:100]"}, {early, late, "map[limit 20/s:200 outage of h:1000]"}, {middle, late, "map[limit 20/s:100 outage of h:1000]"},
		{late, late, "map[]"}, {late, w.until(at(6019)), "map[]"}, {late, w.until(at(6021)), "map[limit 20/s:21]"},
	} {
		if got := fmt.Sprint(w.between(c.from, c.to)); got != c.want {
			t.Errorf("%s, expected %s", got, c.want)
		}
	}
	for i := range 100 {
		w.look(at(7000+i*100), fmt.Sprint("cause ", i))
	}
	if n := len(w.until(at(20000))); n != mostCauses {
		t.Errorf("%d causes are kept", n)
	}
}

func TestResultsSayWhatWasWaitedFor(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Limits = []Rate{{N: 2, Per: 200 * time.Millisecond, Text: "2/200ms"}}
	got := b.run(requests(4, srv.URL)...)
	for id, waited := range map[string]bool{"r0": false, "r1": false, "r2": true, "r3": true} {
		r := got.results[id]
		if ms := r.WaitedFor["limit 2/200ms"]; (ms > 100) != waited || float64(ms) > r.WaitedMS+100 {
			t.Errorf("%s: %v of %v ms", id, r.WaitedFor, r.WaitedMS)
		}
	}
}
