package postgres_test

import (
	"context"
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
)

// One limit for all processes, in a table of PostgreSQL. A user who may not make tables gets Schema
// from an administrator. It has no Output, since it needs a server.
func ExampleOpen() {
	var store *postgres.Store
	store, err := postgres.Open(context.Background(), "postgres://localhost/app")
	if err != nil {
		fmt.Println(err, postgres.Schema)
		return
	}
	defer store.Close()
	m, err := share.Limiter(store, "github", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = paceline.NewGate(m)
}
