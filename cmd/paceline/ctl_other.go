//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run"
)

func newCtl() *cobra.Command {
	return &cobra.Command{
		Use:                "ctl",
		Short:              "List runs and proxies that go on; pause them, or change their limits (not on Windows)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("paceline ctl is not for Windows; expected a new start with other flags")
		},
	}
}

func controlProxy(*proxy.Proxy, string, string, func(string), func(error)) (close func()) {
	return func() {}
}

func settingLines(*proxy.Proxy) []string { return nil }

func (f *runFlags) control(*run.Run, *runInput, func(string)) (close func()) { return func() {} }
