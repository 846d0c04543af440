package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/app/cli"
)

// backlogForms are the forms of an address of a store of backlogs.
const backlogForms = "sqlite:FILE or postgres://…"

// openBacklogs opens a store of backlogs. With existing, it makes none. The error begins with its address, without a
// password.
func openBacklogs(ctx context.Context, address string, existing bool) (backlog.Store, error) {
	address = strings.TrimSpace(address)
	shown := redactedStore(address)
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	s, err := openedStore(ctx, address, existing)
	switch {
	case errors.Is(err, errNoAddress):
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("--backlog %s, expected %s", shown, backlogForms))
	case errors.Is(err, backlog.ErrNoStore):
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w: paceline enqueue FILE --backlog %s makes one", shown, err, shown))
	case err != nil:
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", shown, silent(ctx, err, reach)))
	}
	return s, nil
}

// reach is how long the opening of a store may take.
const reach = 15 * time.Second

var errNoAddress = errors.New("no address of a store")

func openedStore(ctx context.Context, address string, existing bool) (backlog.Store, error) {
	file, isFile := storeFile(address)
	scheme, rest, _ := strings.Cut(address, ":")
	scheme = strings.ToLower(scheme)
	isPostgres := (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(rest, "//")
	switch {
	case isFile && file != "" && existing:
		return stored(sqlite.OpenExisting(file))
	case isFile && file != "":
		return stored(sqlite.Open(file))
	case isPostgres && existing:
		return stored(postgres.OpenExisting(ctx, address))
	case isPostgres:
		return stored(postgres.Open(ctx, address))
	}
	return nil, errNoAddress
}

// stored makes a nil store of a failed opening a nil interface.
func stored[S backlog.Store](s S, err error) (backlog.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
