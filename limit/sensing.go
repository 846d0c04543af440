package limit

// Sensing is a Limiter that finds out from refusals how much it may send, as do the laws by which strangers share a quota. A refusal
// that may come from its quota must reach it, whoever else stays away because of it. Fair of package fairshare is Sensing.
type Sensing interface {
	Limiter
	// Senses reports whether it is so: a Limiter that is made of others senses if one of them does.
	Senses() bool
}

// Senses reports whether l is Sensing.
func Senses(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { s, ok := l.(Sensing); return ok && s.Senses() })
}
