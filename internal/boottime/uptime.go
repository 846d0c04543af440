package boottime

import "time"

// Reading is an instant of a machine. Two of them can be compared if their Boot is the same and not empty.
type Reading struct {
	Boot string
	// Up is the time since some instant of that boot; Awake leaves out what was slept through. Where a
	// system does not say, Boot is empty, and Awake is Up.
	Up, Awake time.Duration
}

// Slept is how much of the time since was slept through.
func (r Reading) Slept(since Reading) time.Duration {
	return (r.Up - r.Awake) - (since.Up - since.Awake)
}

// Read reads the clock.
func Read() Reading { return read() }

var began = time.Now()

// fallback is what Go says, which may leave out what was slept through.
func fallback() Reading { return Reading{Up: time.Since(began), Awake: time.Since(began)} }
