package main

import (
	_ "embed"

	"github.com/paceline-go/paceline/lab/sim/scenario"
)

//go:embed sim_init.yaml
var initialScenario []byte

func simInit() initial {
	return initial{
		verb: "paceline sim", what: "a scenario with comments", files: "scenarios", next: "paceline sim %s --chart chart.html",
		text: initialScenario, schema: scenario.Schema,
	}
}
