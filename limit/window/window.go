package window

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// maxLen is the largest size: of events in a Log, instants in a Runs and slots in a Slots.
const maxLen = 1 << 26

// never is later than every instant.
const never = mono.Time(math.MaxInt64)

func checkWindow(constructor string, window time.Duration) error {
	if window <= 0 {
		return fmt.Errorf("window: %s: window %v is not positive", constructor, window)
	}
	return nil
}

func ceilDiv(a, b uint64) uint64 { return (a-1)/b + 1 }
