package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/shareflags"
)

// backlogForms are the forms of an address of a store of backlogs.
const backlogForms = "sqlite:FILE or postgres://…"

// openBacklogs opens a store of backlogs. With existing, it makes none.
func openBacklogs(ctx context.Context, address string, existing bool) (backlog.Store, error) {
	address = strings.TrimSpace(address)
	shown := shareflags.Redacted(address)
	file, is := shareflags.File(address)
	if !is || file == "" {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("--backlog %s, expected %s", shown, backlogForms))
	}
	open := sqlite.Open
	if existing {
		open = sqlite.OpenExisting
	}
	s, err := open(file)
	switch {
	case errors.Is(err, backlog.ErrNoStore):
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w: paceline enqueue FILE --backlog %s makes one", shown, err, shown))
	case err != nil:
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", shown, err))
	}
	return s, nil
}
