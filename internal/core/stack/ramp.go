package stack

import (
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// DefaultRamp is the time in which the load rises after a refusal for a load that rose too quickly,
// where no other time is configured.
const DefaultRamp = time.Minute

// SetUse changes Config.Use and Config.Ramp from now on.
func (g *Stack) SetUse(now mono.Time, use float64, ramp time.Duration) error {
	if err := (&limit.HeadroomConfig{Use: use, Ramp: ramp}).Check(); err != nil {
		return err
	}
	g.ramp = ramp
	if g.use = use; use == 0 {
		g.use = 1
	}
	if g.room != nil {
		return g.room.Set(max(now, g.last), use, ramp)
	}
	if g.use < 1 || ramp > 0 {
		g.leave()
	}
	return nil
}

// leave puts a Headroom around the limits, if there are any. Requests in flight are not its own. Limits in a
// store are the part that all processes use together.
func (g *Stack) leave() {
	if g.under == nil || ability.Lapses(g.own) {
		return
	}
	g.catchUp()
	h, err := limit.NewHeadroom(limit.HeadroomConfig{Limiter: g.under, Use: g.use, Ramp: g.ramp, After: g.sent})
	if err != nil {
		panic("stack: " + err.Error()) // SetUse has checked it
	}
	g.room, g.under = h, h
	g.made[0] = h
}

// Surged notes that the server refused a load that rose too quickly: the load rises slowly again, by
// Config.Ramp, or once by DefaultRamp. Without a limit it begins slowly, as after a pause.
func (g *Stack) Surged(now mono.Time) {
	g.last = max(now, g.last)
	if g.room == nil {
		g.leave()
	}
	switch {
	case g.room == nil:
		g.Begin(g.last)
	case g.ramp > 0:
		g.room.Begin(g.last)
	default:
		g.room.BeginOnce(g.last, DefaultRamp)
	}
}

// ReadyLeaving answers limit.ReadyLeaving, also for what the server says is left.
func (g *Stack) ReadyLeaving(now mono.Time, first *limit.Cost, cost limit.Cost, free float64) mono.Time {
	now = max(now, g.last)
	t := now
	switch {
	case g.under == nil:
	case first != nil && !g.foresees:
		return limit.Never
	default:
		t = max(t, limit.ReadyLeaving(g.under, now, first, cost, free))
	}
	if g.calm {
		return t
	}
	return max(t, g.answersLet(now, first, &cost, max(free, 1-g.use)))
}
