package share

import "context"

// Lister is a Store that can tell which limits it has, and lose one: for people who look after it (paceline share). share/sqlite,
// share/postgres and share/redis are.
type Lister interface {
	Store
	// Names returns the names of all limits in the store, in order.
	Names(ctx context.Context) ([]string, error)
	// Forget removes a limit. That does no harm: whoever uses it sends nothing until what was granted before no longer counts, and whoever comes
	// first may configure it otherwise.
	Forget(ctx context.Context, key string) error
}
