package share

import "fmt"

// Fallback is the behaviour of a process while it cannot reach the store.
type Fallback uint8

const (
	// Wait sends nothing beyond the grants so far. It is exact.
	Wait Fallback = iota
	// Split sends 1/n of the limit as last seen, where n is the number of processes that shared it
	// then. It begins one window after the end of all grants, if the store is still away. A process
	// sends nothing if it has not shared the limit for 7 s, or was stopped when the store went
	// away. After the store is back, nothing is sent for 9 s and a window.
	//
	// Split is exact under two conditions. The store is away for all processes that share, whether
	// they wait or split. And each time the store is back, it stays long enough for all to notice
	// (4 s).
	//
	// Split is not exact if only some processes are cut off. The others then share the whole limit
	// among themselves, so up to twice the limit is sent. The Logger and the driver's Events report
	// its begin and its end.
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
