package permit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Client acquires and settles permits of a Server. It is safe for concurrent use.
type Client struct {
	// HTTP leads to the Server, whatever the host of a URL.
	HTTP *http.Client
	// Name is the client's name. It may be empty.
	Name string
}

// Want is what to acquire. MaxWait bounds the wait, if Bounded. Credential is for an upstream whose
// requests have a key of the program.
type Want struct {
	Limit      string
	Cost       limit.Cost
	Bounded    bool
	MaxWait    time.Duration
	Credential string
}

// Granted is a permit that the Client holds. It lapses TTL after the latest renewal. Key and Target are the
// names of those of an upstream in whose limits it counts; empty: there are none.
type Granted struct {
	ID          string
	TTL         time.Duration
	Key, Target string
}

// RefusedError is a refusal of the Server. Kind is a section of docs/permit.md.
type RefusedError struct {
	Kind, Detail string
	Status       int
}

func (e *RefusedError) Error() string { return e.Detail }

// Acquire waits for the turn of one permit.
func (c *Client) Acquire(ctx context.Context, w Want) (g Granted, err error) {
	cost := map[string]int64{}
	for i, u := range units {
		if w.Cost[u] != 0 || u == limit.Requests {
			cost[unitWords[i]] = w.Cost[u]
		}
	}
	message := map[string]any{"limit": w.Limit, "client": c.Name, "cost": cost}
	if w.Bounded {
		message["max_wait"] = w.MaxWait.Seconds()
	}
	if w.Credential != "" {
		message["credential"] = w.Credential
	}
	var a struct {
		Permits []string `json:"permits"`
		Keys    []string `json:"keys"`
		Targets []string `json:"targets"`
		TTLMS   int64    `json:"ttl_ms"`
	}
	if err := c.call(ctx, "/v1/acquire", message, &a); err != nil {
		return g, err
	}
	if len(a.Permits) != 1 {
		return g, fmt.Errorf("the daemon granted %d permits, expected 1", len(a.Permits))
	}
	g = Granted{ID: a.Permits[0], TTL: time.Duration(a.TTLMS) * time.Millisecond}
	if len(a.Keys) > 0 {
		g.Key = a.Keys[0]
	}
	if len(a.Targets) > 0 {
		g.Target = a.Targets[0]
	}
	return g, nil
}

// Settle reports how the request of a permit ended: by "accepted", "refused", "failed", "unsent" or
// "unknown".
func (c *Client) Settle(ctx context.Context, g Granted, result string) error {
	return c.call(ctx, "/v1/settle", []any{map[string]any{"id": g.ID, "result": result}}, nil)
}

// Renew keeps a permit for a TTL more. It returns false if the Server does not know it any more.
func (c *Client) Renew(ctx context.Context, g Granted) (bool, error) {
	var a struct {
		Renewed int `json:"renewed"`
	}
	err := c.call(ctx, "/v1/renew", []string{g.ID}, &a)
	return a.Renewed == 1, err
}

func (c *Client) call(ctx context.Context, path string, message, answer any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://paceline"+path+"?"+url.Values{"client": {c.Name}}.Encode(), bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if b, err = io.ReadAll(io.LimitReader(a.Body, longestMessage)); err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		x := refusal{Detail: "the daemon answers " + a.Status}
		_ = json.Unmarshal(b, &x) // else the status says enough
		return &RefusedError{Kind: cmp.Or(x.kindOf(), "unexpected"), Detail: x.Detail, Status: a.StatusCode}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}
