package main

import "github.com/paceline-go/paceline/internal/app/cli"

// The names in this file are those of chart*.go, which is on its way to other packages. All else says cli.

const exitConfig = cli.ExitConfig

type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return cli.Usage(e.err) }

type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return cli.Exit(e.code, e.err) }

var folderOf = cli.FolderOf
