package node

import (
	"errors"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Quiet is a time in which nothing is granted, until no earlier grant counts.
type Quiet struct {
	For time.Duration // from the turn on; 0: there is no such time
	// Why is ErrNew, ErrForgotten, ErrWentBack, ErrAlone, or the damage; nil if another node has found the
	// reason.
	Why error
}

// Why nothing is granted for a while.
var (
	ErrNew = errors.New("share: the store does not have this limit: nobody came before, or it has lost it. If nothing was sent " +
		"lately, `paceline share new` or share.Begin states that")
	ErrForgotten = errors.New("share: the store was restarted since, and may have lost what was granted")
	ErrWentBack  = errors.New("share: the store went back to an earlier state, such as that of a backup")
	ErrAlone     = errors.New("share: the store was away, and processes sent their parts of the limit")
)

// quiet prevents grants before an instant.
func (t *pending) quiet(why error, until mono.Time) {
	if until > t.book.Quiet {
		t.book.Quiet, t.why = until, why
	}
}

// silence returns the Quiet of a turn that was put. Why stays the same as long as that lasts.
func (n *Node) silence(t *pending) (q Quiet) {
	if t.now >= t.book.Quiet {
		return q
	}
	q = Quiet{t.book.Quiet.Sub(t.now), t.why}
	if q.Why == nil {
		q.Why = n.view.Quiet.Why
	}
	return q
}
