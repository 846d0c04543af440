//go:build unix

package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// Programs follow redirects to another path and to another named server. Each hop counts there, and neither strict
// server refuses one.
func TestExecRedirects(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.NotShort(t, "TestExecPrograms has the programs, and package proxy the redirects")
	const calls, within, abroad = 30, 10, 20 // below within: to another path; below abroad: to another server
	for name, p := range map[string]struct{ needs, script string }{
		"curl": {"curl", `curl -sSfL $(seq -f '%s/from?id=%%g' 0 %d) >/dev/null`},
		"urllib": {"python3-ssl", "import urllib.request\nfor u in ['%s/from?id=%%d'%%i for i in range(%d+1)]:\n" +
			"  assert urllib.request.urlopen(u).read().startswith(b'of ')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, ca := strictTLS(t)
			there, ca2 := strictTLS(t)
			here.more = func(w http.ResponseWriter, r *http.Request, id int) bool {
				switch {
				case r.URL.Path != "/from" || id >= abroad:
					return false
				case id < within:
					http.Redirect(w, r, fmt.Sprintf("/to?id=%d", 100+id), http.StatusFound)
				default:
					http.Redirect(w, r, fmt.Sprintf("%s/to?id=%d", there.URL, id), http.StatusFound)
				}
				return true
			}
			config := write(t, "proxy.yaml", fmt.Sprintf("version: 1\nupstreams:\n- {to: %q, limits: [20/s], tls: {ca: %q}}\n"+
				"- {to: %q, path: /there, limits: [20/s], tls: {ca: %q}}\n", here.URL, ca, there.URL, ca2))
			dir := t.TempDir()
			args := commandOf(t, dir, p.needs, fmt.Sprintf(p.script, here.URL, calls-1))
			c := program(t, append([]string{"exec", "--config", config, "--"}, args...)...)
			c.Env = append(append(c.Env, ownDaemon(t)...), "TMPDIR="+dir, "HOME="+dir)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			refused, passed := here.told()
			refused2, passed2 := there.told()
			if len(refused)+len(refused2) > 0 || passed != calls+within || passed2 != abroad-within {
				t.Errorf("%d and %d passed, expected %d and %d; refused: %v %v; it says %s", passed, passed2, calls+within, abroad-within, refused, refused2, out)
			}
		})
	}
}
