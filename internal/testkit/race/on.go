//go:build race

// Package race tells tests whether they run under the race detector, ten times as slow: what has no
// goroutines may then do with a smaller budget.
package race

// Enabled reports whether this program was built with -race.
const Enabled = true
