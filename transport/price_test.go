package transport_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// till is a limit of money a day, and the outcomes that it got.
type till struct {
	*limit.Rolling
	reserved []int64
	ended    []limit.Outcome
}

func newTill(t testing.TB, micros int64) *till {
	return &till{Rolling: rolling(t, micros, 24*time.Hour, limit.Money)}
}

func (l *till) Admit(s *limit.Sent) {
	l.reserved = append(l.reserved, s.Cost[limit.Money])
	l.Rolling.Admit(s)
}

func (l *till) Settle(now mono.Time, lease *limit.Sent, o *limit.Outcome) {
	l.ended = append(l.ended, *o)
	l.Rolling.Settle(now, lease, o)
}

// sells has a Transport where a token of input costs one millionth of a dollar and one of output ten. The till counts for keys, other
// for the host; either may be nil.
func sells(t testing.TB, money *till, other limit.Limiter, base http.RoundTripper, more ...func(*transport.Config)) *transport.Transport {
	c := transport.Config{
		Base: base, Tokens: estimator(t), Counting: tokens.Used, Attempts: 1,
		Price: func(_ transport.Partition, model string) (provider.ModelInfo, bool) {
			return provider.ModelInfo{Input: 1, Output: 10}, model == "m"
		},
		Limit: func(p transport.Partition) limit.Limiter {
			switch {
			case p.Scope == provider.Key && money != nil:
				return money
			case p.Scope == provider.IP:
				return other
			}
			return nil
		},
	}
	for _, f := range more {
		f(&c)
	}
	return mustNew(t, c)
}

// usage7and5 costs 7 + 5 × 10.
const usage7and5 = `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`

// The highest price of a request is reserved: a token for each byte of its body, and all the output
// that it asks for. The real price counts once it is answered. A refused or failed request costs
// nothing. If the price stays unknown, all of the reserved amount stands.
func TestPriceIsReservedAndSettled(t *testing.T) {
	const most = int64(len(prompt) + 100*10)
	for _, tc := range []struct {
		name    string
		answer  func() (*http.Response, error)
		result  limit.Result
		metered bool
		spent   int64
	}{
		{"served", func() (*http.Response, error) { return reply(200, usage7and5), nil }, limit.Accepted, true, 57},
		{"served for more than was thought", func() (*http.Response, error) {
			return reply(200, `{"usage":{"prompt_tokens":700,"completion_tokens":500,"total_tokens":1200}}`), nil
		}, limit.Accepted, true, 5700},
		{"served without a word of it", func() (*http.Response, error) { return reply(200, `{}`), nil }, limit.Accepted, true, most},
		{"refused", func() (*http.Response, error) { return reply(429, `{}`), nil }, limit.Limited, true, 0},
		{"failed", func() (*http.Response, error) { return reply(400, `{}`), nil }, limit.Failed, true, 0},
		{"lost", func() (*http.Response, error) { return nil, errors.New("gone") }, limit.Unknown, false, 0},
		{"cut", func() (*http.Response, error) { return stream(events("")[:60]), nil }, limit.Unknown, false, 0},
	} {
		for _, own := range []int64{0, 1000} { // what Config.Cost says beside it stands in any case
			t.Run(tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					money, other := newTill(t, 1e9), &spy{}
					tr := sells(t, money, other, roundTripper(func(*http.Request) (*http.Response, error) { return tc.answer() }), func(c *transport.Config) {
						c.Cost = func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Money] += own; return c }
					})
					do(t, tr, request(t, http.MethodPost, chat, prompt))
					if !slices.Equal(money.reserved, []int64{most + own}) || other.cost[limit.Money] != most+own {
						t.Errorf("reserved %v, elsewhere %d, want %d", money.reserved, other.cost[limit.Money], most+own)
					}
					if len(money.ended) != 1 || money.ended[0].Result != tc.result || money.ended[0].Metered != tc.metered {
						t.Fatalf("the limit of money heard %+v", money.ended)
					}
					// The other units: as the answer states them, or else as reserved, which Stats
					// leaves out.
					told := tc.result == limit.Accepted && tc.spent != most
					want, used := other.cost, limit.Cost{}
					if told {
						want = limit.Cost{limit.Requests: 1, limit.Input: 7, limit.Output: 5, limit.Tokens: 12}
						if tc.spent != 57 {
							want = limit.Cost{limit.Requests: 1, limit.Input: 700, limit.Output: 500, limit.Tokens: 1200}
						}
						used = want
					}
					want[limit.Money] = tc.spent + own
					if used[limit.Money] = want[limit.Money]; !tc.metered {
						want, used = limit.Cost{}, limit.Cost{}
					}
					if got := money.ended[0].Actual; got != want {
						t.Errorf("it cost %v, want %v", got, want)
					}
					if got := tr.Partitions()[0].Used; got != used {
						t.Errorf("Stats have %v as used, want %v", got, used)
					}
					// A limit without money learns no more than without a price: a metered failure
					// would have produced all.
					if len(other.ended) != 1 || other.ended[0].Metered != told {
						t.Errorf("who does not count money heard %+v", other.ended)
					}
				})
			})
		}
	}
}

