package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/transport"
)

// bySession is a Transport of two equal targets, for sessions by a field or by the body.
func bySession(t *testing.T, d *deployments, perMinuteOfA int64, c transport.Config) *transport.Transport {
	c.Base = d
	c.Affinity.Session = func(r *http.Request, body []byte) string { return r.Header.Get("X-Session") + string(body) }
	c.Targets = []transport.Target{perMinute(t, "a", perMinuteOfA, 0), perMinute(t, "b", 600, 0)}
	return mustNew(t, c)
}

// Requests of a session go to one target, and those of many sessions to both.
func TestSessionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		tr := bySession(t, d, 600, transport.Config{})
		homes := map[string]string{}
		for range 5 {
			for i := range 40 {
				name := fmt.Sprint("s", i)
				before := len(d.of["a.test"].had)
				if status, _, err := do(t, tr, request(t, "POST", "https://llm.test/x", name)); err != nil || status != 200 {
					t.Fatal(status, err)
				}
				at := "b"
				if len(d.of["a.test"].had) > before {
					at = "a"
				}
				if homes[name] != "" && homes[name] != at {
					t.Fatalf("%s went to %s, and then to %s", name, homes[name], at)
				}
				homes[name] = at
			}
		}
		if n := len(d.of["a.test"].had); n < 80 || n > 120 {
			t.Errorf("%d of 200 went to a", n)
		}
	})
}

// Beyond the bound, the session that was idle for longest is forgotten. One that comes again counts from then.
func TestSessionsAreBounded(t *testing.T) {
	for _, c := range []struct{ served, want []int }{
		{[]int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{[]int{0, 1, 2, 3, 4}, []int{1, 2, 3, 4}},
		{[]int{0, 1, 2, 3, 0, 4}, []int{0, 2, 3, 4}},
		{[]int{3, 2, 0, 1, 3, 2, 4, 5}, []int{2, 3, 4, 5}},
	} {
		if got := transport.Homes(c.served...); !slices.Equal(got, c.want) {
			t.Errorf("served %v: %v are remembered, want %v", c.served, got, c.want)
		}
	}
}

// A session whose target has no room waits for Hold, and then it goes elsewhere. Where its target is
// away, it goes elsewhere at once. After an hour without requests it has none.
func TestSessionsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		tr := bySession(t, d, 2, transport.Config{Affinity: transport.Affinity{Hold: 3 * time.Second}})
		send := func() (waited time.Duration, at string) {
			t.Helper()
			began, before := time.Now(), len(d.of["a.test"].had)
			if status, _, err := do(t, tr, get(t, "https://llm.test/x", "X-Session", "s")); err != nil || status != 200 {
				t.Fatal(status, err)
			}
			at = "b"
			if len(d.of["a.test"].had) > before {
				at = "a"
			}
			return time.Since(began), at
		}
		var got strings.Builder
		for i := range 5 {
			if i == 4 {
				time.Sleep(2 * time.Hour)
			}
			waited, at := send()
			fmt.Fprint(&got, at, " ", waited, "; ")
		}
		// After the hold its home is b, until it is forgotten.
		if want := "a 0s; a 0s; b 3s; b 0s; a 0s; "; got.String() != want {
			t.Errorf("it went to %s want %s", got.String(), want)
		}
		d.of["a.test"].away, d.of["a.test"].back = time.Since(d.began), 10*time.Hour
		for range 6 {
			if waited, at := send(); at != "b" || waited > 200*time.Millisecond {
				t.Errorf("it went to %s after %v, while its home was away", at, waited)
			}
		}
	})
}
