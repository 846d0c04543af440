package transport_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

// history is what a server gets, and what its clients, in words.
type history struct {
	seed  uint64
	begin time.Time
	mu    sync.Mutex
	said  []string
	asked map[string]int
}

func newHistory(seed uint64) *history {
	return &history{seed: seed, begin: time.Now(), asked: map[string]int{}}
}

func (h *history) says(format string, a ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, fmt.Sprintf("%12d ", time.Since(h.begin))+fmt.Sprintf(format, a...))
}

// rand is numbers that depend on nothing but these words, and on how often they were asked for.
func (h *history) rand(words string) *rand.Rand {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[words]++
	return rand.New(rand.NewPCG(h.seed, uint64(crc32.ChecksumIEEE(fmt.Append(nil, words, h.asked[words])))))
}

// sum is a sum of all that was said, in the order of instants.
func (h *history) sum() string {
	slices.Sort(h.said)
	return fmt.Sprintf("%d %08x", len(h.said), crc32.ChecksumIEEE([]byte(strings.Join(h.said, "\n"))))
}

// ask has n requests go, at distinct instants, to one of these paths.
func (h *history) ask(t *testing.T, tr *transport.Transport, all *sync.WaitGroup, n int, key string, paths ...string) {
	rng := h.rand("ask " + key)
	for i := range n {
		time.Sleep(time.Duration(1+rng.IntN(400_000_000)) * time.Nanosecond)
		path := paths[rng.IntN(len(paths))]
		all.Go(func() {
			r := get(t, "https://api.openai.com"+path, "X-Number", fmt.Sprint(key, i))
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
			}
			status, _, err := do(t, tr, r)
			h.says("%s%d %s: %d %v", key, i, path, status, err)
		})
	}
}

// keyedHistory is requests with some of the Transport's keys, which deny, are banned and come back.
func keyedHistory(t *testing.T, seed uint64) *history {
	h := newHistory(seed)
	rng := h.rand("config")
	var ks []transport.Key
	for i := range 1 + rng.IntN(5) {
		name, account := fmt.Sprint("k", i), fmt.Sprint("account", rng.IntN(3))
		span := time.Duration(200+rng.IntN(500))*time.Millisecond + time.Duration(rng.IntN(1e6))
		ks = append(ks, transport.Key{Name: name, Account: account,
			Apply: func(r *http.Request) { r.Header.Set("X-Key", name) },
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != "key" {
					return nil
				}
				return rolling(t, 1, span, limit.Requests)
			}})
	}
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		key, path := r.Header.Get("X-Key"), r.URL.Path
		rng := h.rand(key + r.Header.Get("X-Number"))
		h.says("%s with %s", r.Header.Get("X-Number"), key)
		time.Sleep(time.Duration(1 + rng.IntN(300_000_000)))
		phase := int(time.Since(h.begin)/(10*time.Second)) + int(key[1])
		switch n := rng.IntN(40); {
		case path == "/secret" || phase%4 == 0 && n < 35:
			return reply(401+2*(n%2), ""), nil
		case n == 36:
			return reply(402, `{"detail":"Payment required"}`), nil
		case n == 37:
			return reply(429, "", "Retry-After", "2"), nil
		case n == 38:
			return reply(503, ""), nil
		}
		return reply(200, "fine"), nil
	})
	tr := mustNew(t, transport.Config{Base: server, Keys: ks, Attempts: 3, Backoff: backoff.Policy{Jitter: -1}})
	var all sync.WaitGroup
	for range 8 {
		h.ask(t, tr, &all, 20, "", "/", "/", "/", "/secret")
		name := ks[rng.IntN(len(ks))].Name
		h.says("readmit %s: %v", name, tr.Readmit(name))
	}
	all.Wait()
	for _, k := range tr.Snapshot().Keys {
		h.says("%s is %s %s %d", k.Name, k.State, k.Why, k.Accepted)
	}
	return h
}

// ownersHistory is requests whose answers name the organizations of their keys, or do not. It says
// in the end how much counted in each partition.
func ownersHistory(t *testing.T, seed uint64) *history {
	h := newHistory(seed)
	rng := h.rand("config")
	organizations, named := 1+rng.IntN(3), []int{100, 100, 70, 0}[rng.IntN(4)]
	n, span := int64(1+rng.IntN(6)), time.Duration(1+rng.IntN(20))*time.Second
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		rng := h.rand(r.Header.Get("X-Number"))
		h.says("%s", key)
		time.Sleep(time.Duration(1 + rng.IntN(2_000_000_000)))
		org, status := "", 200
		if rng.IntN(100) < named {
			org = fmt.Sprint("org", int(key[3]-'0')*int(seed%97+1)%organizations)
		}
		switch rng.IntN(12) {
		case 0:
			status = 429
		case 1:
			status = 401
		case 2:
			status = 502
		}
		return reply(status, "{}", "Openai-Organization", org), nil
	})
	tr := mustNew(t, transport.Config{Base: server, Attempts: 1 + rng.IntN(2), Backoff: backoff.Policy{Jitter: -1},
		Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != "key" {
				return nil
			}
			return rolling(t, n, span, limit.Requests)
		}})
	var all sync.WaitGroup
	keys := rng.Perm(2 + rng.IntN(5))
	for range 2 {
		for _, k := range keys {
			h.ask(t, tr, &all, 2+rng.IntN(2*int(n)), fmt.Sprint("key", k), "/v1/models", "/v1/files")
			time.Sleep(time.Duration(rng.IntN(4)/3*rng.IntN(9)) * time.Second)
		}
	}
	all.Wait()
	h.said = nil // requests of one key may change places, where several may go at one instant
	for _, l := range tr.Snapshot().Limits {
		h.said = append(h.said, fmt.Sprintln(l.Name, l.Total, l.Allowed))
	}
	if n := transport.Active(tr); n != 0 {
		t.Errorf("seed %d: %d are still under way", seed, n)
	}
	return h
}

// Histories were recorded before keyring decided what keys are: which request goes when with which
// key, how it ends, which keys are out, and which keys share partitions.
func TestHistories(t *testing.T) {
	race.Without(t) // keys and owners have stress tests of their own
	var all strings.Builder
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			fmt.Fprintln(&all, "keys", seed, keyedHistory(t, seed).sum())
		})
		synctest.Test(t, func(t *testing.T) {
			fmt.Fprintln(&all, "owners", seed, ownersHistory(t, seed).sum())
		})
	}
	golden.Compare(t, "histories", all.String())
}
