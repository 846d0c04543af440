package run

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/sending"
)

// A run whose results have none of the ids of its input does not start. If the results have some, and others that the
// input lacks, the run says so before it sends.
func TestResultsOfAnotherInput(t *testing.T) {
	ids := func(url string, all ...string) (lines []string) {
		for _, id := range all {
			lines = append(lines, request(id, url+"?"+id))
		}
		return lines
	}
	const notice = "2 of 3 requests in OUT are not in in: ids change with --id"
	for name, c := range map[string]struct {
		again   string // the ids of the second run
		tamper  func(*Config)
		notice  string
		refused bool
	}{
		"the same":                  {again: "a b c", notice: ""},
		"longer":                    {again: "a b c d"},
		"shorter, and all are done": {again: "a"},
		"others in part":            {again: "a x y", notice: notice},
		"others":                    {again: "x y z", refused: true},
		"others, and it is meant":   {again: "x y z", tamper: func(c *Config) { c.Append = true }},
		"nothing to send":           {again: ""},
		"without a file of results": {again: "x y z", tamper: func(c *Config) { c.Out, c.Stdout = "-", io.Discard }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, url, seen := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
				if got := b.run(ids(url, "a", "b", "c")...); got.err != nil || got.Done != 3 {
					t.Fatalf("%+v, %v", got.Totals, got.err)
				}
				out := b.config.Out
				if c.tamper != nil {
					c.tamper(&b.config)
				}
				again := strings.Fields(c.again)
				got := b.run(ids(url, again...)...)
				told := strings.ReplaceAll(got.notices, out, "OUT")
				if strings.Contains(told, "not in in") != (c.notice != "") || !strings.Contains(told, c.notice) {
					t.Errorf("notices: %s", told)
				}
				const want = "none of the 3 requests in OUT is of in, so all 3 requests would be sent; nothing was sent"
				err := strings.ReplaceAll(fmt.Sprint(got.err), out, "OUT")
				if errors.Is(got.err, ErrConfig) != c.refused || strings.Contains(err, want) != c.refused || seen("x") > 0 && c.refused {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// Further pages are in the results by ids of their own, and the input has none of them.
func TestPagesAreOfTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
			if q.URL.RawQuery == "" {
				w.Header().Set("Link", `<?more>; rel="next"`)
			}
		})
		var err error
		if b.config.Next, err = sending.ParseNext("link", ""); err != nil {
			t.Fatal(err)
		}
		if got := b.run(request("a", url)); got.err != nil || got.Done != 2 {
			t.Fatalf("%+v, %v", got.Totals, got.err)
		}
		got := b.run(request("a", url), request("b", url))
		if got.err != nil || strings.Contains(got.notices, "not in in") {
			t.Errorf("%v, %s", got.err, got.notices)
		}
	})
}
