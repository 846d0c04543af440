package proxybench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection that a client keeps for all of its requests.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(ctx context.Context, address string) (*conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// ask writes a request, as curl would.
func (c *conn) ask(path string) error {
	_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: server\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	return err
}

// get sends a request and reads the answer to its end.
func (c *conn) get(path string) (status int, err error) {
	if err := c.ask(path); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, err
}

// stopping has reads on c fail when ctx ends. The caller has to call stop.
func stopping(ctx context.Context, c *conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
}

// closed sends n requests from so many clients, each of which waits for an answer before it sends
// again (a closed loop). It returns how long each request took.
func closed(ctx context.Context, address, path string, clients, n int) (took []time.Duration, wall time.Duration,
	err error) {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		mu   sync.Mutex
	)
	began := time.Now()
	for range clients {
		wg.Go(func() {
			mine, failed := one(ctx, address, path, &next, n)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if failed != nil && err == nil {
				err = failed
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took, time.Since(began), err
}

func one(ctx context.Context, address, path string, next *atomic.Int64, n int) (took []time.Duration, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer stopping(ctx, c)()
	for next.Add(1) <= int64(n) {
		began := time.Now()
		status, err := c.get(path)
		if err != nil {
			return took, err
		}
		if status != http.StatusOK {
			return took, fmt.Errorf("answered %d", status)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// events reads streams one after the other. It returns how long after the request the first event
// of each stream came, and how long events were under way. The events themselves tell when they
// were sent.
func events(ctx context.Context, address string, streams int) (first, under []time.Duration, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	defer stopping(ctx, c)()
	for range streams {
		began := time.Now()
		if err := c.ask(streamPath); err != nil {
			return nil, nil, err
		}
		resp, err := http.ReadResponse(c.r, nil)
		if err != nil {
			return nil, nil, err
		}
		lines, seen := bufio.NewScanner(resp.Body), 0
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, nil, err
			}
			if seen++; seen == 1 {
				first = append(first, time.Since(began))
			}
			under = append(under, time.Duration(time.Now().UnixNano()-at))
		}
		resp.Body.Close()
		if err := lines.Err(); err != nil {
			return nil, nil, err
		}
		if seen != streamEvents {
			return nil, nil, fmt.Errorf("%d of %d events came", seen, streamEvents)
		}
	}
	slices.Sort(first)
	slices.Sort(under)
	return first, under, nil
}
