package nodesim

import (
	"errors"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Turns takes the turns of a node at a Store, in virtual time: with the way there and back, while
// the store is away from it, and with answers that are lost. All fields but Work, Lost and Unheard
// are to be set.
type Turns struct {
	Core  *node.Node
	Store *Store
	// Now is the run's time, and Clock the node's own.
	Now, Clock func() mono.Time
	// After calls f after d, and Later as well, but only while the node runs; Until is how long it is
	// until an instant of the node's clock.
	After, Later func(d time.Duration, f func())
	Until        func(p mono.Time) time.Duration
	// Way draws the latency of a message to or from the store, Work how long the store takes for a turn, if not nil.
	Way, Work func() time.Duration
	// Away says that the node cannot reach the store now.
	Away func() bool
	// Lost draws whether an answer is lost, and whether a put is delivered again up to three seconds
	// later. UpTo draws less than a span.
	Lost func() bool
	UpTo func(d time.Duration) time.Duration
	// Unheard says, if not nil, that the answer to a put is lost now, and nothing else.
	Unheard func() bool
	// Put is told of a turn that was put, in which so many answers were told, at the so many-th try,
	// and Ended of one that ended for the node.
	Put   func(told, tries int)
	Ended func(err error)

	busy    bool // a turn is under way
	planned bool
	began   mono.Time // of the turn under way, by the run's time
	tries   int
	due     mono.Time // of the next turn, if it is planned
}

// What a turn ends with, beside what the node says.
var (
	ErrLost  = errors.New("no answer from the store")
	ErrRaced = errors.New("others were quicker each time")
)

// As package share has it: a turn that others were quicker than is tried again after a random
// pause, which grows to pauseMost, until it has taken turnMost.
const (
	pauseMost = 10 * time.Millisecond
	turnMost  = 2 * time.Second
)

// Plan sees to the next turn. Call it whenever what the node wants may have changed.
func (t *Turns) Plan() {
	if t.busy {
		return
	}
	at := t.Core.Next()
	if at == limit.Never || t.planned && at >= t.due {
		return
	}
	t.planned, t.due = true, at
	t.Later(t.Until(at), func() {
		if !t.planned || t.due != at || t.busy {
			return
		}
		t.planned = false
		if t.Core.Next() > t.Clock() {
			t.Plan()
			return
		}
		t.busy = true
		t.Core.Begin(t.Clock())
		t.began, t.tries = t.Now(), 0
		t.read(time.Millisecond)
	})
}

func (t *Turns) end(err error) {
	t.Core.End(t.Clock(), err)
	t.busy = false
	t.Ended(err)
}

// read is the first half of a turn: there, read, and back.
func (t *Turns) read(pause time.Duration) {
	began := t.Clock()
	t.tries++
	if t.Away() {
		t.Later(200*time.Millisecond, func() { t.end(ErrLost) })
		return
	}
	t.After(t.Way(), func() {
		r, version := t.Store.reading(t.Now())
		if t.lost() {
			t.Later(500*time.Millisecond, func() { t.end(ErrLost) })
			return
		}
		t.Later(t.Way(), func() {
			blob, err := t.Core.Read(began, t.Clock(), r)
			if err != nil {
				t.end(err)
				return
			}
			t.put(blob, version, pause)
		})
	})
}

// put is the second half.
func (t *Turns) put(blob []byte, version int, pause time.Duration) {
	if t.Away() {
		t.Later(200*time.Millisecond, func() { t.end(ErrLost) })
		return
	}
	work, told := time.Duration(0), t.Core.Telling()
	if t.Work != nil {
		work = t.Work()
	}
	t.After(t.Way()+work, func() {
		ok := t.Store.put(blob, version)
		if ok {
			t.Put(told, t.tries)
		}
		if t.lost() { // delivered again, when somebody else may have put
			t.After(t.UpTo(3*time.Second), func() { t.Store.put(blob, version) })
		}
		if t.lost() || t.Unheard != nil && t.Unheard() {
			t.Later(500*time.Millisecond, func() { t.end(ErrLost) })
			return
		}
		t.Later(t.Way(), func() {
			switch {
			case ok:
				t.end(nil)
			case t.Now().Sub(t.began) > turnMost:
				t.end(ErrRaced)
			default:
				t.Later(t.UpTo(pause), func() { t.read(min(2*pause, pauseMost)) })
			}
		})
	})
}

func (t *Turns) lost() bool { return t.Lost != nil && t.Lost() }
