package run

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
)

// A redirect back home gets no key if another host chose where it leads, and neither does one to a
// host that may have keys.
func TestRedirectHomeGetsNoKey(t *testing.T) {
	for _, c := range []struct {
		name  string
		leads map[string]string
		want  string // the requests that came with the key, without it in brackets
	}{
		{"at home", map[string]string{"/": "http://home.test/b", "/b": "/c"}, "home.test/ home.test/b home.test/c"},
		{"away", map[string]string{"/": "http://away.test/b"}, "home.test/ [away.test/b]"},
		{"away and home", map[string]string{"/": "http://away.test/b", "/b": "http://home.test/c"}, "home.test/ [away.test/b] [home.test/c]"},
		{"away, home and on", map[string]string{"/": "http://away.test/b", "/b": "http://home.test/c", "/c": "/d"}, "home.test/ [away.test/b] [home.test/c] [home.test/d]"},
		{"away and to a host of the key", map[string]string{"/": "http://away.test/b", "/b": "http://also.test/c"}, "home.test/ [away.test/b] [also.test/c]"},
		{"to a host of the key", map[string]string{"/": "http://also.test/b", "/b": "http://home.test/c"}, "home.test/ also.test/b home.test/c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var came []string
			b, _, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
				at := q.Host + q.URL.Path
				if q.Header.Get("Key") == "" {
					at = "[" + at + "]"
				}
				mu.Lock()
				came = append(came, at)
				mu.Unlock()
				if to := c.leads[q.URL.Path]; to != "" {
					http.Redirect(w, q, to, http.StatusFound)
				}
			})
			b.config.Keys = []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}
			b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
			b.config.KeyHosts = secret.Places{placeOf(t, "http://home.test"), placeOf(t, "http://also.test")}
			b.config.Redirects = 5
			if got := b.run(request("x", "http://home.test/")); got.err != nil {
				t.Error(got.err)
			}
			if got := strings.Join(came, " "); got != c.want {
				t.Errorf("%s: came %s, want %s", c.name, got, c.want)
			}
		})
	}
}
