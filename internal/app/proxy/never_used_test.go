package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// After an hour the log names once the client and the limit that no request was of, and no other.
func TestNeverUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"), "20/s")
		for _, route := range []string{"GET /search", "GET /serach"} {
			l := limitsOf("5/s")[0]
			l.Scope, l.Only = provider.Route, route
			conf.Upstreams[0].Limits = append(conf.Upstreams[0].Limits, l)
		}
		conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "bot"}, {Name: "bto"}}}
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), conf)
		ask := func() { x.do("GET", "/search", "", "X-Who", "bot") }
		ask()
		time.Sleep(time.Hour - time.Minute)
		ask()
		if log := x.log.String(); strings.Contains(log, "in an hour") {
			t.Errorf("too early:\n%s", log)
		}
		time.Sleep(time.Minute)
		ask()
		time.Sleep(2 * time.Hour)
		ask()
		log := x.log.String()
		for _, want := range []string{`msg="no request was of this client in an hour" client=bto`,
			`msg="no request counted in this limit in an hour" upstream=server.test limit=5/s of="route GET /serach" helps=`} {
			if strings.Count(log, want) != 1 || strings.Count(log, "in an hour") != 2 {
				t.Errorf("want %s once in\n%s", want, log)
			}
		}
	})
}
