package main

import "github.com/paceline-go/paceline/internal/app/cli"

// The names of chart*_test.go, as those of exit.go.
const (
	exitOK         = cli.ExitOK
	exitFailure    = cli.ExitFailure
	exitUsage      = cli.ExitUsage
	exitSomeFailed = cli.ExitSomeFailed
)

// samples is a constant of chart_runs.go, which sim used to share.
var _ = samples
