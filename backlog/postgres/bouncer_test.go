package postgres_test

import (
	"testing"

	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Through a PgBouncer in transaction mode, with nothing else configured, a store is the same.
func TestBouncer(t *testing.T) {
	need.WholeOnly(t, "the suite takes 5 s again")
	backlogtest.Run(t, opener(need.PgBouncer(t, need.PostgreSQL(t)).URL))
}
