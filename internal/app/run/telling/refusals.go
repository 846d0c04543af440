package telling

import (
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// mostRefused bounds the refused attempts whose times a result keeps.
const mostRefused = 16

// Refusals are the attempts of a request that a limit refused. The zero value is empty.
type Refusals struct {
	N  int
	at []time.Time // of the latest refusals
}

func (f *Refusals) Add(at time.Time) {
	if f.N++; len(f.at) == mostRefused {
		f.at = append(f.at[:0], f.at[1:]...)
	}
	f.at = append(f.at, at)
}

// Texts returns the instants as they are written, the earliest first.
func (f *Refusals) Texts() (all []string) {
	for _, at := range f.at {
		all = append(all, format.Stamp(at))
	}
	return all
}
