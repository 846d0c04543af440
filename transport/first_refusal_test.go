package transport_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// The first refusal is logged at once, with what is configured, what the server said, and what is done. The next lines
// come once a minute, with a number, and each key has its own.
func TestTheFirstRefusalIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tr := mustNew(t, transport.Config{Attempts: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Base: newBase(0, func(int, *http.Request) *http.Response { return reply(429, "", "Retry-After", "1") }),
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.Key {
					return rolling(t, 100, time.Minute, limit.Requests)
				}
				return nil
			}})
		lines := func(key string) (all []string) {
			do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer "+key))
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, `level=WARN msg="the server refuses"`) {
					all = append(all, line)
				}
			}
			return all
		}
		began := time.Now()
		first := lines("a")
		says := `refusals=1 configured="100 requests per 1m0s" server="429: rate limited. Come back in 1 s`
		if len(first) != 1 || !strings.Contains(first[0], says) || !strings.Contains(first[0], `now="nothing goes for 1 s"`) {
			t.Fatalf("at the first refusal the log has %q", first)
		}
		for n := 1; ; n++ {
			time.Sleep(2 * time.Second)
			all := lines("a")
			if late := time.Since(began) >= time.Minute; late != (len(all) == 2) {
				t.Fatalf("after %v the log has %q", time.Since(began), all)
			} else if late {
				if !strings.Contains(all[1], fmt.Sprint("refusals=", n)) {
					t.Errorf("%d refusals later the log has %q", n, all[1])
				}
				break
			}
		}
		if all := lines("b"); len(all) != 3 {
			t.Errorf("at the first refusal of another key the log has %q", all)
		}
	})
}
