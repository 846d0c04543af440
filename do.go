package paceline

import (
	"context"

	"github.com/paceline-go/paceline/limit"
)

// Do waits as Wait does, runs f once it may go, and settles when f returns: as accepted if its error is nil, otherwise as unknown,
// which counts as long as the request may still arrive. So is a panic of f, and runtime.Goexit: both go on after it. Do returns f's
// error, or a *WaitError, and then f was not run.
//
// f is the request from its first byte to the last of its answer. What happens to the answer after that belongs behind Do, as does an
// error that says nothing of the request. A caller that knows more (how the request ended, what it used, what the server said) uses
// DoWith.
func (g *Gate) Do(ctx context.Context, cost limit.Cost, f func() error) error {
	return g.lane.Do(ctx, cost, f)
}

// DoWith is Do for an f that says how the request ended. Its error is returned and nothing else; a panic settles as unknown.
func (g *Gate) DoWith(ctx context.Context, cost limit.Cost, f func() (limit.Outcome, error)) error {
	return g.lane.DoWith(ctx, cost, f)
}

// Do is Gate.Do, in this lane.
func (a *Lane) Do(ctx context.Context, cost limit.Cost, f func() error) error {
	p, err := a.wait(ctx, &cost, limit.Never, nil)
	if err != nil {
		return err
	}
	var o limit.Outcome // unknown, if f never returns
	defer func() { p.Settle(o) }()
	if err = f(); err == nil {
		o.Result = limit.Accepted
	}
	return err
}

// DoWith is Gate.DoWith, in this lane.
func (a *Lane) DoWith(ctx context.Context, cost limit.Cost, f func() (limit.Outcome, error)) error {
	p, err := a.wait(ctx, &cost, limit.Never, nil)
	if err != nil {
		return err
	}
	var o limit.Outcome
	defer func() { p.Settle(o) }()
	o, err = f()
	return err
}
