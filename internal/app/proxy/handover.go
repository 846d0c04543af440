package proxy

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// A handover, in the order of its steps:
//
//	the former process                        the next one
//	                                          asks
//	holds back all sends and outcomes,
//	closes the state file, passes sockets on
//	                                          opens the file, serves, is ready
//	puts the next one's handover socket at
//	the path, stops accepting; passes on, to
//	the next one, what waits and what still
//	comes by its connections
//	reports each outcome                      counts it
//
// If the next one ends before it is ready, the former one goes on, and another may ask.

// HandoverPath is the path of the socket for the next process; empty: there is none. chosen means that
// the configuration names it.
func (c *Config) HandoverPath() (path string, chosen bool) {
	switch {
	case c.Handover == Off:
		return "", true
	case c.Handover != "":
		return c.Handover, true
	case c.State != "":
		return c.State + ".sock", false
	}
	return "", false
}

// Handover is what a Server needs to pass itself on.
type Handover struct {
	Socket *daemon.HandoverSocket
	Path   string // of the Socket
	// Listeners are those that go over.
	Listeners []Passed
	// Handed is called when another process has taken over. If nil, nothing is.
	Handed func()
}

// Passed is a listener, by its use and its address in the configuration.
type Passed struct {
	daemon.NamedSocket
	net.Listener
}

const (
	// readyWithin is how long the next process may take, in which nothing is sent.
	readyWithin = 15 * time.Second
	// lingerLook is the time between two looks at the connections that are left.
	lingerLook = 50 * time.Millisecond
)

// report is what the former process reports of a request in flight.
type report struct {
	Entry   int64         `json:"entry"`
	Outcome limit.Outcome `json:"outcome"`
}

// PassOn lets another process take over from now on. If this one takes over itself, PassOn completes that.
// Then this process follows the requests in flight of the process before. Call it once, after Start and before
// Wait.
func (s *Server) PassOn(h Handover) error {
	s.handover = h
	s.handed = s.server(http.HandlerFunc(s.proxy.serveHanded))
	s.handed.Protocols.SetUnencryptedHTTP2(true)
	l := s.listener(h.Socket.Requests(), &s.proxy.config.Bounds)
	if err := h.Socket.Serve(s.proxy.config.Taken); err != nil {
		return err
	}
	if s.proxy.state != nil {
		if err := s.proxy.state.journal.Lock().Keep(); err != nil {
			s.proxy.config.Log.Warn("the lock of the state file names another process", "err", err)
		}
	}
	s.inherit()
	s.run(func() error { return s.handed.Serve(l) })
	s.stops.Go(func() {
		for {
			select {
			case next := <-h.Socket.Next():
				s.hand(next)
			case <-s.left:
				return
			}
		}
	})
	return nil
}

// inherit follows the requests in flight of the process before, until that has ended.
func (s *Server) inherit() {
	from, state := s.proxy.config.Taken, s.proxy.state
	if from == nil || state == nil {
		return
	}
	s.stops.Go(func() {
		err := from.Each(func(value []byte) error {
			var o report
			if err := json.Unmarshal(value, &o); err != nil {
				return err
			}
			state.inherit(o.Entry, o.Outcome)
			return nil
		})
		if err != nil && !s.proxy.stopping.Load() {
			s.proxy.config.Log.Warn("the process before is not followed any more", "pid", from.PID, "err", err)
		}
		state.abandon()
	})
}

// offer is what the Server passes on.
func (s *Server) offer() (o daemon.Offer, sockets []syscall.Conn) {
	o.PID = os.Getpid()
	switch {
	case s.proxy.heir.Load() != nil:
		o.Refused = "another process has taken over"
	case s.proxy.stopping.Load():
		o.Refused = "it is stopping"
	case len(s.proxy.batches) > 0:
		o.Refused = "it keeps batches, whose folders only one process may use; expected a stop and a start"
	case s.proxy.config.State == "" && s.proxy.config.Shared == nil:
		o.Refused = "it has no state file and no store, so nobody else knows what it sent; expected --state"
	}
	if o.Refused != "" {
		return o, nil
	}
	if s.proxy.state != nil {
		lock := s.proxy.state.journal.Lock()
		o.Sockets = append(o.Sockets, daemon.NamedSocket{Use: useState, Address: wholePath(s.proxy.config.State)})
		sockets = append(sockets, lock.File())
	}
	for _, l := range s.handover.Listeners {
		if c, ok := l.Listener.(syscall.Conn); ok {
			o.Sockets, sockets = append(o.Sockets, l.NamedSocket), append(sockets, c)
		}
	}
	return o, sockets
}

// hand hands over to the next process.
func (s *Server) hand(next *daemon.Successor) {
	p, log := s.proxy, s.proxy.config.Log
	p.applying.Lock() // no other configuration meanwhile
	defer p.applying.Unlock()
	o, sockets := s.offer()
	if o.Refused != "" {
		_ = next.Give(o, nil)
		next.Close()
		return
	}
	began := time.Now()
	if p.state != nil {
		if err := p.state.suspend(); err != nil {
			o.Refused = "its state file: " + err.Error()
			_ = next.Give(o, nil)
			next.Close()
			return
		}
	}
	err := next.Give(o, sockets)
	if err == nil {
		err = s.handover.Socket.HandOver(next, readyWithin)
	}
	if err != nil {
		if p.state != nil {
			p.state.resume()
		}
		next.Close()
		log.Warn("no process took over, and this one goes on", "err", err)
		return
	}
	p.heir.Store(newHeir(s.handover.Path, log))
	if p.state != nil {
		p.state.handOver(func(entry int64, o limit.Outcome) error {
			if err := next.Report(report{entry, o}); err != nil {
				log.Info("the next process has ended", "err", err)
			}
			return nil
		})
	}
	for _, l := range s.listeners {
		if l.Listener != s.handover.Socket.Requests() { // a process before may just have connected
			l.Close()
		}
	}
	s.closeReaders()
	p.visits.each(func(v *visit) {
		if !v.sending.Load() {
			v.cancel(transport.ErrTakenOver)
		}
	})
	log.Info("another process has taken over", "held_back", time.Since(began), "requests", p.visits.count())
	if s.handover.Handed != nil {
		s.handover.Handed()
	}
	s.stops.Go(func() {
		defer next.Close()
		s.linger()
	})
}

// linger serves the connections that are left. A client may send on its idle connection at any time, so
// that is closed after its next answer, or when it was idle for as long as usual.
func (s *Server) linger() {
	tick := time.NewTicker(lingerLook)
	defer tick.Stop()
	for end := time.After(s.proxy.config.Bounds.IdleTimeout); s.connections() > 0; {
		select {
		case <-tick.C:
			continue
		case <-end:
		case <-s.stopped:
		}
		break
	}
	s.down.Do(s.shutdown)
}

// connections is how many connections of clients are open.
func (s *Server) connections() (n int) {
	for _, l := range s.listeners {
		l.mu.Lock()
		n += len(l.open)
		l.mu.Unlock()
	}
	return n
}

// leave closes what leads to the processes before and after.
func (s *Server) leave() {
	close(s.left)
	if s.handover.Socket != nil {
		s.handover.Socket.Close()
	}
	if from := s.proxy.config.Taken; from != nil && (s.proxy.heir.Load() == nil || s.forced.Err() != nil) {
		from.Close()
	}
	if h := s.proxy.heir.Load(); h != nil {
		h.closeIdle()
	}
}
