package pool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
)

// SendPanic is the panic value of Run after a Send has panicked. It occurs in the goroutine of Run,
// where it can be recovered. errors.Is and As find the value of Send's panic, if it was an error.
type SendPanic struct {
	Value   any // of the panic
	Request Request
	Stack   []byte // of Send
}

func (e *SendPanic) Error() string {
	return fmt.Sprintf("paceline: Pool: Send of request %q panicked: %s\n\n%s", e.Request.ID,
		secret.SanitizeURLs(fmt.Sprint(e.Value)), e.Stack)
}

// Unwrap returns Value if it is an error.
func (e *SendPanic) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// spare is a goroutine whose attempt was answered. It makes the next attempt, since a new goroutine
// would have to grow its stack first.
type spare struct {
	next  Attempt
	taken bool
}

// begin sends an attempt.
func (p *Pool) begin(a Attempt) {
	if s := p.spare; s != nil {
		s.next, s.taken, p.spare = a, true, nil
		return
	}
	s := &spare{next: a, taken: true}
	p.senders.Go(func() {
		for s.taken {
			p.send(s)
		}
	})
}

// send makes the attempt of a goroutine.
func (p *Pool) send(s *spare) {
	a := s.next
	s.taken = false
	var ans Answer // unknown, if Send does not return (runtime.Goexit, a panic)
	returned := false
	defer func() {
		if v := recover(); v != nil {
			stack := make([]byte, 64<<10)
			p.panics(&SendPanic{v, a.Request, stack[:runtime.Stack(stack, false)]})
		}
		if !returned { // this goroutine is about to end, and takes no other attempt
			s = nil
		}
		p.answered(a, ans, s)
	}()
	ctx := p.ctx
	if p.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.config.Timeout)
		defer cancel()
	}
	ans = p.config.Send(ctx, a)
	returned = true
}

// panics makes Run end as soon as possible.
func (p *Pool) panics(e *SendPanic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.panicked = cmp.Or(p.panicked, e)
	p.phase = max(p.phase, draining)
}

func (p *Pool) answered(a Attempt, ans Answer, free *spare) {
	ans.Reason = secret.SanitizeURLs(ans.Reason) // an error of net/http has the whole URL in it
	p.mu.Lock()
	now := p.Now()
	if p.noticeAbort(); p.aborted && (ans.Result == limit.Unknown || ans.Result == limit.Unsent) {
		ans.Returned = true
	}
	e := p.dispatcher.Done(now, a, ans)
	name := p.config.Keys[a.Key].Name
	p.look.answered(now, p, &a, &ans)
	p.inFlight--
	p.spare = free
	p.step(now)
	p.spare = nil
	p.unlock()
	if p.log.Enabled(p.ctx, slog.LevelDebug) {
		p.log.Debug("answer", "id", a.Request.ID, "attempt", a.Number, "key", name,
			"result", ans.Result.String(), "reason", ans.Reason, "took", now.Sub(a.At), "state", e.State.String())
	}
}

// Fresh reports whether an attempt may still be sent: see paceline.Permit.Fresh. If many processes
// share a limit (package share), ask in Config.Send, right before the request is written. An
// attempt that is not fresh ends with Returned and limit.Unsent, and its request is in line again.
func (p *Pool) Fresh(a *Attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dispatcher.Fresh(a)
}
