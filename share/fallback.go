package share

import "fmt"

// Fallback is what a process does while it cannot reach the store.
type Fallback uint8

const (
	// Wait sends nothing beyond what was granted. That is exact.
	Wait Fallback = iota
	// Split sends 1/n of the limit as last seen, where n processes shared it then, from one window after all that was granted has come to its
	// end, if the store is still away then. Who has not shared it for 7 s, or was stopped when the store went away, sends nothing. When it is
	// back, nothing goes for 9 s and a window. It is exact where the store is away for all who share, whether they wait or split, and, each time it
	// is back, for long enough that all notice (4 s); and not where only some are cut off: the others share what there is among themselves, and
	// then up to twice the limit is sent. The Logger and the driver's Events say when it begins and ends.
	Split
)

// String returns wait or split.
func (f Fallback) String() string { return [...]string{"wait", "split"}[f] }

// ParseFallback reads what String returns. The error names both words.
func ParseFallback(s string) (Fallback, error) {
	for _, f := range []Fallback{Wait, Split} {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q, expected wait or split", s)
}
