package telling

import (
	"fmt"
	"testing"
	"time"
)

// All requests behind the head wait for the same cause as the head.
func TestWaits(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	var w Waits
	w.Look(at(0), "")
	early := w.Until(at(50))
	w.Look(at(100), "limit 20/s")
	w.Look(at(140), "limit 20/s")
	middle := w.Until(at(200))
	w.Look(at(300), "outage of h")
	w.Look(at(1300), "")
	late := w.Until(at(5000))
	w.Look(at(6000), "limit 20/s")
	for _, c := range []struct {
		from, to []time.Duration
		want     string
	}{
		{early, middle, "map[limit 20/s:100]"}, {early, late, "map[limit 20/s:200 outage of h:1000]"}, {middle, late, "map[limit 20/s:100 outage of h:1000]"},
		{late, late, "map[]"}, {late, w.Until(at(6019)), "map[]"}, {late, w.Until(at(6021)), "map[limit 20/s:21]"},
	} {
		if got := fmt.Sprint(w.Between(c.from, c.to)); got != c.want {
			t.Errorf("%s, expected %s", got, c.want)
		}
	}
	for i := range 100 {
		w.Look(at(7000+i*100), fmt.Sprint("cause ", i))
	}
	if n := len(w.Until(at(20000))); n != mostCauses {
		t.Errorf("%d causes are kept", n)
	}
}
