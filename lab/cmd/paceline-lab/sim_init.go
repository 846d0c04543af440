package main

import (
	_ "embed"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/sim/scenario"
)

//go:embed sim_init.yaml
var initialScenario []byte

func simInit() cli.Initial {
	return cli.Initial{
		Verb: "paceline-lab sim", What: "a scenario with comments", Files: "scenarios",
		Next: "paceline-lab sim %s --chart chart.html",
		Text: initialScenario, Schema: scenario.Schema,
	}
}
