//go:build !linux && !darwin

package uptime

func read() Reading { return fallback() }
