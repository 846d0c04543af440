//go:build !unix

package main

import (
	"errors"
	"net/http"

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

// helm changes nothing here, as there is no paceline ctl.
type helm struct{}

const knobsPath = "/knobs"

func helmOf(*proxy.Proxy, string, string, string, func(string)) *helm { return nil }

func (*helm) serves(string) http.Handler { return http.NotFoundHandler() }

func (*helm) reaches(*http.Request) bool { return false }

func (*helm) open(func(error)) (close func()) { return func() {} }

func settingLines(*proxy.Proxy) []string { return nil }

func (f *runFlags) control(*run.Run, *runInput, func(string)) (h *helm, close func()) {
	return nil, func() {}
}
