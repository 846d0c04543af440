package proxy

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
)

// An answer 304 keeps the Content-Type that the server sent, and gets none that it did not send.
func TestNotModifiedKeepsContentType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // net/http would take it away
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			field := ""
			if r.URL.Path == "/typed" {
				field = "Content-Type: application/json\r\n"
			}
			fmt.Fprintf(rw, "HTTP/1.1 304 Not Modified\r\nEtag: \"1\"\r\n%s\r\n", field)
			rw.Flush()
		})
		virtually(t, server, to(mustURL(t, "http://server.test"), "100/s"), func(p *Proxy, client func() *http.Client) {
			for path, want := range map[string]string{"/typed": "application/json", "/untyped": ""} {
				resp, err := client().Get("http://proxy.test" + path)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				got := resp.Header.Get("Content-Type")
				if resp.StatusCode != 304 || got != want || resp.Header.Get("Etag") != `"1"` {
					t.Errorf("%s: %d, Content-Type %q, want %q", path, resp.StatusCode, got, want)
				}
			}
		})
	})
}
