package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
)

// A request without an answer may still arrive for a while, over a restart, too: its window begins
// after that while, and not at the end of the attempt.
func TestUnansweredCountsOverRestart(t *testing.T) {
	const window = 20 * time.Second
	for name, answered := range map[string]bool{"answered": true, "unanswered": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if io.Copy(io.Discard, r.Body); r.Header.Get("X-Break") != "" {
						panic(http.ErrAbortHandler)
					}
				})
				conf := to(mustURL(t, "http://server.test"), "1/20s")
				conf.State, conf.clock, conf.Log = filepath.Join(t.TempDir(), "proxy.state"), bubbleClock, slog.New(slog.DiscardHandler)
				conf.MaxWait = time.Minute
				first := virtual(t, server, conf)
				var fields []string
				if !answered {
					fields = []string{"X-Break", "yes"}
				}
				resp, _ := first.do("POST", "/", "{}", fields...)
				if (resp.StatusCode == http.StatusOK) != answered {
					t.Fatalf("answered %d", resp.StatusCode)
				}
				ended := time.Now()
				first.stop()
				time.Sleep(time.Second)
				virtual(t, server, conf).do("POST", "/", "{}")
				least := window
				if !answered {
					least += journal.Late
				}
				if after := time.Since(ended); after < least || after > least+time.Second {
					t.Errorf("the next went %v after it, expected %v", after, least)
				}
			})
		})
	}
}
