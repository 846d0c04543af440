package stack

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// openFiles bounds the requests in flight after this machine ran out of file descriptors. The bound is
// the number that was in flight then, and one more every ten seconds, since other programs may have
// given some back. One too many costs nothing, as it is never sent. After ten minutes without
// another failure the bound is forgotten.
type openFiles struct {
	most   int // 0: no bound
	struck mono.Time
}

const (
	filesStep   = 10 * time.Second
	filesForget = 10 * time.Minute
)

// strike notes that no file descriptors were left with open requests in flight.
func (f *openFiles) strike(now mono.Time, open int) { f.most, f.struck = open, now }

// now returns the bound.
func (f *openFiles) now(now mono.Time) int {
	if f.most == 0 {
		return 0
	}
	return f.most + int(now.Sub(f.struck)/filesStep)
}

// ready returns when one more may go with open requests in flight.
func (f *openFiles) ready(open int) mono.Time {
	if f.most == 0 || open < f.most {
		return mono.Min
	}
	return f.struck.Add(time.Duration(open+1-f.most) * filesStep)
}

func (f *openFiles) forget(now mono.Time) {
	if f.most > 0 && now.Sub(f.struck) >= filesForget {
		*f = openFiles{}
	}
}
