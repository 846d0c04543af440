package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
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
