package run

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// Below paceline exec, requests to a server on this machine go past it, unless connections are captured. Then a run
// without a limit of its own sends nothing, and says why. One with a limit counts for itself, and says so.
func TestRunPastExec(t *testing.T) {
	for _, c := range []struct {
		url           string
		captured      bool
		limited       bool
		refused, said bool
	}{
		{"http://127.0.0.1:9", false, false, true, false}, {"http://127.0.0.1:9", false, true, false, true},
		{"http://127.0.0.1:9", true, false, false, false}, {"http://api.test", false, false, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, _, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
			b.config.Led, b.config.Captured = true, c.captured
			if c.limited {
				b.config.Limits = []format.Rate{minutely(600, limit.Requests, false)}
			}
			var told lockedBuffer
			b.config.Notice = func(s string) { told.Write([]byte(s + "\n")) }
			r := b.made(b.config)
			if err := r.Check("in", strings.NewReader(requests(1, c.url+"/")[0]+"\n")); err != nil {
				t.Fatal(err)
			}
			planned := r.MayOpen()
			err := r.Open()
			if (planned != nil) != c.refused {
				t.Errorf("%+v: the plan: %v", c, planned)
			}
			if refused := err != nil && strings.Contains(err.Error(), "requests go past paceline exec, and nothing limits them"); refused != c.refused {
				t.Errorf("%+v: %v", c, err)
			}
			if said := strings.Contains(told.String(), "go past paceline exec"); said != c.said || c.said && r.c.Led {
				t.Errorf("%+v: %s", c, told.String())
			}
			if err == nil {
				if _, err = r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
