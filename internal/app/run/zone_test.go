package run

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// Hours of Los Angeles are those of its clock, also the one that it shows twice. A run that goes on in
// the midst of one knows what went before. The plan knows the midnights, too. Days would take long
// here: a run looks at its clock 50 times a second.
func TestDaysOfAPlace(t *testing.T) {
	race.Without(t) // a few requests, and hours of looks at the clock
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	l, err := rate.ParseLimit("3/h@America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 10, 29, 0, 30, 0, 0, pacific)))
		var mu sync.Mutex
		hours, refused := map[string]int{}, 0
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			hour := time.Now().In(pacific).Format("01-02 15h")
			if hours[hour]++; hours[hour] > 3 {
				refused++
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		b.config.Limits = []format.Rate{l}
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
		if got := time.Now().In(pacific).Format("01-02 15:04"); got != "10-29 02:00" || refused > 0 {
			t.Errorf("done at %s, %d refused: %v", got, refused, hours)
		}
		b.config.Append = true
		r := b.made(b.config)
		if err := r.Check("in", strings.NewReader(strings.Join(lines(20, 27), "\n"))); err != nil {
			t.Fatal(err)
		}
		if got := r.Plan(time.Now()).Seconds; got < 2*3600-1 || got > 2*3600 {
			t.Errorf("7 from two on are planned to take %g s, want until four", got)
		}
	})
}

// A machine that sleeps wakes in a later hour of the place. Go's clock stood still meanwhile.
func TestDaysOfAPlaceAfterSleep(t *testing.T) {
	race.Without(t) // a few requests, and hours of looks at the clock
	l, err := rate.ParseLimit("2/h@UTC")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(20 * time.Minute) // it is 0:20
		var slept atomic.Int64
		var mu sync.Mutex
		hours, refused := map[string]int{}, 0
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			hour := time.Now().Add(time.Duration(slept.Load())).UTC().Format("01-02 15h")
			if hours[hour]++; hours[hour] > 2 {
				refused++
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		began := time.Now()
		b.clock = func() (time.Time, boottime.Reading) {
			awake := time.Since(began)
			return time.Now(), boottime.Reading{Boot: "one", Up: awake + time.Duration(slept.Load()), Awake: awake}
		}
		b.config.Limits = []format.Rate{l}
		in, lines := io.Pipe()
		go func() {
			for _, part := range []struct {
				after time.Duration // by Go's clock
				ids   string
			}{{0, "a b"}, {45 * time.Minute, "c"}, {45 * time.Minute, "d"}, {11 * time.Minute, "e f"}} {
				time.Sleep(part.after)
				for id := range strings.FieldsSeq(part.ids) {
					fmt.Fprintln(lines, request(id, url))
				}
			}
			lines.Close()
		}()
		time.AfterFunc(10*time.Minute, func() { slept.Store(int64(20 * time.Minute)) }) // from 0:30 to 0:50
		if out := b.stream(in); out.err != nil || out.Done != 6 || refused > 0 {
			t.Errorf("%v: %d done, %d refused: %v", out.err, out.Done, refused, hours)
		}
	})
}
