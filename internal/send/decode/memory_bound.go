package decode

import (
	"fmt"
	"sync/atomic"
)

// MostMemory bounds what all open Decoders of the process take together, in bytes. That is enough
// for 5,000 streams of gzip, 2,000 of br and, at the largest window, 30 of zstd.
const MostMemory = 256 << 20

// taken is what all open Decoders take now.
var taken atomic.Int64

// held is what one Decoder takes. A nil held counts nothing.
type held struct{ bytes int64 }

// take counts more bytes. With an error, nothing was counted.
func (h *held) take(n int64) error {
	if h == nil {
		return nil
	}
	if taken.Add(n) > MostMemory {
		taken.Add(-n)
		return fmt.Errorf("%w: all answers that are read now take %d MiB", ErrBounds, MostMemory>>20)
	}
	h.bytes += n
	return nil
}

func (h *held) free() {
	taken.Add(-h.bytes)
	h.bytes = 0
}
