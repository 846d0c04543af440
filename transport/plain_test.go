package transport_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// The second of two: its partition is known. What docs/walk.sh lists is between the marks.
func TestPlainRoundTrip(t *testing.T) {
	tr := mustNew(t, transport.Config{
		Limiter: limit.MustRolling(20, time.Second),
		Base:    roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, ""), nil }),
	})
	do(t, tr, get(t, "http://a.test/"))
	r := get(t, "http://a.test/")
	mark := func() {
		if os.Getenv("PACELINE_WALK") != "" {
			println("mark")
		}
	}
	mark()
	resp, err := tr.RoundTrip(r)
	mark()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Error(resp, err)
	}
}
