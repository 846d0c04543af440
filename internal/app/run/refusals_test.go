package run

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/service"
)

// all are the results and dead letters of a run, the earliest first.
func (got *inTimeRan) all() []format.Result {
	list := append(slices.Collect(maps.Values(got.results)), slices.Collect(maps.Values(got.dead))...)
	slices.SortFunc(list, func(a, b format.Result) int { return strings.Compare(a.At, b.At) })
	return list
}

// Each refusal in the summary is in the line of its request, with its time, even if the request was
// served later.
func TestResultsSayWhatWasRefused(t *testing.T) {
	kraken, _ := provider.Lookup("kraken")
	synctest.Test(t, func(t *testing.T) {
		s, err := service.New(service.Config{Provider: "kraken"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		v := newInTime(t, s, perSecond(20))
		v.config.Provider, v.config.Attempts = kraken, 2 // some are dead of it
		began := time.Now()
		got := v.run(requests(60, "http://server/0/private/Balance"))
		n, served := 0, 0
		for _, r := range got.all() {
			n += r.Refused
			if r.State == "done" {
				served += r.Refused
			}
			if len(r.RefusedAt) != r.Refused || !slices.IsSorted(r.RefusedAt) {
				t.Errorf("%s: %d refused, at %v", r.ID, r.Refused, r.RefusedAt)
			}
			for _, at := range r.RefusedAt {
				if at < format.Stamp(began) || at > r.At {
					t.Errorf("%s was refused at %s, began %s, ended %s", r.ID, at, format.Stamp(began), r.At)
				}
			}
		}
		if got.err != nil || n != got.Rejected || served == 0 || served == n {
			t.Errorf("%d refusals, %d of them of what was served; the summary has %d: %v", n, served, got.Rejected, got.err)
		}
	})
}

// For a request with many refusals the count is complete, and the latest times are kept.
func TestRefusalsAreBounded(t *testing.T) {
	race.Without(t) // one request, and hours of looks at the clock
	synctest.Test(t, func(t *testing.T) {
		const n = 16 + 4
		asked := 0
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked <= n {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}), perSecond(20))
		v.config.Attempts = n + 1
		got := v.run(requests(1, "http://server/"))
		r := got.results["r0"]
		if r.State != "done" || r.Refused != n || len(r.RefusedAt) != 16 {
			t.Fatalf("%+v", r)
		}
		last, _ := time.Parse(time.RFC3339Nano, r.RefusedAt[16-1])
		if ended, _ := time.Parse(time.RFC3339Nano, r.At); ended.Sub(last) > 2*time.Hour || r.RefusedAt[0] >= r.RefusedAt[1] {
			t.Errorf("%v; it ended at %v", r.RefusedAt, r.At)
		}
		line, _ := json.Marshal(&r)
		if e, ok := (format.Plain{}).Entry(line, false); !ok || e.State != "done" {
			t.Errorf("%s is not read again", line)
		}
	})
}

// The ceiling in a line counts the keys that serve, and the rate that fits if a limit proved wrong.
func TestResultsHaveTheCeiling(t *testing.T) {
	race.Without(t) // TestWrongLimit sends as much to the same server
	first := func(got *inTimeRan) float64 { return got.all()[0].Ceiling }
	last := func(got *inTimeRan) float64 { return got.all()[len(got.results)-1].Ceiling }
	synctest.Test(t, func(t *testing.T) {
		v, _ := newWrong(t, false, "key-1", "key-2")
		v.nonces()
		got := v.run(requests(2800, "http://server"+ratetest.Path))
		if first(&got) > 50 || first(&got) < 45 || last(&got) < 36 || last(&got) > 42 {
			t.Errorf("%v at first, then %v", first(&got), last(&got))
		}
	})
	for _, c := range []struct {
		cost        string
		before, end float64
	}{{"", 10, 5}, {`,"cost":2`, 5, 2.5}} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
				if n++; n > 100 && r.FormValue("api_key") == "b" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}), perSecond(5))
			v.keys("a", "b")
			v.config.BanStatus = []int{401}
			lines := requests(400, "http://server/")
			for i := range lines {
				lines[i] = strings.TrimSuffix(lines[i], "}") + c.cost + "}"
			}
			if got := v.run(lines); got.err != nil || first(&got) != c.before || last(&got) != c.end {
				t.Errorf("%s: %v at first, then %v: %v", c.cost, first(&got), last(&got), got.err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		got := newInTime(t, oneByOne(func(http.ResponseWriter, *http.Request) {})).run(requests(3, "http://server/"))
		if got.Done != 3 || first(&got) != 0 {
			t.Errorf("%+v without a limit", got.results)
		}
	})
}
