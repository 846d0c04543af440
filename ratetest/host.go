package ratetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// host is the life of a server: it listens, knows the requests under way, and ends without leaving anything behind. Made by
// newHost.
type host struct {
	handler http.Handler
	last    func() error  // after the last request: what is left to write
	cut     chan struct{} // closed: no more waiting

	mu      sync.Mutex // guards what follows
	active  int        // requests being handled
	closing bool
	idle    chan struct{} // closed: closing, and active is 0

	server *http.Server
	addr   net.Addr
	served chan struct{}
}

func newHost(handler http.Handler, last func() error) host {
	return host{handler: handler, last: last, cut: make(chan struct{}), idle: make(chan struct{})}
}

// Start listens on a TCP address and serves it; "" is a free port of the loopback interface. Call it, or StartListener,
// once.
func (h *host) Start(addr string) error {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	h.StartListener(l)
	return nil
}

// StartListener serves l until Close, which closes it.
func (h *host) StartListener(l net.Listener) {
	if h.server != nil {
		panic("ratetest: server started twice")
	}
	h.addr = l.Addr()
	h.served = make(chan struct{})
	h.server = &http.Server{
		Handler:           h.handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go func() {
		defer close(h.served)
		h.server.Serve(l) // returns on Shutdown
	}()
}

// URL returns "http://host:port" of a started server.
func (h *host) URL() string {
	if h.addr == nil {
		panic("ratetest: server not started")
	}
	return "http://" + h.addr.String()
}

// Close is Shutdown that waits up to 5 s for the requests under way.
func (h *host) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return h.Shutdown(ctx)
}

// Shutdown takes no more requests and waits for those under way. When ctx is done it cuts their latencies short: those
// not checked yet are dropped, the others are answered at once. Nothing runs any more when it returns. The error is that
// of writing the log, if there was one. Call it, or Close, as often as you like.
func (h *host) Shutdown(ctx context.Context) error {
	if h.server != nil {
		h.server.Shutdown(ctx) // an error says that ctx is done, which is seen below
	}
	h.mu.Lock()
	if !h.closing {
		h.closing = true
		if h.active == 0 {
			close(h.idle)
		}
	}
	h.mu.Unlock()
	select {
	case <-h.idle:
	case <-ctx.Done():
		h.cutShort()
	}
	if h.server != nil {
		// The last answers may not be written yet. Then close the connections of clients that send or read too slowly.
		flush, cancel := context.WithTimeout(context.Background(), time.Second)
		h.server.Shutdown(flush)
		cancel()
		h.server.Close()
		<-h.served
	}
	<-h.idle
	return h.last()
}

func (h *host) cutShort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.cut:
	default:
		close(h.cut)
	}
}

// enter reports whether another request may be handled, which calls leave when it is.
func (h *host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.active++
	return true
}

func (h *host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active--; h.closing && h.active == 0 {
		close(h.idle)
	}
}

// underway returns how many requests are being handled.
func (h *host) underway() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active
}

// wait reports whether it took the whole time, which it does not on a closing server.
func (h *host) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.cut:
		return false
	}
}
