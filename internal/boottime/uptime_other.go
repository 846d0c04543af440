//go:build !linux && !darwin

package boottime

func read() Reading { return fallback() }
