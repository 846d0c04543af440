package transport_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// Sixty queries of two shapes at once cost more than Shopify's bucket holds. None is refused, none waits
// for a full bucket, and all are served about when the bucket has given out that much.
func TestShopifyQueries(t *testing.T) {
	const shop = "https://shop.myshopify.com/admin/api/2025-01/graphql.json"
	bucket := func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.Resource && p.Resource == "graphql" {
			l, err := limit.NewBucket(limit.BucketConfig{Limit: 50, Window: time.Second, Burst: 1000, Unit: limit.Weight})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		return nil
	}
	for name, limits := range map[string]func(transport.Partition) limit.Limiter{"the limit is known": bucket, "nothing is known": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := service.New(service.Config{Provider: "shopify", Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				tr := mustNew(t, transport.Config{Base: &served{Handler: s}, Limit: limits})
				began := time.Now()
				var all sync.WaitGroup
				var mu sync.Mutex
				var waits []time.Duration
				for i := range 60 {
					all.Go(func() {
						query := fmt.Sprintf(`{"query":"query($first:Int!){products(first:%d){nodes{id}}}","variables":{"first":1}}`, []int{20, 50}[i%2])
						r := request(t, http.MethodPost, shop, query, "Content-Type", "application/json", "X-Shopify-Access-Token", "k")
						do(t, tr, r)
						mu.Lock()
						waits = append(waits, time.Since(began))
						mu.Unlock()
					})
				}
				all.Wait()
				report := s.Report()
				// 30 of 22 and 30 of 52 points, of which 1000 are there at the beginning, and 50 more per second.
				const ceiling = (30*22 + 30*52 - 1000) * time.Second / 50
				if report.Limited+report.TooLarge > 0 || report.Accepted != 60 {
					t.Errorf("%d served, %d refused", report.Accepted, report.Limited+report.TooLarge)
				}
				took := waits[len(waits)-1]
				t.Logf("all 60 in %v, the ceiling is %v, the first thirty in %v", took, ceiling, waits[29])
				if took > ceiling*11/10+time.Second {
					t.Errorf("all took %v, the ceiling is %v", took, ceiling)
				}
				if waits[19] > time.Second { // a full bucket is 20 s away once it is used
					t.Errorf("the twentieth is served after %v", waits[19])
				}
			})
		})
	}
}

// An upper bound that the configuration states holds until each answer, whatever earlier requests did cost.
// Before, the latest cost took its place, and a third of these calls was refused.
func TestABoundHolds(t *testing.T) {
	const calls, bound = 300, 400
	synctest.Test(t, func(t *testing.T) {
		s, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 1000, Tokens: 3000}, Rolling: true, Count: "corrected",
			Law: llm.Law{OutputMedian: 40, OutputP99: 380}, Seed: 1,
			Before: latency.Uniform(0, 50*time.Millisecond), First: latency.Uniform(100*time.Millisecond, time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		most := map[provider.Unit]int64{provider.Tokens: bound}
		tr := mustNew(t, transport.Config{Base: &served{Handler: s}, Attempts: 1,
			Limiter: rolling(t, 3000, time.Minute, limit.Tokens),
			Charges: []provider.Charge{{On: "POST /v1/*", Cost: most, Answer: map[provider.Unit]provider.Expression{provider.Tokens: totalTokens{}}}}})
		began := time.Now()
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				do(t, tr, request(t, http.MethodPost, chat, sentence(bound-10), "Authorization", "Bearer k", "Content-Type", "application/json"))
			})
		}
		all.Wait()
		v := s.Report().Verdicts
		t.Logf("%v in %v", v, time.Since(began))
		if v["accepted"] != calls || len(v) != 1 {
			t.Errorf("%v, want %d accepted", v, calls)
		}
	})
}

// totalTokens is an Expression: the usage that an answer of OpenAI states.
type totalTokens struct{}

