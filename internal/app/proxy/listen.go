package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/jobs"
)

// Server is a Proxy at its listeners, between Start and the end of Wait.
type Server struct {
	proxy       *Proxy
	main, admin *http.Server
	forward     *http.Server  // nil: the Server is no forward proxy
	door        *forward.Door // of forward
	ended       chan error    // the error of each listener
	running     int
	stops       sync.WaitGroup // goroutines of Stop
	force       context.CancelFunc
	forced      context.Context
	metrics     *http.Server // nil: there is none
	handed      *http.Server // requests of the process before; nil: none comes
	handover    Handover
	listeners   []*listener
	stopped     chan struct{} // closed by Stop
	left        chan struct{} // closed when everything is closed
	down        sync.Once
}

// Start serves clients at l, and people and tools at admin, which may be nil. Stop closes both.
func (p *Proxy) Start(l, admin net.Listener) *Server {
	p.eachBatches((*jobs.Store).Start)
	s := &Server{proxy: p, ended: make(chan error, 5), stopped: make(chan struct{}), left: make(chan struct{})}
	s.forced, s.force = context.WithCancel(context.Background())
	b := &p.config.Bounds
	s.main = s.server(p)
	s.main.TLSConfig = p.latestTLS(func(c *Config) *tls.Config { return c.TLS })
	s.main.ConnContext = withConn
	s.main.Protocols.SetUnencryptedHTTP2(p.config.TLS == nil)
	clients := s.listener(l, b)
	s.run(func() error {
		if p.config.TLS != nil {
			return s.main.ServeTLS(clients, "", "")
		}
		return s.main.Serve(clients)
	})
	if admin != nil {
		s.admin = s.server(p.admin(admin.Addr()))
		s.run(func() error {
			return s.admin.Serve(newListener(admin, &Bounds{Connections: adminConnections, Stall: b.Stall}))
		})
	}
	return s
}

const (
	adminConnections = 256
	// streams is how many requests a client may have open on one connection of HTTP/2.
	streams = 1000
)

func (s *Server) server(h http.Handler) *http.Server {
	b := &s.proxy.config.Bounds
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: b.HeaderTimeout, IdleTimeout: b.IdleTimeout, MaxHeaderBytes: b.Header,
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: streams},
		ErrorLog:  slog.NewLogLogger(s.proxy.config.Log.Handler(), slog.LevelDebug),
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	return srv
}

func (s *Server) run(serve func() error) {
	s.running++
	go func() {
		err := serve()
		if errors.Is(err, http.ErrServerClosed) || s.proxy.heir.Load() != nil {
			err = nil
		}
		s.ended <- err
	}()
}

// Stop ends the Server: it accepts nothing new, finishes requests in flight, and gives waiting
// requests the time Grace. It returns at once. A second call breaks off everything.
func (s *Server) Stop() {
	if s.proxy.stopping.Swap(true) {
		s.force()
		s.proxy.eachBatches((*jobs.Store).Break)
		return
	}
	close(s.stopped)
	s.proxy.eachBatches((*jobs.Store).Stop)
	s.proxy.config.Log.Info("stopping", "requests", s.proxy.visits.count(), "grace", s.proxy.latest.Load().config.Grace)
	s.stops.Go(func() {
		select {
		case <-time.After(s.proxy.latest.Load().config.Grace):
		case <-s.proxy.visits.idle():
		case <-s.forced.Done():
		}
		s.proxy.drained.Store(true)
		s.proxy.visits.each(func(v *visit) { v.release() })
	})
	s.stops.Go(func() { s.down.Do(s.shutdown) })
}

// closeReaders closes the addresses of those who look at the proxy.
func (s *Server) closeReaders() {
	for _, h := range []*http.Server{s.admin, s.metrics} {
		if h != nil {
			h.Close()
		}
	}
}

// listener is newListener, for clients.
func (s *Server) listener(l net.Listener, b *Bounds) *listener {
	own := newListener(l, b)
	s.listeners = append(s.listeners, own)
	return own
}

// shutdown waits for the requests under way, and closes everything.
func (s *Server) shutdown() {
	if s.forward != nil {
		s.stops.Go(func() { s.door.Shutdown(s.forced) })
		_ = s.forward.Shutdown(s.forced)
	}
	if s.handed != nil {
		_ = s.handed.Shutdown(s.forced)
	}
	_ = s.main.Shutdown(s.forced)
	select {
	case <-s.proxy.visits.idle():
	case <-s.forced.Done():
		s.proxy.visits.each((*visit).breakOff)
		s.main.Close()
		if s.forward != nil {
			s.forward.Close()
		}
		if s.handed != nil {
			s.handed.Close()
		}
	}
	s.closeReaders()
	s.leave()
}

// Wait returns when the Server has ended: after Stop, or after a failure of a listener.
func (s *Server) Wait() (err error) {
	for range s.running {
		e := <-s.ended
		if e != nil && err == nil {
			err = e
			if !s.proxy.stopping.Load() {
				s.Stop()
				s.Stop()
			}
		}
	}
	s.stops.Wait()
	s.proxy.hangups.report()
	s.proxy.latest.Load().close()
	return err
}

// visits are the requests under way.
type visits struct {
	mu    sync.Mutex
	root  visit // of a ring
	n     int
	empty chan struct{} // a goroutine waits for the end of the last one
}

func (all *visits) add(v *visit) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.root.next == nil {
		all.root.next, all.root.prev = &all.root, &all.root
	}
	v.prev, v.next = &all.root, all.root.next
	v.prev.next, v.next.prev = v, v
	all.n++
}

func (all *visits) remove(v *visit) {
	all.mu.Lock()
	defer all.mu.Unlock()
	v.prev.next, v.next.prev = v.next, v.prev
	v.prev, v.next = nil, nil
	if all.n--; all.n == 0 && all.empty != nil {
		close(all.empty)
		all.empty = nil
	}
}

func (all *visits) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.n
}

// idle returns a channel that closes when no request is under way.
func (all *visits) idle() <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if all.empty == nil {
		all.empty = make(chan struct{})
	}
	return all.empty
}

// each calls f for every request under way. f must not wait.
func (all *visits) each(f func(*visit)) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.root.next == nil {
		return
	}
	for v := all.root.next; v != &all.root; v = v.next {
		f(v)
	}
}
