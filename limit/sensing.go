package limit

// sensing is a Limiter that learns from refusals how much it may send, as the limiters of shared
// quotas do. A refusal that may come from its quota must reach it, even if another limiter stays
// away because of it. Fair of package fairshare does.
type sensing interface {
	Limiter
	// Senses reports whether it does. A Limiter that is made of others senses if a part of it does.
	Senses() bool
}

// Senses reports whether l, or a part of it, learns from refusals how much it may send. Such a
// Limiter has a method
//
//	Senses() bool
func Senses(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { s, ok := l.(sensing); return ok && s.Senses() })
}
