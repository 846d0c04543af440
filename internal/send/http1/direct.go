// Package http1 sends plain requests over HTTP/1.1. The goroutine that calls Send writes the request and reads the answer, on a connection
// that it has for itself meanwhile. net/http passes each request through two more goroutines, which are two thirds of its price.
//
// It is for small requests to servers that are reached without TLS and without a proxy; Takes says which. All others are left to net/http.
// It writes the same bytes as net/http would, and http.ReadResponse reads the answers.
//
// A request is written at most once: if a kept connection turns out to be closed before a byte was written, another is taken; after the
// first byte nothing is sent again. The package starts no goroutine.
package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Client keeps connections. Its fields must not change once it is in use; Dial is required. It is safe for concurrent use.
type Client struct {
	// Dial opens a connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy, if not nil, says which proxy a request goes through, as in http.Transport. Such a request is not taken.
	Proxy func(*http.Request) (*url.URL, error)
	// Idle is how many connections to a host are kept, for IdleTimeout at most. If zero, none.
	Idle        int
	IdleTimeout time.Duration
	// Header is how many bytes the header of an answer may have. If zero, 1 MiB.
	Header int64

	mu    sync.Mutex
	idle  map[string][]*exchange // by address, the latest last
	swept time.Time              // when connections that had been idle for too long were last closed
}

// ErrLapsed says that nothing of a request was written, since there was no leave for it any more.
var ErrLapsed = errors.New("leave to send the request has lapsed before it was written")

// Send makes an attempt at a request that it Takes. It ends with ctx, or after timeout, with os.ErrDeadlineExceeded or
// context.DeadlineExceeded. fresh, if not nil, is asked right before the request is written whether it may be; if not, Send fails with ErrLapsed.
// The answer's body is a Body, and has to be closed.
func (c *Client) Send(ctx context.Context, req *http.Request, body []byte, timeout time.Duration, fresh func() bool) (*http.Response, Sent, error) {
	deadline := time.Now().Add(timeout)
	for {
		x, err := c.take(ctx, req, deadline)
		if err != nil {
			return nil, Sent{}, err
		}
		sent, err := x.write(req, body, fresh)
		if err != nil {
			x.close()
			if x.kept && !sent.Written && ctx.Err() == nil && !errors.Is(err, errPast) && !errors.Is(err, ErrLapsed) {
				continue // no byte of it has left
			}
			return nil, sent, err
		}
		res, err := x.read(req)
		if err != nil {
			x.close()
			return nil, sent, err
		}
		return res, sent, nil
	}
}

// Sent is what became of an attempt. Written says that at least a byte may have left; Began is an instant before the first byte was written,
// Last one after the system had taken the last.
type Sent struct {
	Written     bool
	Began, Last time.Time
}

// take returns a kept connection that seems to be open, or a new one.
func (c *Client) take(ctx context.Context, req *http.Request, deadline time.Time) (*exchange, error) {
	address := addressOf(req)
	for x := c.pop(address); x != nil; x = c.pop(address) {
		if x.begin(ctx, deadline) && x.isOpen() {
			return x, ctx.Err()
		}
		x.close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	in, err := c.Dial(limited, "tcp", address)
	if err != nil {
		return nil, err
	}
	x := newExchange(c, address, in)
	if !x.begin(ctx, deadline) {
		x.close()
		return nil, ctx.Err()
	}
	return x, nil
}

func (c *Client) pop(address string) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.idle[address]
	if len(all) == 0 {
		return nil
	}
	x := all[len(all)-1]
	all[len(all)-1] = nil
	c.idle[address] = all[:len(all)-1]
	return x
}

// keep puts a connection back. It returns false if enough are kept.
func (c *Client) keep(x *exchange) bool {
	x.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = map[string][]*exchange{}
	}
	if x.since.Sub(c.swept) > c.IdleTimeout/10 {
		c.sweepLocked(x.since.Add(-c.IdleTimeout))
		c.swept = x.since
	}
	all := c.idle[x.address]
	if len(all) >= c.Idle {
		return false
	}
	c.idle[x.address] = append(all, x)
	return true
}

// sweepLocked closes the connections that have been idle since before. They are the first in each list.
func (c *Client) sweepLocked(before time.Time) {
	for address, all := range c.idle {
		n := 0
		for n < len(all) && all[n].since.Before(before) {
			all[n].close()
			n++
		}
		if c.idle[address] = append(all[:0], all[n:]...); n == len(all) {
			delete(c.idle, address)
		}
		clear(all[len(all)-n:])
	}
}

// CloseIdleConnections closes the connections that are kept and not in use.
func (c *Client) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for address, all := range c.idle {
		for _, x := range all {
			x.close()
		}
		delete(c.idle, address)
	}
}
