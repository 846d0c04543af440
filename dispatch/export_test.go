package dispatch

// Denied is how many denials are kept in mind.
func (d *Dispatcher) Denied() int { return len(d.blame.denied) }
