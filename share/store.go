package share

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
)

// Reading is the state of a store at one instant: its clock, and the blob that was put last.
type Reading = node.Reading

// Store keeps a blob for each limit. A database can be a Store if it meets two conditions. It can
// put a blob only if nobody else put since the read. It has one clock for all, finer than the round
// trip to it. share/sqlite, share/postgres and share/redis are Stores; share/sharetest tests one of
// your own: by Run, and by Restored where it goes back in time. Safe for concurrent use.
type Store interface {
	// Turn reads the blob of key and the store's clock, and calls f with both. It puts the result
	// of f, unless somebody put since the read. Then it reads and calls f again. If f returns an
	// error, Turn puts nothing and returns that error as it is. Turn does not call f after it has
	// returned.
	//
	// A nil error means that the blob was put. After any other error the outcome is unknown: the
	// blob may have been put. It must not be put once another blob has been.
	Turn(ctx context.Context, key string, f func(Reading) ([]byte, error)) error
}

// Retry calls turn until turn is done or fails, or until ctx is done. Between calls it pauses for
// random times that grow to 10 ms. It is for a Store whose turns can lose a race. turn reads, and
// puts if nobody else did.
func Retry(ctx context.Context, turn func() (done bool, err error)) error {
	for most := time.Millisecond; ; most = min(2*most, 10*time.Millisecond) {
		done, err := turn()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("share: others were quicker each time: %w", context.Cause(ctx))
		case <-time.After(rand.N(most)):
		}
	}
}
