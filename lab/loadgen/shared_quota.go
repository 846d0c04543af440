package loadgen

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// Share is where processes of one's own share the quota. Its zero value: they do not, and each follows its strategy.
type Share struct {
	// Store is the store's address, and Name what the quota is called there.
	Store string `json:"store,omitempty"`
	Name  string `json:"name,omitempty"`
}

// Opener opens a store, and returns this process' part of what own makes. Closing it gives back
// what was granted and not sent.
type Opener func(ctx context.Context, s Share, own func() limit.Limiter) (limit.Limiter, io.Closer, error)

// SharedStrategy is what a Report calls the strategy of processes that share.
const SharedStrategy = "share"

// errNoOpener is a bug of whoever runs a client that shares.
var errNoOpener = errors.New("live: nothing opens the store that the quota is shared by")

// Quota is the server's quota as a limiter, in real time: a bucket that holds a window's worth.
func (c *Config) Quota() (limit.Limiter, error) {
	return limit.NewBucket(limit.BucketConfig{Limit: int64(c.Params.Burst), Window: c.real(c.Params.Window),
		Burst: int64(c.Params.Burst)})
}

// real is how long a time of the clients' clock is by ours.
func (c *Config) real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.Scale) }

// share has the process keep to the quota together with all who name the same store.
func (p *process) share(ctx context.Context, open Opener) (io.Closer, error) {
	if open == nil {
		return nil, errNoOpener
	}
	l, closer, err := open(ctx, p.Share, func() limit.Limiter {
		l, _ := p.Quota() // newProcess has made one
		return l
	})
	if err != nil {
		return nil, err
	}
	p.gate = paceline.NewGate(l)
	return closer, nil
}
