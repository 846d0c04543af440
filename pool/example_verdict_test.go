package pool_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider/classify"
)

// A Send over HTTP. The end of the request is a verdict, and its Answer is the Pool's. The server
// refuses the first request with a stated time; the Pool sends it again after that.
func ExamplePool_verdict() {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After-Ms", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()

	var policy classify.Policy
	send := func(ctx context.Context, a pool.Attempt) pool.Answer {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/"+a.Request.ID, nil)
		if err != nil {
			return pool.Answer{Invalid: true, Reason: err.Error()}
		}
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		try := classify.From(req, resp, err)
		if err == nil {
			try.Body, try.Err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		try.Now, try.Took = time.Now(), time.Since(began)
		return policy.Of(&try).Answer()
	}

	p, err := pool.New(pool.Config{
		Keys:  []pool.Key{{Name: "one", Limiter: limit.MustRolling(20, time.Second)}},
		Send:  send,
		Ended: func(e pool.Ended) { fmt.Printf("%s: %v after %d attempts\n", e.Request.ID, e.State, e.Attempts) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := p.Submit(context.Background(), pool.Request{ID: "a", Cost: limit.One}); err != nil {
		fmt.Println(err)
	}
	p.Close()
	fmt.Println(p.Run(context.Background()))
	// Output:
	// a: done after 2 attempts
	// <nil>
}
