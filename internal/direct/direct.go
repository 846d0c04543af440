// Package direct sends plain requests over HTTP/1.1, each over a connection that nobody else has meanwhile, written and read by
// who asks. net/http has two more goroutines on each connection, and a request goes through both: that is two thirds of its price.
//
// It is for requests that are small, to a server that is reached without TLS and without a proxy; Takes says which. All others
// are net/http's. What is written is what net/http writes, and its http.ReadResponse reads what comes back.
//
// A request is written at most once: where a kept connection turns out to be closed before a byte was written, another is taken; after
// that nothing is sent again. It starts no goroutine.
package direct

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
	// Proxy, if not nil, says what a request goes through, as in http.Transport: such a request is not taken.
	Proxy func(*http.Request) (*url.URL, error)
	// Idle is how many connections are kept of a host, for IdleTimeout at most. If zero, none.
	Idle        int
	IdleTimeout time.Duration
	// Header is the longest header of an answer. If zero, 1 MiB.
	Header int64

	mu    sync.Mutex
	idle  map[string][]*exchange // by address, the latest last
	swept time.Time              // when those were closed that had been idle for too long
}

// Send makes an attempt at a request that it Takes. It ends with ctx, or after timeout, with os.ErrDeadlineExceeded or
// context.DeadlineExceeded. The answer's body is a Body, and has to be closed.
func (c *Client) Send(ctx context.Context, req *http.Request, body []byte, timeout time.Duration) (*http.Response, Sent, error) {
	deadline := time.Now().Add(timeout)
	for {
		x, err := c.take(ctx, req, deadline)
		if err != nil {
			return nil, Sent{}, err
		}
		sent, err := x.write(req, body)
		if err != nil {
			x.close()
			if x.kept && !sent.Written && ctx.Err() == nil && !errors.Is(err, errPast) {
				continue // nobody has seen it
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

// Sent is what became of an attempt: whether at least a byte may have left, an instant before the first did, and one after the last was
// given to the system.
type Sent struct {
	Written     bool
	Began, Last time.Time
}

// take returns a connection that is kept and seems to be open, or a new one.
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

// keep puts a connection back. False: it is one too many.
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

// sweepLocked closes what has been idle since before, the first in each list.
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
