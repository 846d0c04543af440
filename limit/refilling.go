package limit

// refilling is a Limiter that knows which resets are no wait. Such a reset is the time of a full
// bucket, as the IETF draft allows, and more is free long before. Code that obeys resets, and waits
// made of them, calls Refills first. Fair and Auto of package fairshare do.
type refilling interface {
	Limiter
	// Refills returns the units whose Reset in an outcome is such a time: bit u for Unit u. Call it
	// after Settle and State of the answer, if there are such calls. It changes nothing.
	Refills(o *Outcome) (units uint8)
}

// Refills returns the units whose Reset in an outcome is the time of a full bucket. It asks l, or
// the parts of l that have a method
//
//	Refills(o *Outcome) (units uint8)
func Refills(l Limiter, o *Outcome) (units uint8) {
	ask(l, func(r refilling) { units |= r.Refills(o) })
	return units
}
