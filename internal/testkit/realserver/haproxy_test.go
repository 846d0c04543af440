package realserver_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/realserver"
	"github.com/paceline-go/paceline/limit"
)

// must returns what can be made; the configurations here are right.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

func TestHAProxy(t *testing.T) {
	t.Parallel()
	// What is to fit wherever an interval may begin also has to fit where one begins with the request itself, and the
	// one before holds those of a whole window: at equal distances that leaves one less than the limit per window and
	// round trip. allowed is the limit, in requests.
	per := func(name string, n int64, allowed float64, l func() limit.Limiter) *client {
		return &client{
			name: name, server: realserver.HAProxy{Counter: "http_req_rate(1s)", Max: n}, limiter: l,
			rate: float64(n), burst: int(n), least: 99.5,
			ceiling: func(rtt time.Duration) float64 { return (allowed - 1) / (1 + rtt.Seconds()) },
		}
	}
	weighted := func(name string, n, allowed int64) *client {
		c := limit.WeightedConfig{Limit: allowed, Window: time.Second}
		return per(name, n, float64(allowed), func() limit.Limiter { return must(limit.NewWeighted(c)) })
	}
	plain := weighted("Weighted", 20, 20)
	path := weighted("Weighted, path of 0 to 50 ms", 20, 20)
	path.jitter = 50 * time.Millisecond
	path.least = 97 // they do not arrive at equal distances
	hundred := weighted("Weighted", 100, 100)
	hundred.onlyLong = true

	all := per("Weighted, rounds down", 20, 21, func() limit.Limiter {
		return must(limit.NewWeighted(limit.WeightedConfig{Limit: 20, Window: time.Second, RoundsDown: true}))
	})

	more := weighted("Weighted of 21", 20, 21)
	more.breaks = "sends 21 at once"
	rolling := per("Rolling", 20, 20, func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	rolling.breaks = "forgets at once what HAProxy forgets by and by"
	run(t, []*client{plain, path, hundred, all, more, rolling})
}

// A count that the table forgets after a silence of 1 s is no window: this client never sends more than 19 in any second,
// and is refused from its 21st request on, since it never was silent.
func TestHAProxyCount(t *testing.T) {
	t.Parallel()
	s := realserver.HAProxy{Counter: "http_req_cnt", Max: 20, Expire: "1s"}.Start(t)
	l, err := limit.NewAnchored(limit.AnchoredConfig{Limit: 20, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	gate := paceline.NewGate(l)
	const n = 30
	for i := range n {
		permit, err := gate.Wait(t.Context(), limit.One)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Get(fmt.Sprintf("%s?id=%d", s.URL, i))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		permit.Settle(limit.Outcome{Result: limit.Accepted})
		time.Sleep(55 * time.Millisecond)
	}
	refused := 0
	for i, a := range s.Arrivals(t) {
		if a.Refused() {
			refused++
		}
		if a.Refused() != (i >= 20) || a.Verdict != fmt.Sprint(i+1) {
			t.Errorf("arrival %d: %+v", i, a)
		}
	}
	if refused != n-20 {
		t.Errorf("%d refused, want %d", refused, n-20)
	}
}