// A request that was not sent has cost nothing, and does not count as metered.
func TestPriceOfWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		money := newTill(t, 1e9)
		book := &kept{full: true}
		tr := sells(t, money, nil, newBase(0, ok), func(c *transport.Config) { c.Recorder = book })
		if _, _, err := do(t, tr, request(t, http.MethodPost, chat, prompt)); err == nil {
			t.Fatal("sent without an entry")
		}
		if len(money.ended) != 1 || money.ended[0].Result != limit.Unsent || money.ended[0].Metered {
			t.Errorf("heard %+v", money.ended)
		}
	})
}

// A part of a millionth counts as a whole one, and no price is beyond what a limit can count.
func TestPriceIsRoundedUp(t *testing.T) {
	for _, tc := range []struct {
		price           provider.ModelInfo
		reserved, spent int64
	}{
		{provider.ModelInfo{Input: 0.3, Output: 0.001}, 24, 3}, // of 77 × 0.3 + 100 × 0.001 and of 7 × 0.3 + 5 × 0.001
		{provider.ModelInfo{Input: 0.01}, 1, 1},
		{provider.ModelInfo{Output: 1e300}, limit.MaxCost, limit.MaxCost},
	} {
		synctest.Test(t, func(t *testing.T) {
			money := newTill(t, limit.MaxCost)
			tr := sells(t, money, nil, newBase(0, func(_ int, r *http.Request) *http.Response {
				if r.Header.Get("X-Fails") != "" {
					return reply(400, `{}`)
				}
				return reply(200, usage7and5)
			}), func(c *transport.Config) {
				c.Price = func(transport.Partition, string) (provider.ModelInfo, bool) { return tc.price, true }
			})
			do(t, tr, request(t, http.MethodPost, chat, prompt))
			if !slices.Equal(money.reserved, []int64{tc.reserved}) || money.ended[0].Actual[limit.Money] != tc.spent {
				t.Errorf("reserved %v, settled %v, want %d, %d", money.reserved, money.ended, tc.reserved, tc.spent)
			}
			if do(t, tr, request(t, http.MethodPost, chat, prompt, "X-Fails", "yes")); !money.ended[1].Metered || money.ended[1].Actual[limit.Money] != 0 {
				t.Errorf("what failed is settled as %v", money.ended[1])
			}
		})
	}
}

// A limit of money for all requests, for a host, a key, a model or a route learns the price,
// wherever it is.
func TestPriceForEachScope(t *testing.T) {
	for _, scope := range []provider.Scope{provider.All, provider.IP, provider.Key, provider.Model, provider.Route} {
		synctest.Test(t, func(t *testing.T) {
			money := newTill(t, 1e9)
			tr := sells(t, nil, nil, newBase(0, func(int, *http.Request) *http.Response { return reply(400, `{}`) }), func(c *transport.Config) {
				c.Limit = func(p transport.Partition) limit.Limiter {
					if p.Scope == scope {
						return money
					}
					return nil
				}
				if scope == provider.All {
					c.Limiter = money
				}
				c.Partition = func(*http.Request) transport.Partition { return transport.Partition{Host: "a.test", Route: "r"} }
			})
			do(t, tr, request(t, http.MethodPost, chat, prompt))
			if len(money.ended) != 1 || !money.ended[0].Metered || money.ended[0].Actual[limit.Money] != 0 {
				t.Errorf("%s: what failed is settled as %+v", scope, money.ended)
			}
		})
	}
}

