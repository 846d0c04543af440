package cli

import "github.com/spf13/cobra"

// addCompletions lets shells complete the values of the flags of all commands. Flags that have
// completions already keep them.
func (p Program) addCompletions(root *cobra.Command) {
	Each(root, func(c *cobra.Command) {
		values := p.Values[pathOf(c)]
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
	// Registering fails for a flag that does not exist or already has completions; both are fine
	// here.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
