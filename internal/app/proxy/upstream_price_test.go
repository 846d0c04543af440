package proxy

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// bought is a server of language models that notes what is bought of it. Each request reads 1000
// tokens and writes 1000.
type bought struct {
	*llm.Server
	mu sync.Mutex
	n  int
}

func newBought(t *testing.T, api llm.Provider) *bought {
	t.Helper()
	b := &bought{}
	var err error
	b.Server, err = llm.New(llm.Config{
		Provider: api, Limits: llm.Limits{Requests: 1e6, Tokens: 1e9, Input: 1e9, Output: 1e9}, TokensPerSecond: 1e5,
		Truth: func(llm.Ask) llm.Usage {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.n++
			return llm.Usage{Input: 1000, Output: 1000}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Server.Close() })
	return b
}

func (b *bought) sold() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// rates reads limits that say what they count.
func rates(t testing.TB, texts ...string) (all []rate.Limit) {
	t.Helper()
	for _, s := range texts {
		l, err := rate.ParseCounted(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// asks are three ways to ask a language model for up to 1200 tokens, of which it writes 1000.
var asks = []struct {
	name     string
	provider llm.Provider
	path     string
	body     string
}{
	{"whole", llm.OpenAI, "/v1/chat/completions", `{"model":"%s","max_tokens":1200,"messages":[{"role":"user","content":"go on"}]}`},
	{"stream", llm.OpenAI, "/v1/chat/completions", `{"model":"%s","max_tokens":1200,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go on"}]}`},
	{"stream of Anthropic", llm.Anthropic, "/v1/messages", `{"model":"%s","max_tokens":1200,"stream":true,"messages":[{"role":"user","content":"go on"}]}`},
}

// asked is one request, and its answer. who names its client.
func asked(t testing.TB, c *http.Client, path, body, who string, fields ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://proxy.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	fields = append(fields, "X-Who", who, "Authorization", "Bearer sk-1", "X-Api-Key", "sk-1", "Anthropic-Version", "2023-06-01", "Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(plainly(resp))
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// paid is a proxy where each client may spend 5 USD a day, and a request costs 1.10: 0.10 for its
// input and 1.00 for its output.
func paid(t testing.TB, api llm.Provider) Config {
	c := to(mustURL(t, "http://llm.test"))
	u := &c.Upstreams[0]
	u.Prices = []Price{{Model: "m", Input: 100, Output: 1000}}
	u.Provider, _ = provider.Lookup(api.String())
	c.Clients.Header = "X-Who"
	c.Clients.Default.Limits = rates(t, "5USD/d")
	return c
}

// A limit in dollars binds. The largest possible price of a request is reserved, and its real price
// counts after the answer. So four requests go, of which each might have cost 1.20, and never more
// than 5 USD in a day, with any number at once. Another client has its own limit.
func TestMoneyBinds(t *testing.T) {
	for _, ask := range asks {
		for _, atOnce := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", ask.name, atOnce), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newBought(t, ask.provider)
					virtually(t, server, paid(t, ask.provider), func(p *Proxy, client func() *http.Client) {
						h, body := client(), fmt.Sprintf(ask.body, "m")
						spend := func() (statuses []int) {
							var all sync.WaitGroup
							var mu sync.Mutex
							one := func() {
								status, text := asked(t, h, ask.path, body, "web")
								mu.Lock()
								defer mu.Unlock()
								statuses = append(statuses, status)
								if status == http.StatusOK {
									return
								}
								for _, want := range []string{"client web has used up its own limit, 5USD/d", `"limit":"5USD/d"`} {
									if !strings.Contains(text, want) {
										t.Errorf("%d %s, without %q", status, text, want)
									}
								}
							}
							for range 12 {
								if atOnce {
									all.Go(one)
								} else {
									one()
								}
							}
							all.Wait()
							slices.Sort(statuses)
							return statuses
						}
						statuses := spend()
						if got := server.sold(); got != 4 {
							t.Errorf("%d of 12 were served, expected 4 of 1.10 USD each: %v", got, statuses)
						}
						if statuses[11] != http.StatusTooManyRequests {
							t.Errorf("answered %v, expected 429 beyond the limit", statuses)
						}
						if status, text := asked(t, h, ask.path, body, "other"); status != http.StatusOK {
							t.Errorf("another client is answered %d %s", status, text)
						}
						if used := p.Sources()[0].Snapshot().Used.Money; used != 5*1_100_000 {
							t.Errorf("looked at, %d millionths of a dollar were used, expected 5.50 USD", used)
						}
						time.Sleep(25 * time.Hour)
						if spend(); server.sold() != 9 {
							t.Errorf("on the next day %d were served, expected 4", server.sold()-5)
						}
					})
				})
			})
		}
	}
}

