package postgres_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/postgres"
)

// An order and its mail are there together, or neither is. A user who may not make tables gets Schema from
// an administrator. It has no Output, since it needs a server.
func ExampleEnqueueTx() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, "postgres://localhost/app")
	if err != nil {
		fmt.Print(err, postgres.Schema)
		return
	}
	defer store.Close()
	if _, err := backlog.Open(ctx, store, "mails", backlog.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	db, err := pgx.Connect(ctx, "postgres://localhost/app")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close(ctx)
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders VALUES ('order-1')`); err != nil {
			return err
		}
		_, err := postgres.EnqueueTx(ctx, tx, "mails", backlog.Job{ID: "order-1", Data: []byte("to ann")})
		return err
	})
	fmt.Println(err)
}
