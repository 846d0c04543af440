package sending

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/send"
)

// lateError says that an attempt took too long.
type lateError string

func (e lateError) Error() string { return string(e) }

// past is a context whose deadline has passed.
var past, _ = context.WithDeadline(context.Background(), time.Unix(0, 0))

// patience ends an attempt after the Sender's timeout. Waits on this side do not count. All attempts
// share one timer, except those that have waited.
type patience struct {
	s      *Sender
	wire   send.Exchange           // the attempt
	cancel context.CancelCauseFunc // ends the attempt if it is not on the wire of the Sender
	over   atomic.Bool             // the attempt took too long
	item   send.Watched
	own    *time.Timer   // after a wait
	began  time.Time     // or when the latest wait ended
	left   time.Duration // time left then, and during a wait

	mu        sync.Mutex // guards the following fields, and the others during the wait for an answer
	waits     bool       // in a proxy, as that says
	withdrawn bool
	sent      time.Time // when the proxy last said that it sends; zero: it did not
}

func (p *patience) begin(now time.Time) {
	p.began, p.left, p.item.Of = now, p.s.timeout, p
	p.s.watch.Begin(&p.item)
}

// Expired implements an interface of package send.
func (p *patience) Expired() {
	p.over.Store(true)
	if p.cancel != nil {
		p.cancel(p.s.late)
	} else {
		p.wire.Expire(p.s.late)
	}
}

func (p *patience) pause(on bool) {
	if on {
		p.left -= time.Since(p.began)
		p.end()
		return
	}
	p.began = time.Now()
	p.own = time.AfterFunc(p.left, p.Expired)
}

func (p *patience) end() {
	p.s.watch.End(&p.item)
	if p.own != nil {
		p.own.Stop()
	}
}
