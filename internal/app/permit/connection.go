package permit

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connection is one connection of a program.
type connection struct {
	line holderLine
	mu   sync.Mutex
	gone bool
	then []func() // to be called once it is gone
}

type connectionKey struct{}

var lines atomic.Uint64

// Track lets a server's handlers learn when a connection ends. Call it before the server serves.
func Track(s *http.Server) {
	var open sync.Map // by net.Conn
	before, state := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, c)
		}
		k := &connection{line: holderLine(lines.Add(1))}
		open.Store(c, k)
		return context.WithValue(ctx, connectionKey{}, k)
	}
	s.ConnState = func(c net.Conn, now http.ConnState) {
		if state != nil {
			state(c, now)
		}
		if now != http.StateClosed && now != http.StateHijacked {
			return
		}
		if k, ok := open.LoadAndDelete(c); ok {
			k.(*connection).end()
		}
	}
}

// connectionOf returns the connection of a request; nil: its server is not tracked.
func connectionOf(ctx context.Context) *connection {
	k, _ := ctx.Value(connectionKey{}).(*connection)
	return k
}

// end notes that the connection is gone.
func (k *connection) end() {
	k.mu.Lock()
	then := k.then
	k.gone, k.then = true, nil
	k.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// afterwards calls f once the connection is gone. It returns false if it is gone already, and f is
// never called.
func (k *connection) afterwards(f func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return false
	}
	k.then = append(k.then, f)
	return true
}
