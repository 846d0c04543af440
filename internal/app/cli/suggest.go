package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/text"
)

// unknown is the error for a command that the program does not have.
func (p Program) unknown(root *cobra.Command, name string) error {
	meant := ""
	if _, err := os.Stat(name); err == nil && p.Reads != "" {
		meant = "; did you mean " + root.Name() + " " + p.Reads + " " + name + "?"
	}
	return unknownCommand(root, name, meant)
}

// unknownCommand is the error for a command that c does not have. meant is a suggestion in case c
// has no command of a similar name; it may be empty.
func unknownCommand(c *cobra.Command, name, meant string) error {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	meant = cmp.Or(text.DidYouMean(name, names), meant)
	if meant == "" {
		var others []string
		Each(c.Root(), func(o *cobra.Command) {
			if o.Name() == name && o.IsAvailableCommand() {
				others = append(others, o.CommandPath())
			}
		})
		if len(others) > 0 {
			meant = "; did you mean " + strings.Join(others, " or ") + "?"
		}
	}
	return fmt.Errorf("unknown command %q for %q%s; see %s --help", name, c.CommandPath(), meant, c.CommandPath())
}

// flagError adds a suggestion to the error for a flag.
func (p Program) flagError(c *cobra.Command, err error) error {
	see := "; see " + c.CommandPath() + " --help"
	// An unknown command comes first: its flags are not the mistake.
	if args := c.Flags().Args(); len(args) > 0 && c.HasSubCommands() {
		if bad := c.ValidateArgs(args); bad != nil {
			return bad
		}
	}
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, run := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
		if run == "" {
			return fmt.Errorf("unknown flag: --%s%s%s", name, p.otherFlag(c, name), see)
		}
		if long, _, _ := strings.Cut(run, "="); len(long) > 1 {
			for _, n := range []string{long, p.Meant[long]} {
				if c.Flags().Lookup(n) != nil {
					return fmt.Errorf("unknown flag: -%s; did you mean --%s, with two dashes?%s", long, n, see)
				}
			}
		}
		return fmt.Errorf("unknown flag: -%s in -%s%s%s", name, run, p.otherFlag(c, name), see)
	case errors.As(err, &empty):
		f := empty.GetFlag()
		return fmt.Errorf("--%s needs a value: %s%s", f.Name, inBrief(f.Usage, HelpWidth), see)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s%w%s", invalid.GetFlag().Name, badValue(invalid), see)
	}
	return fmt.Errorf("%w%s", err, see)
}

// otherFlag suggests a flag in place of one that c does not have: a flag of c, or of another verb.
func (p Program) otherFlag(c *cobra.Command, name string) string {
	own, said := []string{}, ""
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			own = append(own, f.Name)
		}
	})
	if found := text.Suggest(name, own); len(name) > 1 && len(found) > 0 {
		said = "; did you mean --" + strings.Join(found, " or --") + "?"
	}
	first, _, _ := strings.Cut(p.Meant[name], " ")
	if c.Flags().Lookup(first) != nil {
		said = "; did you mean --" + p.Meant[name] + "?"
	}
	dashes := "--"
	if len(name) == 1 {
		dashes = "-"
	}
	var others []string
	Each(c.Root(), func(o *cobra.Command) {
		f := o.Flags().Lookup(name)
		if len(name) == 1 {
			f = o.Flags().ShorthandLookup(name)
		}
		if f != nil && !f.Hidden && o.IsAvailableCommand() && (p.Alike == "" || o.GroupID != p.Alike) {
			others = append(others, strings.TrimPrefix(o.CommandPath(), c.Root().Name()+" "))
		}
	})
	if len(others) > 0 {
		said = cmp.Or(said, ";") + " " + dashes + name + " is a flag of " + text.Some(others, 4)
	}
	return said
}

// Count is the Type of a flag for a count, in the forms that rate.ParseCount reads.
const Count = "number"

// badValue describes the expected value of a flag. Its text follows the name of the flag.
func badValue(e *pflag.InvalidValueError) error {
	value, reason := e.GetValue(), e.Unwrap()
	expected := ""
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		expected = "a whole number"
	case Count:
		expected = "a whole number, such as 30000, 30k or 1.5M"
	case "uint", "uint64":
		expected = "a whole number of 0 or more"
	case "float", "float64":
		expected = "a number"
	case "bool":
		expected = "true or false"
	case "duration":
		expected = "a time such as 500ms, 30s or 1h30m"
	case "ints", "intSlice":
		expected = "whole numbers, separated by commas"
	}
	switch {
	case expected != "":
		return fmt.Errorf(" %q, expected %s", value, expected)
	case strings.HasPrefix(reason.Error(), fmt.Sprintf("%q", value)):
		return fmt.Errorf(" %w", reason)
	}
	return fmt.Errorf(" %q: %w", value, reason)
}
