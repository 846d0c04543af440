package host

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"
)

// Host is the life of a server on a socket. It listens, and ends without leaving anything behind. A
// server embeds the Host, so the Host's methods are the server's. Made by New.
type Host struct {
	handler http.Handler
	last    func() error // writes the rest, after the last request
	work    *Requests
	clock   *Clock // nil: not of this package

	server *http.Server
	addr   net.Addr
	served chan struct{}
}

// New returns the Host of a handler, and its Requests. The handler enters and leaves each request
// there. Shutdown ends the sleeps of clock, which may be nil. At its end, it calls last to write the
// rest of the log.
func New(handler http.Handler, clock *Clock, last func() error) (Host, *Requests) {
	work := &Requests{cut: make(chan struct{}), idle: make(chan struct{})}
	return Host{handler: handler, last: last, work: work, clock: clock}, work
}

// Start listens on a TCP address and serves it. If addr is "", it is a free port of the loopback
// interface. Call either Start or StartListener, once.
func (h *Host) Start(addr string) error {
	l, err := net.Listen("tcp", cmp.Or(addr, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	h.StartListener(l)
	return nil
}

// StartListener serves l until Close, which closes it.
func (h *Host) StartListener(l net.Listener) {
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
func (h *Host) URL() string {
	if h.addr == nil {
		panic("ratetest: server not started")
	}
	return "http://" + h.addr.String()
}

// Close is Shutdown with a wait of up to 5 s for the requests under way.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return h.Shutdown(ctx)
}

// Shutdown takes no more requests and waits for those under way. When ctx is done, it cuts their
// latencies short. Requests without a check are dropped, the others are answered at once. Nothing
// runs any more when Shutdown returns. The error is that of writing the log. Shutdown and Close may
// be called again.
func (h *Host) Shutdown(ctx context.Context) error {
	h.clock.close()
	if h.server != nil {
		h.server.Shutdown(ctx) // an error means that ctx is done, which is checked below
	}
	h.work.close()
	select {
	case <-h.work.idle:
	case <-ctx.Done():
		h.work.cutShort()
	}
	if h.server != nil {
		// The last answers may not be written yet. Afterwards the connections of clients that send
		// or read too slowly are closed.
		flush, cancel := context.WithTimeout(context.Background(), time.Second)
		h.server.Shutdown(flush)
		cancel()
		h.server.Close()
		<-h.served
	}
	<-h.work.idle
	return h.last()
}
