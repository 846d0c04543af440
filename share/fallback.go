package share

import "fmt"

// Fallback is what a process does while it cannot reach the store.
type Fallback uint8

const (
	// Wait sends nothing beyond what was granted. That is exact.
	Wait Fallback = iota
	// Split sends 1/n of the limit as last seen, where n processes shared it then, from one window after all that was granted has come to its
	// end. Who has not reached the store before sends nothing. It is exact where the store is away for all, and not where only some are cut
	// off: the others share what there is among themselves, and then up to twice the limit is sent.
	Split
)

// String returns wait or split.
func (f Fallback) String() string { return [...]string{"wait", "split"}[f] }

// ParseFallback reads that.
func ParseFallback(s string) (Fallback, error) {
	for _, f := range []Fallback{Wait, Split} {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q, expected wait or split", s)
}
