package limit

// Entries returns how many entries the history of r has.
func Entries(r *Rolling) int { return r.settled.n }