func (totalTokens) Count(document []byte) (int64, error) {
	var answer struct {
		Usage struct {
			Total int64 `json:"total_tokens"`
		}
	}
	err := json.Unmarshal(document, &answer)
	return answer.Usage.Total, err
}

// A shape is known by its query, and by first, last and limit. It costs what it did cost last.
func TestShapesLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(10*time.Millisecond, func(_ int, r *http.Request) *http.Response {
			return reply(200, fmt.Sprintf(`{"extensions":{"cost":{"actualQueryCost":%s}}}`, r.Header.Get("Costs")))
		})
		var costs []int64
		tr := mustNew(t, transport.Config{Base: b, Ended: func(a transport.Attempt) { costs = append(costs, a.Cost[limit.Weight]) },
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.Key {
					return rolling(t, 1000, time.Second, limit.Weight)
				}
				return nil
			}})
		for _, c := range []struct{ body, costs string }{
			{`{"query":"{a(first:10){nodes{id}}}"}`, "7"}, {`{"query":"{a(first:10){nodes{id}}}","variables":{"x":1}}`, "8"}, {`{"query":"{a(first:10){nodes{id}}}"}`, "9"},
			{`{"query":"query($first:Int){a(first:$first){nodes{id}}}","variables":{"first":5}}`, "3"},
			{`{"query":"query($first:Int){a(first:$first){nodes{id}}}","variables":{"first":50}}`, "4"},
			{`{"query":"query($first:Int){a(first:$first){nodes{id}}}","variables":{"first":5}}`, "3"},
			{`{"query":"query($n:Int){a(first:$n){nodes{id}}}"}`, "2"}, // not known: all that the limit holds, alone
			{`{"query":"query($n:Int){a(first:$n){nodes{id}}}"}`, `"?"`}, {`{"query":"query($n:Int){a(first:$n){nodes{id}}}"}`, "2"},
			{`{"query":"{a(first:5000){nodes{id}}}"}`, "600"}, // its bound is more than the limit
		} {
			do(t, tr, request(t, http.MethodPost, "https://shop.myshopify.com/graphql.json", c.body, "Costs", c.costs))
		}
		if got, want := fmt.Sprint(costs), "[12 7 8 7 52 3 1000 2 2 1000]"; got != want {
			t.Errorf("reserved %s, want %s", got, want)
		}
	})
}

// While the first request of a shape is under way, others of the shape wait, but no longer than they may.
// If it gives up, the next one finds the cost out.
func TestShapesWaitForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(10*time.Second, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(500, "")
			}
			return reply(200, `{"extensions":{"cost":{"actualQueryCost":7}}}`)
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1, MaxWait: func(r *http.Request) time.Duration {
			d, _ := time.ParseDuration(r.Header.Get("Max"))
			return d
		}})
		var all sync.WaitGroup
		for _, most := range []string{"", "1h", "3s", "1h"} {
			all.Go(func() {
				do(t, tr, request(t, http.MethodPost, "https://shop.myshopify.com/graphql.json", `{"query":"mutation{a}"}`, "Max", most))
			})
			synctest.Wait()
			time.Sleep(time.Second)
		}
		all.Wait()
		// The third goes after its three seconds, the second after the end of the first, and the last after the second.
		if got := fmt.Sprint(b.at()); got != "[0s 5s 10s 20s]" {
			t.Errorf("sent at %s", got)
		}
	})
}

// Where answers do not tell what a query did cost, others of its shape do not wait for one another.
func TestShapesThatNoAnswerTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(10*time.Second, func(int, *http.Request) *http.Response { return reply(200, `{"data":{}}`) })
		tr := mustNew(t, transport.Config{Base: b})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				do(t, tr, request(t, http.MethodPost, "https://shop.myshopify.com/graphql.json", `{"query":"{shop{id}}"}`))
			})
		}
		all.Wait()
		if got := fmt.Sprint(b.at()); got != "[0s 10s 10s 10s 10s]" {
			t.Errorf("sent at %s", got)
		}
	})
}
