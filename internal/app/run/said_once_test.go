package run

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// While a key gets nothing but refusals, that is said once in ten minutes.
func TestRefusalsInARowAreSaidRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
		b.config.Until = time.Now().Add(35 * time.Minute)
		got := b.run(requests(3, url)...)
		if n := strings.Count(got.notices, "times in a row, with nothing served between"); n < 2 || n > 4 {
			t.Errorf("said %d times in 35 minutes:\n%s", n, got.notices)
		}
	})
}
