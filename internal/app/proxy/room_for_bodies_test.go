package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A body that ends gives back its room to the others, whether it was kept or became too long for
// that.
func TestRoomForBodiesIsGivenBack(t *testing.T) {
	sent := 0
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if sent++; sent == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	conf := to(u)
	conf.Bounds.KeptInAll = 100 << 10
	x := start(t, conf)
	for i, c := range []struct{ size, sent, status int }{
		{60 << 10, 2, 200}, {60 << 10, 2, 200}, {150 << 10, 1, 429}, {60 << 10, 2, 200}, {90 << 10, 2, 200}, {90 << 10, 2, 200},
	} {
		sent = 0
		resp, _ := x.do("POST", "/", strings.Repeat("x", c.size))
		if sent != c.sent || resp.StatusCode != c.status {
			t.Errorf("request %d, of %d bytes: sent %d times and answered %d, expected %d and %d", i, c.size, sent, resp.StatusCode, c.sent, c.status)
		}
	}
}
