package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/proxy"
)

// serveForward makes a running proxy a forward proxy, too, if it has a listener for that.
func serveForward(c proxy.Config, s *proxy.Server, l net.Listener) (greeting string, err error) {
	if l == nil {
		return "", nil
	}
	tunnels := forward.NoTunnels
	if checked, err := c.Checked(); err == nil && checked.Forward.Tunnels == proxy.TunnelsPublic {
		tunnels = forward.PublicTunnels
	}
	if _, err := s.Forward(proxy.Forwarding{Listener: l, Bundle: bundleOf(&c), Getenv: os.Getenv, Tunnels: tunnels}); err != nil {
		l.Close()
		return "", cli.Exit(cli.ExitConfig, err)
	}
	return fmt.Sprintf("programs reach it by their own addresses with HTTPS_PROXY=http://%s and SSL_CERT_FILE=%s; "+
		"all variables: --env sh", l.Addr(), c.Forward.Bundle), nil
}

// printEnvironment writes the variables by which programs reach the forward proxy.
func printEnvironment(w io.Writer, c proxy.Config, form string) error {
	if c.Forward.Listen == "" {
		return cli.Usage(fmt.Errorf("--env without --forward, expected the address of a forward proxy, too"))
	}
	at := forward.At{URL: (&url.URL{Scheme: "http", Host: c.Forward.Listen}).String()}
	if c.Clients.HasKeys() {
		at.URL = (&url.URL{Scheme: "http", Host: c.Forward.Listen, User: url.UserPassword("any", "KEY")}).String()
	}
	var err error
	if at.Bundle, err = filepath.Abs(c.Forward.Bundle); err != nil {
		return err
	}
	all := map[string]string{}
	for _, v := range forward.Variables {
		all[v.Name] = v.Of(at)
		switch form {
		case "sh":
			fmt.Fprintf(w, "export %s=%s\n", v.Name, cli.Quoted(v.Of(at)))
		case "docker": // a file for docker run --env-file
			fmt.Fprintf(w, "%s=%s\n", v.Name, v.Of(at))
		}
	}
	switch form {
	case "json":
		b, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	case "sh", "docker":
		return nil
	}
	return cli.Usage(fmt.Errorf("--env %q, expected sh, docker or json", form))
}
