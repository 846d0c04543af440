package share

import "context"

// Lister is a Store that can list its limits, and remove one. It is for administration (paceline
// share). The stores of share/sqlite, share/postgres and share/redis are Listers.
type Lister interface {
	Store
	// Names returns the names of all limits in the store, in order.
	Names(ctx context.Context) ([]string, error)
	// Forget removes a limit. That is safe: its processes send nothing until no earlier grant
	// counts. The first process to come may configure the limit otherwise.
	Forget(ctx context.Context, key string) error
}
