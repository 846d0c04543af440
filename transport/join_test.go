package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// account is a server of language models. It has one limit for all keys and all names of its model,
// as providers have it for an organization. It gets requests with one key for one model.
type account struct {
	*served
	path func() time.Duration // how long it takes to get there
}

func (a account) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	time.Sleep(a.path())
	q := r.Clone(r.Context())
	q.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte("gpt-4o-2024-08-06"), []byte("gpt-4o"), 1)))
	q.Header.Set("Authorization", "Bearer one")
	q.Header.Set("Content-Type", "application/json")
	return a.served.RoundTrip(q)
}

// joint is the requests of one client to an account: some of each of two names or keys. One of each
// goes first and the others go together.
type joint struct {
	status     map[int]int
	took       time.Duration
	partitions []transport.PartitionStats
}

func askJointly(t *testing.T, n int, first time.Duration, c transport.Config, bodies [2]string, keys [2]string) (got joint) {
	t.Helper()
	s, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 60, Tokens: 60_000}, Rolling: true, First: latency.Uniform(100*time.Millisecond, 900*time.Millisecond), TokensPerSecond: 200, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	server := account{&served{Handler: s}, func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.IntN(50)) * time.Millisecond
	}}
	c.Base, c.Tokens, c.Attempts = server, estimator(t), 1
	if c.Limit == nil {
		c.Limit = func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Model {
				return nil
			}
			return limit.NewAll(limit.MustRolling(60, time.Minute), rolling(t, 60_000, time.Minute, limit.Tokens))
		}
	}
	tr := mustNew(t, c)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range 2 * n {
		all.Go(func() {
			if i > 1 {
				time.Sleep(first)
			}
			do(t, tr, request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions", bodies[i%2], "Authorization", "Bearer "+keys[i%2]))
		})
	}
	all.Wait()
	got.status, got.took, got.partitions = server.status, server.last.Sub(begin), tr.Partitions()
	if n := transport.Active(tr); n != 0 {
		t.Errorf("%d are still under way", n)
	}
	return got
}

func chatOf(model string) string {
	return `{"model":"` + model + `","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`
}

// A dated name and its alias are one model: two clients at once, one for each, are not refused.
func TestNamesOfOneModelShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := askJointly(t, 90, 0, transport.Config{}, [2]string{chatOf("gpt-4o"), chatOf("gpt-4o-2024-08-06")}, [2]string{"a", "a"})
		t.Logf("%v in %v", got.status, got.took)
		if len(got.status) != 1 || got.status[200] != 180 || got.took > 130*time.Second {
			t.Errorf("answered %v in %v", got.status, got.took)
		}
		if len(got.partitions) != 1 || got.partitions[0].Partition.Model != "gpt-4o" {
			t.Errorf("%+v", got.partitions)
		}
	})
}

// Which models share limits the host's provider says, also once the host is known.
func TestModelsShareAsTheHostSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "{}") })
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t)})
		for _, model := range []string{"gpt-4o", "gpt-4o-2024-08-06", "claude-opus-4-1", "claude-opus-4-0"} {
			do(t, tr, request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions", chatOf(model), "Authorization", "Bearer a"))
		}
		var models []string
		for _, p := range tr.Partitions() {
			models = append(models, p.Partition.Model)
		}
		if slices.Sort(models); !slices.Equal(models, []string{"claude-opus-4-0", "claude-opus-4-1", "gpt-4o"}) { // those of another provider do not
			t.Errorf("limits for %q", models)
		}
	})
}

// Behind an address of one's own it is the provider that one names, and not what its models are called.
func TestModelsShareAsTheProviderSays(t *testing.T) {
	for name, want := range map[string][]string{
		"openai":    {"claude-opus-4-0", "claude-opus-4-1", "gpt-4o"},
		"anthropic": {"claude-opus-4", "gpt-4o"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "{}") })
			d, ok := provider.Lookup(name)
			if !ok {
				t.Fatal(name)
			}
			tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Provider: d})
			for _, model := range []string{"gpt-4o", "gpt-4o-2024-08-06", "claude-opus-4-1", "claude-opus-4-0"} {
				do(t, tr, request(t, http.MethodPost, "https://gateway.test/v1/chat/completions", chatOf(model), "Authorization", "Bearer a"))
			}
			var models []string
			for _, p := range tr.Partitions() {
				models = append(models, p.Partition.Model)
			}
			if slices.Sort(models); !slices.Equal(models, want) {
				t.Errorf("%s: limits for %q, want %q", name, models, want)
			}
		})
	}
}

// Two keys of one organization, for which the server has half the room of two keys. Nothing is
// refused, neither before the first answers show their owner nor later.
func TestKeysOfOneOrganizationJoin(t *testing.T) {
	for _, first := range []time.Duration{0, 2 * time.Second} { // from the first request of each key to the others
		synctest.Test(t, func(t *testing.T) {
			got := askJointly(t, 150, first, transport.Config{}, [2]string{chatOf("gpt-4o"), chatOf("gpt-4o")}, [2]string{"a", "b"})
			t.Logf("%v in %v", got.status, got.took)
			if got.status[200] != 300 || len(got.status) != 1 || got.took > 260*time.Second {
				t.Errorf("answered %v in %v", got.status, got.took)
			}
		})
	}
}

