package cli

import "github.com/spf13/cobra"

// completes reports whether a shell asks how to go on.
func completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletions lets shells complete the values of the flags of all commands. Cobra keeps the flags in a global map, and
// with them the command, for as long as the process lives. So this is only for the process that a shell asks.
func (p Program) addCompletions(root *cobra.Command) {
	var all map[string]map[string][]string
	if p.Values != nil {
		all = p.Values()
	}
	Each(root, func(c *cobra.Command) {
		values := all[pathOf(c)]
		if c.Flags().Lookup("output") != nil && values["output"] == nil {
			complete(c, "output", []string{"text", "json"})
		}
		for flag, of := range values {
			complete(c, flag, of)
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
	// Registering fails for a flag that does not exist, which is fine here.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
