package main

import (
	_ "embed"

	"github.com/paceline-go/paceline/internal/app/proxy/config"
)

//go:embed proxy_init.yaml
var initialProxy []byte

// proxyInit has what paceline proxy --init writes, and --schema.
func proxyInit() initial {
	return initial{
		verb: "paceline proxy", what: "a configuration with comments", files: "configurations", next: "paceline proxy check %s",
		text: initialProxy, schema: config.Schema,
	}
}
