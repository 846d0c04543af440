package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/dashboard"
)

// The first message has the forms for a viewer who can use them.
func TestForms(t *testing.T) {
	here := func(r *http.Request) bool { return strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") }
	for _, c := range []struct {
		forms func(r *http.Request) bool
		from  string
		want  bool
	}{{nil, "127.0.0.1:5000", false}, {here, "127.0.0.1:5000", true}, {here, "192.0.2.7:5000", false}} {
		p := must(t, dashboard.Config{Sources: []observe.Source{fixed(observe.Snapshot{})}, Forms: c.forms})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/events", nil)
		r.Host, r.RemoteAddr = "localhost", c.from
		w := gone{httptest.NewRecorder(), cancel}
		p.ServeHTTP(w, r)
		_, rest, ok := strings.Cut(w.Body.String(), "event: past\n")
		past, _, _ := strings.Cut(rest, "\n")
		if !ok || strings.Contains(past, `"forms":true`) != c.want {
			t.Errorf("from %s, with forms %v: %s", c.from, c.forms != nil, past)
		}
	}
}

// gone is a viewer who leaves after the first frame.
type gone struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

func (g gone) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "event: frame") {
		g.leave()
	}
	return g.ResponseRecorder.Write(b)
}

// Limits of one key hold together, and those of several keys add up.
func TestAllowed(t *testing.T) {
	of := func(key, unit string, n int64, window time.Duration) observe.LimitState {
		return observe.LimitState{Whose: observe.Whose{Key: key}, Unit: unit, PerWindow: n, Window: window}
	}
	for want, all := range map[float64][]observe.LimitState{
		0: {of("a", "input tokens", 5, time.Second), of("a", "in flight", 0, 0)},
		2: {of("a", "requests", 120, time.Minute), of("a", "requests", 10, time.Second)},
		5: {of("a", "requests", 120, time.Minute), of("b", "requests", 3, time.Second)},
	} {
		p := must(t, dashboard.Config{Sources: []observe.Source{fixed(observe.Snapshot{Limits: all})}})
		got := decode[struct{ Sources []struct{ Allowed float64 } }](t, get(p, "/snapshot.json", "localhost").Body.Bytes())
		if got.Sources[0].Allowed != want {
			t.Errorf("%v requests a second, want %v", got.Sources[0].Allowed, want)
		}
	}
}
