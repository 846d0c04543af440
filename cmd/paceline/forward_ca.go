package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
)

// defaultBundle is the --forward-bundle of paceline proxy.
const defaultBundle = "paceline-ca.pem"

func newProxyCA() *cobra.Command {
	return &cobra.Command{
		Use:   "ca [FILE]",
		Short: "Print the certificate of a forward proxy, for a program that reads no variable",
		Long: "Print the certificate that a standing forward proxy (paceline proxy --forward) has made at its start, without those " +
			"of the system. FILE is\n" +
			"its --forward-bundle. A program that trusts it trusts the proxy for the named hosts and their subdomains, and for no other. " +
			"The next start makes\n" +
			"another certificate. There is no key in it.",
		Example: "  paceline proxy ca > /usr/local/share/ca-certificates/paceline.crt\n  paceline proxy ca /run/paceline/bundle.pem",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(append(args, defaultBundle)[:1], "")
			bundle, err := os.ReadFile(name)
			if err != nil {
				return cli.Exit(cli.ExitConfig, fmt.Errorf("%w; expected the --forward-bundle of a proxy that runs", err))
			}
			a, ok := forward.AnchorIn(bundle)
			if !ok {
				return cli.Exit(cli.ExitConfig, fmt.Errorf("%s has no certificate of paceline proxy --forward, expected its --forward-bundle", name))
			}
			if _, err := cmd.OutOrStdout().Write(a.PEM); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cli.Harmless(cmd.ErrOrStderr(), "text"), "for %s, until %s or the proxy's next start\n",
				strings.Join(a.Hosts, ", "), a.Until.Local().Format(time.DateTime))
			return err
		},
	}
}