// An unknown key counts for the keys to which it may belong, until an answer shows its owner. In
// the end each key's limit of money has counted its own answers, each once. Other limits have
// counted nothing.
func TestPriceOfNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tills := map[string]*till{}
		base := newBase(time.Second, func(_ int, r *http.Request) *http.Response {
			return reply(200, usage7and5, "Openai-Organization", "of "+r.Header.Get("Authorization"))
		})
		tr := sells(t, nil, nil, base, func(c *transport.Config) {
			c.Partition = func(r *http.Request) transport.Partition {
				return transport.Partition{Host: "api.openai.com", Key: r.Header.Get("Authorization")}
			}
			c.Limit = func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				tills[p.Key] = newTill(t, 1e9)
				return tills[p.Key]
			}
		})
		var wg sync.WaitGroup
		asks := func(keys ...string) {
			for _, key := range keys {
				wg.Go(func() {
					do(t, tr, request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions", prompt, "Authorization", key))
				})
				synctest.Wait()
			}
			wg.Wait()
		}
		asks("a")
		asks("b", "b", "c", "a", "c")
		asks("c", "b")
		if s := tr.Snapshot(); s.Used.Money != 8*57 {
			t.Errorf("a Snapshot has %d as used, want %d", s.Used.Money, 8*57)
		}
		for key, n := range map[string]int64{"a": 2, "b": 3, "c": 3} {
			var spent, sent int64
			for _, o := range tills[key].ended {
				if o.Result != limit.Unsent {
					sent++
					spent += o.Actual[limit.Money]
				}
			}
			if sent != n || spent != n*57 || len(tills[key].ended) != len(tills[key].reserved) {
				t.Errorf("%s: %d sent for %d, of %d reserved %d settled, want %d for %d", key, sent, spent, len(tills[key].reserved), len(tills[key].ended), n, n*57)
			}
		}
	})
}

