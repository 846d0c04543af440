package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
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

// A reader that is given up takes no byte from the reader after it.
func TestReaderThatIsGivenUp(t *testing.T) {
	all := atomic.Int64{}
	all.Store(1 << 20)
	b := newBody(io.NopCloser(strings.NewReader("all of it")), http.ResponseController{}, &Bounds{Kept: 1 << 10}, &all, func(err error) { t.Error(err) })
	first, err := b.again(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if n, err := first.Read(make([]byte, 3)); n != 0 || err != errOver {
		t.Errorf("the reader that is given up: %d bytes, %v", n, err)
	}
	next, err := b.again(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(next); string(text) != "all of it" || err != nil {
		t.Errorf("the next one: %q, %v", text, err)
	}
}
