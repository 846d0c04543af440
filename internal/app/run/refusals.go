package run

import (
	"github.com/paceline-go/paceline/internal/app/run/format"
	"time"
)

// mostRefused bounds the refused attempts whose times a result keeps.
const mostRefused = 16

// refusals are the attempts of a request that a limit refused. The zero value is empty.
type refusals struct {
	n  int
	at []time.Time // of the latest refusals
}

func (f *refusals) add(at time.Time) {
	if f.n++; len(f.at) == mostRefused {
		f.at = append(f.at[:0], f.at[1:]...)
	}
	f.at = append(f.at, at)
}

// texts returns the instants as they are written, the earliest first.
func (f *refusals) texts() (all []string) {
	for _, at := range f.at {
		all = append(all, format.Stamp(at))
	}
	return all
}