// If the body states no maximum, the usual amount is reserved. If that does not fit, the reserved
// amount is what fits, and a token of output at least. A stated maximum does not shrink.
func TestPriceOfWhatMayBeLess(t *testing.T) {
	const unbounded = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	known, err := tokens.New(tokens.Config{Overrun: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	usual := func() tokens.Estimate {
		e, err := known.Estimate(tokens.APIOf(chat), []byte(unbounded))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for range 200 {
		known.Learn(usual(), tokens.Usage{Input: 9, Output: 20})
	}
	if e := usual(); e.Output == e.MaxOutput {
		t.Fatalf("what is usual was not learned: %+v", e)
	}
	for _, tc := range []struct {
		body     string
		most     int64
		reserved []int64
	}{
		{unbounded, 1e9, []int64{int64(len(unbounded)) + 10*usual().Output}},
		{unbounded, 100, []int64{100}},
		{unbounded, int64(len(unbounded)) + 10, []int64{int64(len(unbounded)) + 10}},
		{unbounded, int64(len(unbounded)) + 9, nil},
		{prompt, int64(len(prompt)) + 1000, []int64{int64(len(prompt)) + 1000}},
		{prompt, int64(len(prompt)) + 999, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			money := newTill(t, tc.most)
			tr := sells(t, money, nil, newBase(0, func(int, *http.Request) *http.Response { return reply(400, `{}`) }), func(c *transport.Config) {
				c.Tokens = known
			})
			_, _, err := do(t, tr, request(t, http.MethodPost, chat, tc.body))
			if !slices.Equal(money.reserved, tc.reserved) || (err == nil) != (tc.reserved != nil) || err != nil && !errors.Is(err, paceline.ErrNever) {
				t.Errorf("%s where %d fit: reserved %v, %v", tc.body, tc.most, money.reserved, err)
			}
		})
	}
}

// Under a limit of money, a request without a price is not sent. Without such a limit it is, and so
// is a request that is no language model's.
func TestNoPrice(t *testing.T) {
	other := strings.Replace(prompt, `"m"`, `"another"`, 1)
	for _, tc := range []struct {
		name, url, body string
		fields          []string
		money, fails    bool
	}{
		{"another model", chat, other, nil, true, true},
		{"another model, where no money counts", chat, other, nil, false, false},
		{"compressed", chat, prompt, []string{"Content-Encoding", "gzip"}, true, true},
		{"compressed, where no money counts", chat, prompt, []string{"Content-Encoding", "gzip"}, false, false},
		{"known", chat, prompt, nil, true, false},
		{"no language model", "http://a.test/v1/files", other, nil, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var money *till
				if tc.money {
					money = newTill(t, 1e9)
				}
				b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, usage7and5) })
				tr := sells(t, money, rolling(t, 1e6, time.Second, limit.Requests), b)
				_, _, err := do(t, tr, request(t, http.MethodPost, tc.url, tc.body, append(tc.fields, "Authorization", "Bearer k")...))
				if errors.Is(err, transport.ErrPrice) != tc.fails || (len(b.at()) == 0) != tc.fails {
					t.Fatalf("%v, sent at %v", err, b.at())
				}
				var e *transport.Error
				if tc.fails && (!errors.As(err, &e) || e.Unit != limit.Money || e.Partition.Scope != provider.Key || e.Partition.Host != "a.test") {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// Config.Price gets the partition of the request, and the name of the model in the body.
func TestPriceIsAskedWithAll(t *testing.T) {
	var asked []transport.Partition
	var models []string
	tr := sells(t, nil, nil, newBase(0, ok), func(c *transport.Config) {
		c.Client = func(*http.Request) transport.Client { return transport.Client{Name: "web"} }
		c.Price = func(p transport.Partition, model string) (provider.ModelInfo, bool) {
			asked, models = append(asked, p), append(models, model)
			return provider.ModelInfo{}, false
		}
	})
	do(t, tr, request(t, http.MethodPost, chat, strings.Replace(prompt, `"m"`, `"org/M"`, 1)))
	if len(asked) != 1 || asked[0].Host != "a.test" || asked[0].Client != "web" || asked[0].Scope != "" || models[0] != "org/M" {
		t.Errorf("asked for %+v, %v", asked, models)
	}
}

// Input read from a cache costs less. Input that Anthropic's models write to a cache costs more,
// and is reserved if the body asks for it.
func TestPriceOfACache(t *testing.T) {
	for _, c := range []struct {
		name, url, body, answer string
		reserved, spent         int64 // beside a token of input for each byte of the body
	}{
		{"read", "http://a.test/v1/chat/completions", `{"model":"m","max_tokens":100,"messages":[]}`,
			`{"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":800},"completion_tokens":5}}`, 4 * 44, 4*200 + 800 + 5*10},
		{"read and written", "http://a.test/v1/messages", `{"model":"m","max_tokens":100,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			`{"usage":{"input_tokens":100,"cache_read_input_tokens":800,"cache_creation_input_tokens":40,"output_tokens":5}}`, 5 * 119, 4*100 + 800 + 5*40 + 5*10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				money := newTill(t, 1e9)
				tr := sells(t, money, nil, roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, c.answer), nil }), func(to *transport.Config) {
					to.Price = func(transport.Partition, string) (provider.ModelInfo, bool) {
						return provider.ModelInfo{Input: 4, Output: 10, Cached: 1}, true
					}
				})
				do(t, tr, request(t, http.MethodPost, c.url, c.body))
				if want := c.reserved + 100*10; !slices.Equal(money.reserved, []int64{want}) {
					t.Errorf("reserved %v, want %d for %d bytes", money.reserved, want, len(c.body))
				}
				if len(money.ended) != 1 || money.ended[0].Actual[limit.Money] != c.spent {
					t.Errorf("it cost %+v, want %d", money.ended, c.spent)
				}
			})
		})
	}
}
