package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
	"github.com/paceline-go/paceline/transport"
)

// Limit, transport, client.
func Example() {
	rate := limit.MustRolling(20, time.Second) // the server's rule: 20 in any second
	paced := transport.Must(transport.Config{  // waits, settles, heeds the server, sends again
		Limiter: rate, AttemptTimeout: 30 * time.Second, // of one attempt; a client's Timeout would include the wait
	})
	client := &http.Client{Transport: paced} // use it as ever

	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	client.CloseIdleConnections()
	// Output: 404
}

// A limit for each key, one for each address, and when a request could have gone that did not.
func ExampleConfig_limit() {
	paced := transport.Must(transport.Config{
		Limit: func(p transport.Partition) limit.Limiter {
			switch p.Scope {
			case provider.Key:
				return limit.MustRolling(1, time.Minute)
			case provider.IP:
				return limit.MustRolling(100, time.Minute)
			}
			return nil
		},
	})
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ask := func(key string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Api-Key", key)
		resp, err := paced.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	fmt.Println(ask("one"), ask("two"))
	err := ask("one")
	var e *transport.Error
	fmt.Println(errors.Is(err, paceline.ErrDeadline), errors.As(err, &e) && time.Until(e.Ready) > 50*time.Second)
	paced.CloseIdleConnections()
	// Output:
	// <nil> <nil>
	// true true
}

// A language model: its published limits, of requests and of tokens, for each model. Prompts that fit beside the first in line go
// ahead of it.
func ExampleConfig_tokens() {
	estimator, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary}) // without Vocabulary, guessed: 1.5 MB less
	if err != nil {
		fmt.Println(err)
		return
	}
	openai, _ := provider.Lookup("openai") // the host of its own needs no Provider
	paced := transport.Must(transport.Config{Limit: transport.MustPublished("openai:tier1"), Tokens: estimator, Provider: openai, Fill: 64})
	client := &http.Client{Transport: paced} // for an SDK: option.WithHTTPClient(client)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}`)
	}))
	defer server.Close()
	ask := func(most int) error {
		body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"Why?"}]}`, most)
		resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	fmt.Println(ask(100))
	var e *transport.Error
	fmt.Println(errors.As(ask(40_000), &e), e.Size, e.Unit, "of", e.Limit)
	client.CloseIdleConnections()
	// Output:
	// <nil>
	// true 40000 tokens of 30000
}

// A server that says in the body of a 200 that it is not ready is asked again, and a slow one is asked twice.
func ExampleConfig_checkRetry() {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			fmt.Fprint(w, `{"state":"pending"}`)
			return
		}
		fmt.Fprint(w, `{"state":"done"}`)
	}))
	defer server.Close()
	paced := transport.Must(transport.Config{
		Attempts: 5,
		Backoff:  backoff.Policy{Base: time.Millisecond},
		Hedge:    transport.Hedge{After: time.Minute, Quantile: 0.95}, // of those that may be processed twice
		CheckRetry: func(ctx context.Context, a transport.Attempt, resp *http.Response) (bool, error) {
			if a.Status != http.StatusOK {
				return a.Again, nil // as it would
			}
			body, err := io.ReadAll(resp.Body) // the caller finds it whole
			return strings.Contains(string(body), "pending"), err
		},
	})
	resp, err := (&http.Client{Transport: paced}).Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body), "after", paced.Stats().Attempts)
	paced.CloseIdleConnections()
	// Output: {"state":"done"} after 3
}

// A service sends requests for its tenants. Interactive tenants go before tenants in bulk, and each
// has its part. No request waits for longer than a minute. Of two keys, each request takes the one
// that lets it go first.
func ExampleConfig_client() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Api-Key"))
	}))
	defer server.Close()
	key := func(name, secret string) transport.Key {
		return transport.Key{Name: name, Apply: func(r *http.Request) { r.Header.Set("X-Api-Key", secret) }}
	}
	paced := transport.Must(transport.Config{
		Keys: []transport.Key{key("first", "s3cret"), key("second", "hunter2")},
		Limit: func(p transport.Partition) limit.Limiter { // of each key
			if p.Scope != provider.Key {
				return nil
			}
			return limit.MustRolling(1, time.Hour)
		},
		Client: func(r *http.Request) transport.Client {
			c := transport.Client{Name: r.Header.Get("Tenant"), Weight: 1, MaxWaiting: 1000}
			if r.Header.Get("Interactive") != "" {
				c.Name, c.HeadStart = c.Name+" interactive", time.Minute
			}
			return c
		},
		MaxWait: func(*http.Request) time.Duration { return time.Minute },
	})
	for range 3 {
		r, _ := http.NewRequest(http.MethodGet, server.URL, nil)
		r.Header.Set("Tenant", "acme")
		resp, err := (&http.Client{Transport: paced}).Do(r)
		if e, ok := errors.AsType[*transport.Error](err); ok {
			fmt.Printf("%s: in %v, since the limit of %s is used up\n", e.Client, time.Until(e.Ready).Round(time.Hour), e.Name)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(string(body))
	}
	paced.CloseIdleConnections()
	// Output:
	// s3cret
	// hunter2
	// acme: in 1h0m0s, since the limit of requests is used up
}
