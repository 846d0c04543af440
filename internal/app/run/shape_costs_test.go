package run

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
)

// shopQueries is a run of queries at Shopify's fake, one for each line.
func shopQueries(t *testing.T, s *service.Server, limits ...ResourceLimit) *inTime {
	v := newInTime(t, s)
	v.config.Keys = []format.Key{{Name: "K", Secret: "shpat-7Kq9a2Lx"}}
	v.config.Header, _ = format.ParseHeaders([]string{"X-Shopify-Access-Token: {key}", "Content-Type: application/json"})
	v.config.Concurrency, v.config.ChargedBy = 60, "shopify"
	v.config.Provider, _ = provider.Lookup("shopify")
	v.config.Resources = limits
	return v
}

func shop(t *testing.T) *service.Server {
	s, err := service.New(service.Config{Provider: "shopify", Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// queryLines are queries of two shapes in turn.
func queryLines(n int, query string) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"http://shop.test/admin/api/2025-01/graphql.json","method":"POST","body":{"query":%q}}`,
			i, fmt.Sprintf(query, []int{20, 50}[i%2])))
	}
	return lines
}

// shopBucket is the limit of Shopify's queries.
var shopBucket = ResourceLimit{Resource: "graphql", Rate: format.Rate{N: 50, Per: time.Second, Burst: 1000, Bucket: true, Unit: limit.Weight, Text: "50 weight/s"}}

// Sixty queries of two shapes at once cost more than Shopify's bucket holds. None is refused, and all are served
// about when the bucket has given out that much: where the limit is given, and where only answers state it. That
// also holds if nothing says what a query costs, and if its bound is far too high.
func TestQueriesOfTwoShapes(t *testing.T) {
	race.Without(t) // TestQueriesOfMonday has these goroutines
	for _, c := range []struct {
		query  string
		points int // of the first sixty
	}{
		{`{products(first:%d){nodes{id}}}`, 30*22 + 30*52},
		{`query($n:Int){products(first:%d,last:$n){nodes{id}}}`, 30*22 + 30*52},   // no bound is known
		{`{products(first:%d){nodes{id v(first:15){nodes{id}}}}}`, 30*39 + 30*69}, // the bounds are 362 and 902
	} {
		for _, limits := range [][]ResourceLimit{{shopBucket}, nil, {{Resource: "other", Rate: minutely(5, 0, false)}}} {
			synctest.Test(t, func(t *testing.T) {
				s := shop(t)
				defer s.Close()
				out := shopQueries(t, s, limits...).run(queryLines(60, c.query))
				report := s.Report()
				ceiling := time.Duration(c.points-1000) * time.Second / 50
				t.Logf("%s, limits %v: %d of %v, %d refused, in %v; the ceiling is %v", c.query, limits, report.Accepted, report.Limits, report.Limited, out.took, ceiling)
				if out.err != nil || out.Done != 60 || report.Limited+report.TooLarge > 0 || out.took > ceiling*10/9 {
					t.Errorf("%v: %d done, %d refused, in %v; the ceiling is %v\n%s", out.err, out.Done, report.Limited+report.TooLarge, out.took, ceiling, out.notices)
				}
			})
		}
	}
}

// At monday.com the cost is a bound of the text, and what the answer says, if the query asks for it. Of all that the
// minutes allow, nine tenths are served, and nothing is refused.
func TestQueriesOfMonday(t *testing.T) {
	for _, asks := range []string{"", "complexity{query} "} {
		synctest.Test(t, func(t *testing.T) {
			s, err := service.New(service.Config{Provider: "monday", Preset: "monday", Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			v := newInTime(t, s, minutely(5_000_000, limit.Weight, false))
			v.config.ChargedBy, v.config.Concurrency = "monday", 60
			v.config.Provider, _ = provider.Lookup("monday")
			var lines []string
			for i := range 300 {
				n := []int{250, 500}[i%2]
				lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"http://api.test/v2","method":"POST","body":{"query":"{%sboards(ids:[1,2,3,4,5,6,7,8,9]){items_page(limit:%d){items{id name}}}}"}}`, i, asks, n))
			}
			out := v.run(lines)
			report := s.Report()
			const points = 150*9*(10+250*22) + 150*9*(10+500*22)
			ceiling := points / 5_000_000 * time.Minute // the last minute serves its part at once
			t.Logf("asks %q: %d refused, in %v; the ceiling is %v for %d points", asks, report.Limited, out.took, ceiling, int64(points))
			if out.err != nil || out.Done != 300 || report.Limited+report.TooLarge > 0 || out.took > ceiling*10/9 {
				t.Errorf("%v: %d done, %d refused, in %v; the ceiling is %v\n%s", out.err, out.Done, report.Limited+report.TooLarge, out.took, ceiling, out.notices)
			}
		})
	}
}

