//go:build !unix

package cli

// CPUSeconds is 0: the time cannot be read on this system.
func CPUSeconds() float64 { return 0 }
