package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
	"github.com/paceline-go/paceline/transport"
)

// Limit, transport, client.
func Example() {
	rate := limit.MustRolling(20, time.Second)                   // the server's rule: 20 in any second
	paced := transport.Must(transport.Config{Limiter: rate})     // waits, settles, heeds the server, sends again
	client := &http.Client{Transport: paced, Timeout: time.Hour} // use it as ever

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
			case quota.Key:
				return limit.MustRolling(1, time.Minute)
			case quota.IP:
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
	estimator, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary}) // without Vocabulary, guessed: 14 MB less
	if err != nil {
		fmt.Println(err)
		return
	}
	paced := transport.Must(transport.Config{Limit: transport.MustPublished("openai:tier1"), Tokens: estimator, Fill: 64})
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
