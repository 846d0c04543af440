package share

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
)

// Reading is what a store says at one instant: its clock, and what was put last.
type Reading = node.Reading

// Store keeps a blob for each limit. Anything will do that can put if nobody else did since it was read, and has a clock, one for all, that is finer
// than the way to it: share/sqlite, share/postgres and share/redis do, and share/sharetest has the tests for one of your own. Safe for concurrent use.
type Store interface {
	// Turn reads the blob of key and the store's clock, calls f with that, and puts what f returns unless somebody put since the read; then
	// it reads and calls f again. It puts nothing if f returns an error, and returns that error as it is. f is not called after Turn has
	// returned. nil says that the blob was put. Any other error says that nobody knows: it may have been put, but it must not be put once
	// another has been.
	Turn(ctx context.Context, key string, f func(Reading) ([]byte, error)) error
}

// Retry calls turn until it reports that it is done, or an error, or ctx is done, with random pauses that grow to 10 ms: for a Store whose
// turns lose races. turn reads, and puts if nobody else did.
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
