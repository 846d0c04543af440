package run

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/sending"
)

func TestPageIDs(t *testing.T) {
	for _, c := range []struct {
		id, of string
		page   int
	}{{"a.p2", "a", 2}, {"a.p2.p10", "a.p2", 10}, {".p2", "", 0}, {"a.p1", "", 0}, {"a.p02", "", 0}, {"a.p", "", 0}, {"a.p-2", "", 0}, {"a", "", 0}, {"a.p2x", "", 0}} {
		of, page, ok := cutPage(c.id)
		if ok != (c.of != "") || ok && (of != c.of || page != c.page) {
			t.Errorf("%q: %q, %d, %v", c.id, of, page, ok)
		}
	}
}

// A --next that finds nothing is noticed after some answers, or at the end; a null is where the page would be. A run that
// goes on from results without pages says so.
func TestNextFindsNothing(t *testing.T) {
	for _, c := range []struct {
		next, body string
		requests   int
		says       string
	}{
		{"/links/next", `{"next":null}`, 30, "no answer had a next page at /links/next (--next), of 20 answers"},
		{"/links/next", `{"next":null}`, 3, "no answer had a next page at /links/next (--next), of 3 answers"},
		{"link", `{}`, 3, "no answer had a next page in the header field Link (--next), of 3 answers"},
		{"/next", `{"next":null}`, 30, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.body) })
			next, err := sending.ParseNext(c.next, "")
			if err != nil {
				t.Fatal(err)
			}
			b.config.Next, b.config.MaxPages = next, 5
			got := b.run(requests(c.requests, url)...)
			if n := strings.Count(got.notices, "no answer had"); got.Done != c.requests || !strings.Contains(got.notices, c.says) ||
				(n == 1) != (c.says != "") {
				t.Errorf("%s in %s: %s", c.next, c.body, got.notices)
			}
			if c.requests > 20 {
				return
			}
			resumed := b.run(requests(c.requests, url)...)
			if !strings.Contains(resumed.notices, "3 results are of earlier runs without a further page") {
				t.Errorf("%s in %s, resumed: %s", c.next, c.body, resumed.notices)
			}
		})
	}
}
