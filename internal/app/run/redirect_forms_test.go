package run

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// A redirect that turns a POST into a GET leaves the body and its type behind. One that keeps both
// is not followed to another host, if the body has the value of a key.
func TestFormsOfRedirects(t *testing.T) {
	const key = "s3cret-Of-9a7Kq"
	for _, c := range []struct {
		status         int
		to, body, want string
		dead           string
	}{
		{303, "/b", "hello", "POST home.test text/x hello, GET home.test  ", ""},
		{302, "/b", "hello", "POST home.test text/x hello, GET home.test  ", ""},
		{307, "/b", "hello", "POST home.test text/x hello, POST home.test text/x hello", ""},
		{307, "http://away.test/b", "hello", "POST home.test text/x hello, POST away.test text/x hello", ""},
		{307, "/b", "it is " + key, "POST home.test text/x it is " + key + ", POST home.test text/x it is " + key, ""},
		{307, "http://away.test/b", "it is " + key, "POST home.test text/x it is " + key, "not followed to away.test: the body has the value of A"},
		{303, "http://away.test/b", "it is " + key, "POST home.test text/x it is " + key + ", GET away.test  ", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var came []string
			b, _, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				mu.Lock()
				defer mu.Unlock()
				came = append(came, fmt.Sprint(q.Method, " ", q.Host, " ", q.Header.Get("Content-Type"), " ", string(body)))
				if q.URL.Path == "/a" {
					w.Header().Set("Location", c.to)
					w.WriteHeader(c.status)
				}
			})
			b.config.Keys = []format.Key{{Name: "A", Secret: key}}
			b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
			b.config.Redirects = 2
			got := b.run(fmt.Sprintf(`{"id":"x","method":"POST","url":"http://home.test/a","headers":{"Content-Type":"text/x"},"body":%q}`, c.body))
			if all := strings.Join(came, ", "); all != c.want || (got.Done == 1) != (c.dead == "") || !strings.Contains(got.dead["x"].Error, c.dead) {
				t.Errorf("%d to %s: came %q, want %q; %v, %+v", c.status, c.to, all, c.want, got.err, got.dead)
			}
		})
	}
}