// Refused and failed requests cost nothing. A request without a known price does not go where a
// limit counts money, and goes where none does.
func TestMoneyOfWhatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := http.StatusBadRequest
		var served int
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served++
			w.WriteHeader(status)
		})
		c := paid(t, llm.OpenAI)
		c.Clients.List = []Client{{Name: "free", Limits: rates(t, "1000/d")}}
		virtually(t, server, c, func(_ *Proxy, client func() *http.Client) {
			h, ask := client(), asks[0]
			for i := range 20 {
				if got, text := asked(t, h, ask.path, fmt.Sprintf(ask.body, "m"), "web"); got != status {
					t.Fatalf("request %d: %d %s, expected %d: what fails costs nothing", i, got, text, status)
				}
			}
			was := served
			for name, body := range map[string]string{
				`no price is known of the model \"unheard-of\"`: fmt.Sprintf(ask.body, "unheard-of"),
				"its tokens cannot be counted":                  "{",
			} {
				if got, text := asked(t, h, ask.path, body, "web"); got != http.StatusForbidden || !strings.Contains(text, name) || !strings.Contains(text, "#no-price") {
					t.Errorf("%s: answered %d %s", body, got, text)
				}
				if got, _ := asked(t, h, ask.path, body, "free"); got != status {
					t.Errorf("%s: a client without a limit of money is answered %d", body, got)
				}
			}
			if served != was+2 {
				t.Errorf("%d went whose price nobody knows, expected 2 of the client without a limit of money", served-was)
			}
			if got, text := asked(t, h, ask.path, strings.Replace(fmt.Sprintf(ask.body, "m"), "1200", "9000", 1), "web"); got != http.StatusRequestEntityTooLarge || !strings.Contains(text, "USD may be asked for, and the limit of client web is 5 USD") {
				t.Errorf("a request that may cost more than the limit: %d %s", got, text)
			}
			if got, text := asked(t, h, ask.path, strings.Replace(fmt.Sprintf(ask.body, "m"), `"max_tokens":1200,`, "", 1), "web"); got != status {
				t.Errorf("a request that states no maximum, for which the most that the model writes would be more than the limit: %d %s", got, text)
			}
		})
	})
}

// A price per request counts for each that may have been served, of whatever API.
func TestMoneyPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := to(mustURL(t, "http://search.test"))
		c.Upstreams[0].RequestPrice = 1.5
		c.Clients.Header = "X-Who"
		c.Clients.Default.Limits = rates(t, "5USD/d")
		var served int
		virtually(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }), c, func(_ *Proxy, client func() *http.Client) {
			h := client()
			for range 10 {
				asked(t, h, "/search", "x", "web")
			}
		})
		if served != 3 {
			t.Errorf("%d searches of 1.50 USD were served, expected 3 for 5 USD", served)
		}
	})
}

// Whose published prices hold.
func TestSeller(t *testing.T) {
	anthropic, _ := provider.Lookup("anthropic")
	for _, c := range []struct {
		u     Upstream
		model string
		want  float64 // of a million tokens of input; 0: not known
	}{
		{Upstream{To: mustURL(t, "https://api.openai.com")}, "gpt-4.1-2025-04-14", 2},
		{Upstream{To: mustURL(t, "http://gateway.test"), Preset: "openai:tier1"}, "gpt-4.1", 2},
		{Upstream{To: mustURL(t, "http://gateway.test"), Provider: anthropic}, "gpt-4.1", 0},
		{Upstream{To: mustURL(t, "http://gateway.test")}, "gpt-4.1", 0},
		{Upstream{To: mustURL(t, "https://api.openai.com")}, "ft:gpt-4.1:org::1", 0},
		{Upstream{To: mustURL(t, "https://api.openai.com"), Prices: []Price{{Input: 7}, {Model: "gpt-4.1", Input: 3}}}, "gpt-4.1", 3},
		{Upstream{To: mustURL(t, "https://api.openai.com"), Prices: []Price{{Input: 7}, {Model: "gpt-4.1", Input: 3}}}, "other", 7},
	} {
		m, known := c.u.price(transport.Partition{}, c.model)
		if m.Input != c.want || known != (c.want > 0) {
			t.Errorf("%s at %v %s: %v, %v, expected %v", c.model, c.u.To, cmp.Or(c.u.Preset, "-"), m.Input, known, c.want)
		}
	}
}

// A restart within the day does not begin another one: also of a process that was killed, while
// requests were under way.
func TestMoneyOverRestarts(t *testing.T) {
	server := newBought(t, llm.OpenAI)
	u := upstreamOf(t, server.ServeHTTP)
	c := paid(t, llm.OpenAI)
	c.Upstreams[0].To = u
	c.State = filepath.Join(t.TempDir(), "proxy.state")
	body := fmt.Sprintf(asks[1].body, "m")
	ask := func(x *proxied) int {
		resp, _ := x.do("POST", asks[1].path, body, "X-Who", "web", "Authorization", "Bearer sk-1", "Content-Type", "application/json")
		return resp.StatusCode
	}
	first := start(t, c)
	for range 3 {
		if status := ask(first); status != 200 {
			t.Fatal(status)
		}
	}
	killed := c
	killed.State = copyState(t, c.State)
	first.stop()
	for name, c := range map[string]Config{"stopped": c, "killed": killed} {
		was, x := server.sold(), start(t, c)
		for range 4 {
			ask(x)
		}
		if more := server.sold() - was; more != 1 {
			t.Errorf("%s after 3.30 USD of 5, the next process spends %d times 1.10 more, expected once", name, more)
		}
	}
}

// Input from a cache is paid at its own price. So of 5 USD a day more go than at the price of other
// input, which is 1 USD for each of these requests.
func TestCachedInputIsCheaper(t *testing.T) {
	for cached, goes := range map[float64]int{0: 4, 100: 40} { // the last that goes might have cost 1.10
		synctest.Test(t, func(t *testing.T) {
			server := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, `{"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens":0,"total_tokens":1000}}`)
			})
			conf := paid(t, llm.OpenAI)
			conf.MaxWait = -1
			conf.Upstreams[0].Prices = []Price{{Model: "m", Input: 1000, Cached: cached}}
			text := strings.Repeat("x ", 500)
			virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
				h, n := client(), 0
				for range 60 {
					status, _ := asked(t, h, "/v1/chat/completions", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"`+text+`"}]}`, "web")
					if status != http.StatusOK {
						break
					}
					n++
				}
				if n != goes {
					t.Errorf("at %v USD for input from a cache %d go, want %d", cached, n, goes)
				}
			})
		})
	}
}
