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
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// What a request counts in: its host, its key, its model, its route.
func ExamplePartitionOf() {
	r := httptest.NewRequest(http.MethodGet, "https://api.example.com/v1/orders", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	p := transport.PartitionOf(r)
	fmt.Println(p.Host, p.Key != "" && p.Key != "s3cret") // a hash, so that no log has the key
	fmt.Println(transport.CredentialOf(r) != "")
	// Output:
	// api.example.com true
	// true
}

// A server asks for a long pause. The next request fails at once, with the time to come back. Each
// reason has an error of its own.
func ExampleError() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	var recorder transport.Recorder = new(journal)
	paced := transport.Must(transport.Config{MaxRetryAfter: time.Minute, Attempts: 1, Recorder: recorder})
	client := &http.Client{Transport: paced}
	if resp, err := client.Get(server.URL); err == nil {
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	_, err := client.Get(server.URL)
	switch {
	case errors.Is(err, transport.ErrPaused):
		fmt.Println("the server wants to be left alone")
	case errors.Is(err, transport.ErrOutage), errors.Is(err, transport.ErrAttemptTimeout):
		fmt.Println("nothing reaches the server")
	case errors.Is(err, transport.ErrKeys), errors.Is(err, transport.ErrPrice):
		fmt.Println("somebody has to look at the account")
	case errors.Is(err, transport.ErrFull), errors.Is(err, paceline.ErrFull):
		fmt.Println("too many wait, or too many partitions")
	}
	for _, s := range paced.Partitions() {
		var partition transport.PartitionStats = s
		for _, pause := range partition.Pauses {
			fmt.Println(pause.Refusal, time.Until(pause.Until).Round(time.Hour))
			break
		}
	}
	paced.CloseIdleConnections()
	// Output:
	// 429
	// the server wants to be left alone
	// rate limited 2h0m0s
}

// journal is a Recorder that remembers nothing: a real one writes a file. The next Transport reads it
// with Earlier.
type journal struct{ sent int64 }

func (j *journal) Send(transport.Partition, limit.Cost) (entry int64, err error) {
	j.sent++
	return j.sent, nil
}

func (j *journal) Settle(int64, limit.Cost, limit.Outcome) {}

func (j *journal) Earlier(transport.Partition, time.Time) (all []limit.Past, since mono.Time) {
	return nil, mono.Min
}

// Two Transports, one of each upstream, with clients in common: a client's limit is of both together.
// The limits are published ones.
func ExampleNewClients() {
	clients, err := transport.NewClients(transport.ClientsConfig{Most: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	published, err := transport.Published("heroku")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for range 2 {
		acme := transport.Client{Name: "acme", Limit: func() limit.Limiter { return limit.MustRolling(1, time.Hour) }}
		paced := transport.Must(transport.Config{
			Limit: published, Clients: clients, Client: func(*http.Request) transport.Client { return acme },
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		resp, err := paced.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		fmt.Println(err == nil, errors.Is(err, paceline.ErrDeadline))
		cancel()
		paced.CloseIdleConnections()
	}
	// Output:
	// true false
	// false true
}
