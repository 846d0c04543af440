package limit

// Refilling is a Limiter that knows of some resets that there is more long before: they are when a bucket is full again, as the IETF draft lets
// a server tell it. Whoever keeps to resets, and to waits that are made of them, asks it first. Fair and Auto of package throttle are Refilling.
type Refilling interface {
	Limiter
	// Refills returns the units whose Reset in an outcome is such a one: bit u for Unit u. Ask after it was told of the answer, by Settle and
	// State, if it will be. It changes nothing.
	Refills(o Outcome) (units uint8)
}

// Refills returns the units whose Reset in an outcome is when a bucket is full again, as far as l or what it is made of is Refilling.
func Refills(l Limiter, o Outcome) (units uint8) {
	if r, ok := l.(Refilling); ok {
		return r.Refills(o)
	}
	return 0
}

// Refills implements Refilling: what one of its limiters knows.
func (a *All) Refills(o Outcome) (units uint8) {
	for _, l := range a.each {
		units |= Refills(l, o)
	}
	return units
}

// Refills implements Refilling, if its Limiter does.
func (f *Fitted) Refills(o Outcome) uint8 { return Refills(f.own, o) }

// Refills implements Refilling, if its Limiter does.
func (n *named) Refills(o Outcome) uint8 { return Refills(n.Limiter, o) }

// Refilled takes out of an outcome that these units are to be waited for until their Resets: those, and RetryAfter if it is one of them to the
// nanosecond. Then the reader of the answer has made it of that, as nothing else was said, or the server has.
func (o *Outcome) Refilled(units uint8) {
	for u, reset := range o.Reset {
		if units>>u&1 == 0 {
			continue
		}
		if o.RetryAfter == reset {
			o.RetryAfter = 0
		}
		o.Reset[u] = 0
	}
}
