package run

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline/internal/text/rate"
)

// Days of Los Angeles end at its midnight, also the day of 25 hours. A run that goes on in the midst of
// a day knows what went before. The plan knows the midnights, too.
func TestDaysOfAPlace(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	l, err := rate.ParseLimit("3/d@America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 10, 28, 21, 0, 0, 0, pacific)))
		var mu sync.Mutex
		days, refused := map[string]int{}, 0
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			day := time.Now().In(pacific).Format("01-02")
			if days[day]++; days[day] > 3 {
				refused++
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		b.config.Limits = []Rate{l}
		lines := func(from, to int) (all []string) {
			for i := from; i < to; i++ {
				all = append(all, fmt.Sprintf(`{"id":"%d","url":%q}`, i, url))
			}
			return all
		}
		if out := b.run(lines(0, 5)...); out.err != nil || out.Done != 5 || out.Percent > 100 {
			t.Errorf("%v: %d done, %g %%", out.err, out.Done, out.Percent)
		}
		if out := b.run(lines(0, 8)...); out.err != nil || out.Done != 3 {
			t.Errorf("%v: %d done", out.err, out.Done)
		}
		if got := time.Now().In(pacific).Format("01-02 15:04"); got != "10-30 00:00" || refused > 0 {
			t.Errorf("done at %s, %d refused: %v", got, refused, days)
		}
		r := b.made(b.config)
		if err := r.Check("in", strings.NewReader(strings.Join(lines(20, 27), "\n"))); err != nil {
			t.Fatal(err)
		}
		if got := r.Plan(time.Now()).Seconds; got < 2*86400-1 || got > 2*86400 {
			t.Errorf("7 from midnight on are planned to take %g s, want until the second midnight", got)
		}
	})
}