// GitHub's points are those of its documented rule, rounded as GitHub does: 51 and 1, of 5,000 in an hour.
func TestQueriesOfGitHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := service.New(service.Config{Provider: "github", Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		v := shopQueries(t, s, ResourceLimit{Resource: "graphql", Rate: format.Rate{N: 5000, Per: time.Hour, Unit: limit.Weight, Text: "5000 weight/h"}})
		v.config.Header, _ = format.ParseHeaders([]string{"Authorization: Bearer {key}"})
		v.config.ChargedBy, v.config.Provider = "github", nil
		var lines []string
		for i := range 2 * 190 {
			query := []string{"{viewer{repositories(first:100){nodes{issues(first:50){nodes{labels(first:60){nodes{name}}}}}}}}",
				"{viewer{repositories(first:100){nodes{issues(first:10){nodes{id}}}}}}"}[i%2]
			lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"http://api.test/graphql","method":"POST","body":{"query":%q}}`, i, query))
		}
		out := v.run(lines)
		report := s.Report()
		points := int64(0)
		for _, l := range report.Limits {
			if l.Policy == "graphql" {
				points += l.Cost
			}
		}
		t.Logf("%d done, %d refused, in %v; the ceiling is an hour for %d points", out.Done, report.Limited, out.took, points)
		if out.err != nil || out.Done != 380 || report.Limited+report.TooLarge > 0 || points != 190*52 || out.took > time.Hour*10/9 {
			t.Errorf("%v: %d done, %d refused, %d points in %v\n%s", out.err, out.Done, report.Limited+report.TooLarge, points, out.took, out.notices)
		}
	})
}

// After kill -9 a run counts what was sent, and learns the costs from its first answers again.
func TestQueriesGoOnAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shop(t)
		defer s.Close()
		v := shopQueries(t, s, shopBucket)
		v.killed = 10 * time.Second
		lines := queryLines(60, `{products(first:%d){nodes{id v(first:15){nodes{id}}}}}`)
		began := time.Now()
		v.run(lines)
		v.killed = 0
		time.Sleep(time.Until(began.Add(10 * time.Second)))
		out := v.run(lines)
		report := s.Report()
		const ceiling = (30*39 + 30*69 - 1000) * time.Second / 50
		took := time.Since(began)
		t.Logf("%d served, %d refused, in %v; the ceiling is %v", report.Accepted, report.Limited, took, ceiling)
		if out.err != nil || len(out.results) != 60 || report.Limited+report.TooLarge > 0 || took > ceiling*10/9+20*time.Second {
			t.Errorf("%v: %d results, %d refused, in %v; the ceiling is %v\n%s", out.err, len(out.results), report.Limited+report.TooLarge, took, ceiling, out.notices)
		}
	})
}

// What a line declares, no answer changes for others, and a cost of a shape that rises holds for those that wait.
func TestACostThatRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []string
		began, costs := time.Now(), []int{10, 40, 40, 150, 10, 90}
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
			at = append(at, fmt.Sprint(time.Since(began).Round(time.Second)))
			fmt.Fprintf(w, `{"extensions":{"cost":{"actualQueryCost":%d}}}`, costs[len(at)-1])
		}))
		v.config.ChargedBy, v.config.Concurrency = "shopify", 1
		v.config.Resources = []ResourceLimit{{Resource: "graphql", Rate: minutely(100, limit.Weight, false)}}
		lines := queryLines(1, `{products(first:%d){nodes{id}}}`) // its bound is 22
		for i := range 4 {
			lines = append(lines, strings.Replace(lines[0], `"0"`, fmt.Sprintf(`"next %d"`, i), 1))
		}
		lines = append(lines, strings.Replace(lines[0], `"0"`, `"declared","cost":"90 weight"`, 1))
		out := v.run(lines)
		// 10, 40 and 40 are used. The fourth would fit by what the first did cost, and not by what the others did. It costs
		// more than the limit, so the fifth goes alone.
		if got := strings.Join(at, " "); out.err != nil || got != "0s 0s 0s 1m0s 2m0s 2m0s" {
			t.Errorf("sent at %s; %v\n%s", got, out.err, out.notices)
		}
	})
}
