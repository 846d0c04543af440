//go:build !race

// Package race tells tests whether they run under the race detector, which makes them about ten
// times as slow. A test without goroutines has no races to find, so under the detector it may do
// less.
package race

// Enabled reports whether this program was built with -race.
const Enabled = false
