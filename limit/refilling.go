package limit

// Refilling is a Limiter that knows of some resets that there is more long before: they are when a bucket is full again, as the IETF draft lets
// a server tell it. Whoever keeps to resets, and to waits that are made of them, asks it first. Fair and Auto of package fairshare are Refilling.
type Refilling interface {
	Limiter
	// Refills returns the units whose Reset in an outcome is such a one: bit u for Unit u. Ask after it was told of the answer, by Settle and
	// State, if it will be. It changes nothing.
	Refills(o Outcome) (units uint8)
}

// Refills returns the units whose Reset in an outcome is when a bucket is full again, as far as l or what it is made of is Refilling.
func Refills(l Limiter, o Outcome) (units uint8) {
	ask(l, func(r Refilling) { units |= r.Refills(o) })
	return units
}
