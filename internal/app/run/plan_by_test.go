package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/provider"
)

// What it takes to be done by an instant: the part of the limits, so many keys, and otherwise so many of the requests.
func TestPlanBy(t *testing.T) {
	per := func(n int64, of string) format.Rate {
		return format.Rate{N: n, Per: time.Minute, Text: fmt.Sprint(n, "/m"), Model: of}
	}
	for _, c := range []struct {
		name     string
		limits   []format.Rate
		requests int
		use      float64
		keys     int
		by       time.Duration
		want     PlanBy
	}{
		{"half of the limit", []format.Rate{per(10, "")}, 10, 0, 1, 90 * time.Second, PlanBy{Needed: 0.5, Keys: 1, Fits: 10}},
		{"all of it", []format.Rate{per(10, "")}, 20, 0, 1, 90 * time.Second, PlanBy{Needed: 1, Keys: 1, Fits: 20}},
		{"more than it", []format.Rate{per(10, "")}, 30, 0, 1, 90 * time.Second, PlanBy{Needed: 1.5, Keys: 2, Fits: 20}},
		{"half of it may be used", []format.Rate{per(10, "")}, 20, 0.5, 1, 90 * time.Second, PlanBy{Needed: 1, Keys: 2,
			Fits: 10}},
		{"two keys", []format.Rate{per(10, "")}, 60, 0, 2, 90 * time.Second, PlanBy{Needed: 1.5, Keys: 3, Fits: 40}},
		{"the tighter limit", []format.Rate{per(100, ""), {N: 15, Per: time.Hour, Text: "15/h"}}, 30, 0, 1,
			90 * time.Second, PlanBy{Needed: 2, Keys: 2, Fits: 15}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := clockedBench(t, nil)
			b.config.Limits, b.config.Use, b.config.By = c.limits, c.use, time.Now().Add(c.by)
			for i := range c.keys {
				b.config.Keys = append(b.config.Keys, format.Key{Name: fmt.Sprint("k", i), Secret: fmt.Sprint("secret-", i)})
			}
			r := b.made(b.config)
			var lines strings.Builder
			for i := range c.requests {
				fmt.Fprintln(&lines, request(fmt.Sprint(i), url))
			}
			if err := r.Check("in", strings.NewReader(lines.String())); err != nil {
				t.Fatal(err)
			}
			c.want.At = b.config.By
			if got := r.Plan(time.Now()).By; got == nil || *got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		})
	}
}

// Requests of a resource need what its limit asks for. Where they count in it alone, the others are as many as before;
// where they count in the limits of the key, too, those that do not fit are taken off.
func TestPlanByOfResources(t *testing.T) {
	for _, c := range []struct {
		name     string
		apart    bool
		others   int
		searches int
		want     PlanBy
	}{
		{"apart, and enough", true, 20, 6, PlanBy{Needed: 1, Keys: 1, Fits: 26}},
		{"apart, twice as many as go", true, 20, 12, PlanBy{Needed: 2, Keys: 2, Fits: 26}},
		{"of the key, and enough", false, 20, 6, PlanBy{Needed: 1, Keys: 1, Fits: 26}},
		{"of the key, twice as many as go", false, 20, 12, PlanBy{Needed: 2, Keys: 2, Fits: 26}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := clockedBench(t, nil)
			if c.apart {
				b, _ = hubBench(t, 60, 3, 0)
			}
			b.config.Limits, b.config.By = []format.Rate{minutely(60, 0, false)}, time.Now().Add(90*time.Second)
			b.config.Charges = []provider.Charge{{On: "GET /search/*", Resource: "search"}}
			b.config.Resources = []ResourceLimit{{Resource: "search", Rate: minutely(3, 0, false)}}
			text := strings.Join(slices.Concat(lines(c.others, "/user"), lines(c.searches, "/search/a")), "\n")
			if !c.apart {
				text = strings.ReplaceAll(text, "http://api.github.com", strings.TrimSuffix(url, "/"))
			}
			r := b.made(b.config)
			if err := r.Check("in", strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			c.want.At = b.config.By
			if got := r.Plan(time.Now()).By; got == nil || *got != c.want || r.planning.apart != c.apart {
				t.Errorf("%s: %+v, want %+v; apart %t", c.name, got, c.want, r.planning.apart)
			}
		})
	}
}
