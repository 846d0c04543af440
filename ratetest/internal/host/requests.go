package host

import (
	"sync"
	"time"
)

// Requests are the requests under way at a server. Safe for concurrent use.
type Requests struct {
	cut chan struct{} // closed: no more waiting

	mu      sync.Mutex // guards the fields below
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

// Enter reports whether another request may be handled. If true, the handler calls Leave at the
// end.
func (r *Requests) Enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.active++
	return true
}

// Leave ends a request that Enter accepted.
func (r *Requests) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active--; r.closing && r.active == 0 {
		close(r.idle)
	}
}

// Underway returns the number of requests in the handler.
func (r *Requests) Underway() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// Wait waits for d and reports whether all of it passed. It returns early when Shutdown cuts
// latencies short.
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

// Cut returns a channel that closes when Shutdown cuts latencies short.
func (r *Requests) Cut() <-chan struct{} { return r.cut }
