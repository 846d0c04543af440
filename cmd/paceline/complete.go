package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// flagValues has, by command, the values of flags that take only certain values, for a shell to complete.
var flagValues = map[string]map[string][]string{
	"run": {
		"strangers": slices.Sorted(maps.Keys(sharedKinds)), "format": {"auto", "jsonl", "openai-batch", "anthropic-batch"}, "rule": {"bucket", "rolling"},
		"count": {"documented", "reserved", "sum", "used", "produced", "input"}, "unanswered": {"resend", "hold"}, "sync": {"group", "always"},
		"progress": {"auto", "off", "5s"}, "color": {"auto", "always", "never"}, "log-level": {"debug", "info", "warn", "error"},
		"limit": {"20/s", "100/min", "4500/h", "auto", "none"},
	},
	"proxy": {
		"log": {"text", "json", "off"}, "log-level": {"debug", "info", "warn", "error"}, "limit": {"20/s", "100/min", "4500/h", "none"},
	},
	"bench llm":       {"arrivals": {"start", "uniform", "burst", "mixed"}},
	"sim":             {"strategy": strategyNames(), "kind": slices.Sorted(maps.Keys(sharedKinds))},
	"sim throttle":    {"strategies": strategyNames()},
	"serve openai":    {"count": countings},
	"serve anthropic": {"count": countings},
}

// addCompletions lets shells complete the values of the flags of all commands. Flags that have completions already keep them.
func addCompletions(root *cobra.Command) {
	each(root, func(c *cobra.Command) {
		if f := c.Flags().Lookup("output"); f != nil {
			forms := []string{"text", "json"}
			if slices.Contains([]string{"bench exchange", "bench llm", "serve exchange", "serve openai", "serve anthropic"}, pathOf(c)) {
				forms = append(forms, "csv")
			}
			complete(c, "output", forms)
		}
		for flag, values := range flagValues[pathOf(c)] {
			complete(c, flag, values)
		}
	})
}

// pathOf returns the path of a command without the name of the program.
func pathOf(c *cobra.Command) string {
	if !c.HasParent() || !c.Parent().HasParent() {
		return c.Name()
	}
	return pathOf(c.Parent()) + " " + c.Name()
}

func complete(c *cobra.Command, flag string, values []string) {
	// Registering fails for a flag that does not exist or already has completions; both are fine here.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
