package fairshare_test

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
