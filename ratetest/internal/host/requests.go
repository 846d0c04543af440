package host

import (
	"sync"
	"time"
)

// Requests are those that a server has under way. Safe for concurrent use.
type Requests struct {
	cut chan struct{} // closed: no more waiting

	mu      sync.Mutex // stacks what follows
	active  int        // requests being handled
	closing bool
	idle    chan struct{} // closed: closing, and active is 0
}

func (r *Requests) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.closing = true
		if r.active == 0 {
			close(r.idle)
		}
	}
}

func (r *Requests) cutShort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.cut:
	default:
		close(r.cut)
	}
}

// Enter reports whether another request may be handled, which calls Leave when it is.
func (r *Requests) Enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.active++
	return true
}

// Leave is the end of a request that Enter let in.
func (r *Requests) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active--; r.closing && r.active == 0 {
		close(r.idle)
	}
}

// Underway returns how many requests are being handled.
func (r *Requests) Underway() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// Wait reports whether it took the whole time, which it does not on a closing server.
func (r *Requests) Wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.cut:
		return false
	}
}

// Cut is closed when the server closes and nobody may wait any more.
func (r *Requests) Cut() <-chan struct{} { return r.cut }