// Said beforehand, nothing is refused.
func TestOrganizationSaidBeforehand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := transport.Config{Organization: func(*http.Request) string { return "ours" }}
		got := askJointly(t, 90, 0, c, [2]string{chatOf("gpt-4o"), chatOf("gpt-4o")}, [2]string{"a", "b"})
		if len(got.status) != 1 || got.status[200] != 180 || got.took > 130*time.Second || len(got.partitions) != 1 || got.partitions[0].Partition.Key != "ours" {
			t.Errorf("answered %v in %v: %v", got.status, got.took, got.partitions)
		}
	})
}

// organized is a server that names the organization of each key, and answers when it is let.
type organized struct {
	of     map[string]string
	answer chan struct{}
	mu     sync.Mutex
	sent   map[string][]time.Duration
	begin  time.Time
}

func (o *organized) RoundTrip(r *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	o.mu.Lock()
	o.sent[key] = append(o.sent[key], time.Since(o.begin))
	o.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/slow") {
		select {
		case <-o.answer:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return reply(200, "{}", "Openai-Organization", o.of[key]), nil
}

// Requests of a joining key, in flight or in the window, count for both keys. Waiting requests go
// on at the joint limit, in the order of arrival. A request that gave up blocks none.
func TestJoiningForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "org", "b": "org", "c": "other"}, answer: make(chan struct{}), sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 4, time.Minute, limit.Requests)
		}})
		var all sync.WaitGroup
		send := func(key, path string, ctx context.Context) {
			all.Go(func() {
				do(t, tr, get(t, "https://api.openai.com"+path, "Authorization", "Bearer "+key).WithContext(ctx))
			})
			synctest.Wait()
		}
		muted(t, tr)
		ever := t.Context()
		gone, leave := context.WithCancel(ever)
		send("a", "/v1/models", ever)      // at 0: a is the organization's
		send("b", "/v1/models/slow", ever) // in flight
		send("b", "/v1/models/slow", ever)
		send("c", "/v1/models", ever)
		time.Sleep(10 * time.Second)
		send("b", "/v1/models", ever) // at 10 s: b is the same's. 1 of a and 3 of b count
		send("b", "/v1/models", gone) // waits
		send("a", "/v1/models", ever)
		send("b", "/v1/models", ever)
		send("c", "/v1/models", ever) // another's
		leave()
		time.Sleep(10 * time.Second)
		close(o.answer) // at 20 s what was in flight is answered: it counts until 80 s
		all.Wait()
		for key, want := range map[string][]time.Duration{"a": seconds(0, 60), "b": seconds(0, 0, 10, 70), "c": seconds(0, 10)} {
			if !slices.Equal(o.sent[key], want) {
				t.Errorf("%s: sent at %v, want %v", key, o.sent[key], want)
			}
		}
		if transport.Active(tr) != 0 {
			t.Errorf("%d are still under way", transport.Active(tr))
		}
	})
}

// muted makes a server one that does not always name the organization. No request waits for that,
// and keys go by their own limits until they join.
func muted(t *testing.T, tr *transport.Transport) {
	do(t, tr, get(t, "https://api.openai.com/v1/models", "Authorization", "Bearer nobody's"))
}

// Keys join whatever else goes on: none is lost, none goes twice, and the joint limit holds from then on.
func TestJoiningUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[string]int{}
		begin := time.Now()
		var late []time.Duration // sent when answers have named the owners of all keys
		tr := mustNew(t, transport.Config{
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.IP {
					return nil
				}
				return rolling(t, 50, time.Second, limit.Requests)
			},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				sent[r.URL.Path]++
				n := sent[r.URL.Path]
				if at := time.Since(begin); at > 1500*time.Millisecond {
					late = append(late, at)
				}
				mu.Unlock()
				time.Sleep(time.Duration(len(r.URL.Path)*7%50) * time.Millisecond)
				if n > 1 {
					t.Errorf("%s went %d times", r.URL.Path, n)
				}
				return reply(200, "{}", "Openai-Organization", "org"), nil
			}),
		})
		var all sync.WaitGroup
		for key := range 10 {
			for i := range 90 {
				all.Go(func() {
					time.Sleep(time.Duration(key*100+i%7) * time.Millisecond)
					if _, _, err := do(t, tr, get(t, fmt.Sprintf("https://api.openai.com/%d/%d", key, i), "Authorization", fmt.Sprint(key))); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if len(sent) != 900 || transport.Active(tr) != 0 {
			t.Errorf("%d sent, %d under way", len(sent), transport.Active(tr))
		}
		if len(late) < 300 {
			t.Fatal(len(late))
		}
		for i, at := range late[50:] {
			if at-late[i] < time.Second {
				t.Fatalf("51 sent from %v to %v", late[i], at)
			}
		}
	})
}
