package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/share"
)

// rewinding is a store whose machine is set back to an earlier state now and then, as by a snapshot
// or a restored backup. It does not know of that itself.
type rewinding struct {
	began time.Time

	mu   sync.Mutex
	blob []byte
	past []copied // the latest puts
	puts int
	back int // how often it went back
}

type copied struct {
	at   time.Time
	blob []byte
}

const (
	pastPuts    = 100
	rewindAfter = 20 // puts, at least
	// rewindLeast is how old a copy is at least. No node can tell a later one from the present, nor
	// one of a time when nobody was there: decision 52.
	rewindLeast = 1500 * time.Millisecond
)

// Turn implements share.Store.
func (s *rewinding) Turn(ctx context.Context, _ string, f func(share.Reading) ([]byte, error)) error {
	return share.Retry(ctx, func() (done bool, err error) {
		s.mu.Lock()
		at, read := s.puts, s.blob
		s.mu.Unlock()
		clock := int64(time.Since(s.began))
		blob, err := f(share.Reading{Clock: clock, Wall: s.began.UnixNano() + clock, Incarnation: "one", Steady: true,
			Blob: read})
		if err != nil {
			return true, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.puts != at {
			return false, nil
		}
		s.puts++
		s.blob = blob
		if s.past = append(s.past, copied{time.Now(), blob}); len(s.past) > pastPuts {
			s.past = s.past[1:]
		}
		if s.puts%rewindAfter == 0 && rand.IntN(2) == 0 {
			s.rewind()
		}
		return true, nil
	})
}

// rewind goes back to one of the latest puts, unless nobody could tell. The lock is held.
func (s *rewinding) rewind() {
	to := s.past[rand.IntN(len(s.past))]
	if time.Since(to.at) < rewindLeast || !nodesim.Inhabited(to.blob) {
		return
	}
	s.blob = to.blob
	s.back++
}

func (s *rewinding) rewound() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}
