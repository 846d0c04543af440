package provider

import (
	_ "embed"
	"strings"
)

// examplesText has a request for each cost and each resource of a published limit, behind the name of
// its provider. An endpoint with limits that only answers state is not among them.
//
//go:embed examples.txt
var examplesText string

// examples returns the lines of examplesText by provider: see Provider.Examples.
func examples() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(examplesText) {
		name, example, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[name] = append(all[name], example)
	}
	return all
}
