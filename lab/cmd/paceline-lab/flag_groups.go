package main

import "github.com/paceline-go/paceline/internal/app/cli"

// groups is how help groups the flags of commands that have many.
var groups = cli.Groups{
	"paceline-lab bench exchange": {
		{"What is run", `
			row=NAME
			seeds
			seconds          length of a run in virtual time`, ""},
		{"The exchange", `
			keys
			limit=RATE       what it lets through per key
			latency=LAW      latency before and after its check, such as uniform:0-50ms
			ban-after
			ttl
			retries          how often a request that failed is tried again`, ""},
		{"What is shown", `
			output=FORMAT`, ""},
	},
	"paceline-lab check-log": {
		{"How the log is read", `
			column=NAME      column of CSV with the instant: its name, or its number if no line has names
			field=NAME       field of JSON lines with the instant
			by=A,B           columns or fields: each combination has windows of its own
			amount=NAME      column or field with how much an event counts, such as weight
			unit`, ``},
		{"Which events", `
			where=NAME=VALUE only events of which this is so, or NAME!=VALUE; repeatable
			since
			sort`, ``},
		{"What is found", `
			limit=RATE       the most in any window, such as 20/s
			totals           write how much each combination of --by counts; --limit may be missing
			output=FORMAT`, ``},
	},
	"paceline-lab sim": {
		{"A scenario", `
			strategy=NAME    have all follow this strategy instead of the file's
			seed
			chart=FILE
			output=FORMAT
			init             write a scenario with comments to begin with, to SCENARIO.yaml
			schema`, `sample`},
	},
	"paceline-lab sim throttle": {
		{"What is run", `
			strategies=NAMES strategies to run, separated by commas
			only=NAME
			seeds=N          how many runs of each, or their seeds such as 1001-1020 (default 20)
			aims             measure one strategy against what is aimed at
			check`, ""},
		{"What is shown", `
			output=FORMAT
			chart=FILE`, ""},
	},
}
