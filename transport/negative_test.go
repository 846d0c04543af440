package transport_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// A negative cost is refused, as by Gate and Pool: it would pass each limit as a cost of 0 does.
func TestNegativeCosts(t *testing.T) {
	for _, cost := range []limit.Cost{{limit.Requests: -1}, {limit.Requests: 1, limit.Tokens: -5}, {limit.Other: -1 << 63}} {
		server := newBase(0, ok)
		tr := transport.Must(transport.Config{Base: server, Cost: func(*http.Request, limit.Cost) limit.Cost { return cost }})
		r, _ := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		if _, err := tr.RoundTrip(r); !errors.Is(err, paceline.ErrNever) || !strings.Contains(err.Error(), "is negative") {
			t.Errorf("RoundTrip: %v", err)
		}
		if _, _, err := tr.Ask(r); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("Ask: %v", err)
		}
		if len(server.sent) != 0 {
			t.Errorf("%d were sent", len(server.sent))
		}
	}
}
