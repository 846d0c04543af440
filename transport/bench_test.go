package transport_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// BenchmarkRequest is what a request costs over a bare http.Transport, to a server on the loopback interface: both in one run.
func BenchmarkRequest(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/chat/completions" {
			w.Header().Set("X-Ratelimit-Limit-Requests", "10000000")
			w.Header().Set("X-Ratelimit-Remaining-Requests", "9999999")
			w.Header().Set("X-Ratelimit-Reset-Requests", "1ms")
			io.WriteString(w, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
			return
		}
		io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	defer base.CloseIdleConnections()
	wide := func() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }
	openai, _ := provider.Lookup("openai")
	plain := func() *http.Request { return get(b, server.URL+"/x", "Authorization", "Bearer k") }
	llm := func() *http.Request {
		return request(b, http.MethodPost, server.URL+"/v1/chat/completions", prompt, "Authorization", "Bearer k")
	}
	paced := transport.Must(transport.Config{Base: base, Limiter: wide()})
	metered := transport.Must(transport.Config{Base: base, Limiter: wide(), Tokens: estimator(b), Provider: openai})
	for _, bc := range []struct {
		name    string
		tr      http.RoundTripper
		request func() *http.Request
	}{
		{"Bare", base, plain}, {"Paced", paced, plain},
		{"BareChat", base, llm}, {"PacedChat", paced, llm}, {"MeteredChat", metered, llm},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trip(b, bc.tr, bc.request())
			}
		})
	}
	b.Run("BareParallel", func(b *testing.B) { parallel(b, base, plain) })
	b.Run("PacedParallel", func(b *testing.B) { parallel(b, paced, plain) })
}

// BenchmarkOverhead is the same without a server: the price of the Transport itself.
func BenchmarkOverhead(b *testing.B) {
	answer := []byte(`{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
	resp := reply(200, string(answer))
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		copied := *resp
		copied.Body = http.NoBody
		return &copied, nil
	})
	run := func(name string, tr http.RoundTripper) {
		r := get(b, "http://a.test/x", "Authorization", "Bearer k")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trip(b, tr, r)
			}
		})
	}
	answered := roundTripper(func(r *http.Request) (*http.Response, error) {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		resp := reply(200, string(answer), "Content-Type", "application/json", "X-Ratelimit-Limit-Requests", "10000000",
			"X-Ratelimit-Remaining-Requests", "9999999", "X-Ratelimit-Reset-Requests", "1ms")
		resp.Request = r
		return resp, nil
	})
	chat := func(name string, tr http.RoundTripper) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trip(b, tr, request(b, http.MethodPost, "http://a.test/v1/chat/completions", prompt, "Authorization", "Bearer k"))
			}
		})
	}
	run("Bare", base)
	run("Zero", transport.Must(transport.Config{Base: base}))
	run("Limiter", transport.Must(transport.Config{Base: base, Limiter: limit.MustRolling(1<<40, time.Millisecond)}))
	run("Client", transport.Must(transport.Config{Base: base, Limiter: limit.MustRolling(1<<40, time.Millisecond), Client: clients(nil), MaxWait: atMost(time.Minute)}))
	run("Keys", transport.Must(transport.Config{Base: base, Limiter: limit.MustRolling(1<<40, time.Millisecond), Keys: keys(b, 1<<30, "a", "b", "c")}))
	// Last, since Lookup makes the table of providers: the collector would mark it during the rows above, too.
	openai, _ := provider.Lookup("openai")
	wide := func() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }
	chat("ChatBare", answered)
	chat("ChatPaced", transport.Must(transport.Config{Base: answered, Limiter: wide()}))
	chat("ChatMetered", transport.Must(transport.Config{Base: answered, Limiter: wide(), Tokens: estimator(b), Provider: openai}))
}

func trip(tb testing.TB, tr http.RoundTripper, r *http.Request) {
	resp, err := tr.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func parallel(b *testing.B, tr http.RoundTripper, request func() *http.Request) {
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			trip(b, tr, request())
		}
	})
}

// The allocations of a request besides the Base do not creep up.
func TestAllocations(t *testing.T) {
	most := 12.0
	if race.Enabled { // it allocates too
		most = 15
	}
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	r := get(t, "http://a.test/x", "Authorization", "Bearer k").WithContext(context.Background())
	for name, c := range map[string]transport.Config{
		"plain":  {},
		"client": {Client: func(*http.Request) transport.Client { return transport.Client{Name: "a"} }, MaxWait: atMost(time.Minute)},
	} {
		c.Base, c.Limiter = base, limit.MustRolling(1<<40, time.Millisecond)
		tr := mustNew(t, c)
		if n := testing.AllocsPerRun(100, func() { trip(t, tr, r) }); n > most {
			t.Errorf("%s: %v allocations, want %v at most", name, n, most)
		}
	}
}

// An attempt fits the runtime's next smaller size of memory, and 128 bytes more are 3 % of a request's time. What
// only few requests need belongs behind a pointer.
func TestSizeOfAttempt(t *testing.T) {
	if most := uintptr(1152); transport.AttemptSize > most {
		t.Errorf("an attempt takes %d bytes, want %d at most", transport.AttemptSize, most)
	}
}

var _ net.Error = (*transport.Error)(nil)

// BenchmarkFrozen measures a request of a partition that is frozen, beside one that is at hand. Each
// one freezes another.
func BenchmarkFrozen(b *testing.B) {
	for _, most := range []int{0, 10} {
		b.Run(map[bool]string{true: "AtHand", false: "Frozen"}[most == 0], func(b *testing.B) {
			tr := mustNew(b, transport.Config{
				Base: roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, ""), nil }), MaxPartitions: most,
				Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Key {
						return nil
					}
					return limit.MustRolling(1_000_000, 24*time.Hour)
				},
			})
			var all []*http.Request
			for i := range 1000 {
				all = append(all, get(b, "http://a.test/", "Authorization", "Bearer "+strconv.Itoa(i)))
				do(b, tr, all[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				do(b, tr, all[i%len(all)])
			}
		})
	}
}
