package main

import (
	_ "embed"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
)

//go:embed proxy_init.yaml
var initialProxy []byte

// proxyInit is the content of paceline proxy --init, and of --schema.
func proxyInit() cli.Initial {
	return cli.Initial{
		Verb: "paceline proxy", What: "a configuration with comments", Files: "configurations",
		Next: "paceline proxy check %s",
		Text: initialProxy, Schema: config.Schema,
	}
}
