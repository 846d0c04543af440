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

// weigher is a server that counts 1 for each request to /time, and 5 for each other one, in each minute.
type weigher struct {
	most    int
	takes   time.Duration
	begin   time.Time
	used    map[time.Time]int
	refused int
	sent    []time.Duration // the minutes of those that it served
}

func (s *weigher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	minute, cost := time.Now().Truncate(time.Minute), 5
	if r.URL.Path == "/api/v3/time" {
		cost = 1
	}
	s.used[minute] += cost
	w.Header().Set("X-Mbx-Used-Weight-1m", fmt.Sprint(s.used[minute]))
	if s.used[minute] > s.most {
		s.refused++
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	s.sent = append(s.sent, time.Since(s.begin).Truncate(time.Minute))
	time.Sleep(s.takes)
}

// bench sends to the server one at a time. By its charges each request costs 1.
func (s *weigher) bench(t *testing.T) *bench {
	b, _, _ := virtualBench(t, s.ServeHTTP)
	b.config.Concurrency = 1
	weight := minutely(int64(s.most), 0, false)
	weight.Unit = limit.Weight
	b.config.Limits = []format.Rate{weight}
	one := map[provider.Unit]int64{provider.Weight: 1}
	b.config.Charges = []provider.Charge{{On: "GET /api/v3/new", Cost: one}, {On: "GET /api/v3/time", Cost: one}}
	return b
}

// asks adds so many requests to a path.
func asks(input []string, path string, n int) []string {
	for i := range n {
		input = append(input, fmt.Sprintf(`{"id":"%s%d","url":"http://api.binance.com/api/v3/%[1]s"}`, path, i))
	}
	return input
}

// A row says 1 and the server counts 5. The second answer that shows it mends the row, also for requests that were
// read before. Nothing is refused, each minute is used, and it is said once.
func TestAWrongCostIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &weigher{most: 100, begin: time.Now(), used: map[time.Time]int{}}
		b := s.bench(t)
		input := asks(asks(nil, "new", 55), "time", 25)
		out := b.run(input...)
		if out.err != nil || out.Done != 80 || s.refused > 0 {
			t.Errorf("%v: %d of 80 are done, %d refused\n%s", out.err, out.Done, s.refused, out.notices)
		}
		want := slices.Concat(slices.Repeat([]time.Duration{0}, 20), slices.Repeat([]time.Duration{time.Minute}, 20),
			slices.Repeat([]time.Duration{2 * time.Minute}, 40))
		if !slices.Equal(s.sent, want) {
			t.Errorf("sent at %v", s.sent)
		}
		says := "GET /api/v3/new costs 5 weight, and not 1 weight, as answers show: --charge 'GET /api/v3/new=5 weight'"
		if strings.Count(out.notices, "as answers show") != 1 || !strings.Contains(out.notices, says) {
			t.Errorf("says %q, want %q", out.notices, says)
		}
	})
}

// A request is read, and waits for room while answers show that its row is wrong. It costs what they show as well. With
// what its row says it would go as the fourth of a minute that has room for three.
func TestAWrongCostIsMendedForTheOneThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &weigher{most: 18, takes: 100 * time.Millisecond, begin: time.Now(), used: map[time.Time]int{}}
		b := s.bench(t)
		b.config.Queue = 16
		out := b.run(asks(asks(nil, "time", 1), "new", 30)...)
		if out.err != nil || out.Done != 31 || s.refused > 0 || !strings.Contains(out.notices, "as answers show") {
			t.Errorf("%v: %d of 31 are done, %d refused\n%s", out.err, out.Done, s.refused, out.notices)
		}
		want := slices.Repeat([]time.Duration{0}, 4)
		for m := range 9 {
			want = append(want, slices.Repeat([]time.Duration{time.Duration(m+1) * time.Minute}, 3)...)
		}
		if !slices.Equal(s.sent, want) {
			t.Errorf("sent at %v", s.sent)
		}
	})
}
