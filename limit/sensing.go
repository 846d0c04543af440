package limit

import "slices"

// Sensing is a Limiter that finds out by refusals how much it may send, as the laws do by which strangers share a quota: a refusal
// that may be of its quota must reach it, whoever else stays away because of it. Fair of package throttle is.
type Sensing interface {
	Limiter
	// Senses says so: a Limiter made of others is, if one of them is.
	Senses() bool
}

// Senses tells whether l is Sensing.
func Senses(l Limiter) bool {
	s, ok := l.(Sensing)
	return ok && s.Senses()
}

// Senses implements Sensing, if one of its limiters does.
func (a *All) Senses() bool {
	return slices.ContainsFunc(a.each, Senses)
}

// Senses implements Sensing, if its Limiter does.
func (f *Fitted) Senses() bool { return Senses(f.own) }
