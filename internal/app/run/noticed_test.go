package run

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// A row says 1 and the server counts 5. The second answer that shows it mends the row, also for requests that were
// read before. Nothing is refused, each minute is used, and it is said once.
func TestAWrongCostIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, refused := map[time.Time]int{}, 0
		var sent []time.Duration
		begin := time.Now()
		b, _, _ := virtualBench(t, func(w http.ResponseWriter, r *http.Request) {
			minute, cost := time.Now().Truncate(time.Minute), 5
			if r.URL.Path == "/api/v3/time" {
				cost = 1
			}
			used[minute] += cost
			w.Header().Set("X-Mbx-Used-Weight-1m", fmt.Sprint(used[minute]))
			if used[minute] > 100 {
				refused++
				w.Header().Set("Retry-After", "60")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			sent = append(sent, time.Since(begin).Truncate(time.Minute))
		})
		b.config.Concurrency = 1
		weight := minutely(100, 0, false)
		weight.Unit = limit.Weight
		b.config.Limits = []format.Rate{weight}
		one := map[provider.Unit]int64{provider.Weight: 1}
		b.config.Charges = []provider.Charge{{On: "GET /api/v3/new", Cost: one}, {On: "GET /api/v3/time", Cost: one}}
		var input []string
		for i := range 55 {
			input = append(input, fmt.Sprintf(`{"id":"n%d","url":"http://api.binance.com/api/v3/new"}`, i))
		}
		for i := range 25 {
			input = append(input, fmt.Sprintf(`{"id":"t%d","url":"http://api.binance.com/api/v3/time"}`, i))
		}
		out := b.run(input...)
		if out.err != nil || out.Done != 80 || refused > 0 {
			t.Errorf("%v: %d of 80 are done, %d refused\n%s", out.err, out.Done, refused, out.notices)
		}
		want := slices.Concat(slices.Repeat([]time.Duration{0}, 20), slices.Repeat([]time.Duration{time.Minute}, 20),
			slices.Repeat([]time.Duration{2 * time.Minute}, 40))
		if !slices.Equal(sent, want) {
			t.Errorf("sent at %v", sent)
		}
		says := "GET /api/v3/new costs 5 weight, and not 1 weight, as answers show: --charge 'GET /api/v3/new=5 weight'"
		if strings.Count(out.notices, "as answers show") != 1 || !strings.Contains(out.notices, says) {
			t.Errorf("says %q, want %q", out.notices, says)
		}
	})
}
