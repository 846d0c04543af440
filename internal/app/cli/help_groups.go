package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups are the groups of flags in the help of each command, by its path. A name with a star
// stands for every command below it.
//
// Most has the flags of --help, one in a line. The text after a flag is its text in --help, if its
// own text is too long. Rest has the flags that only --help-all shows. A flag is written name or
// name=VALUE, where VALUE stands for its value. Unknown names are ignored, so that kinds of servers
// can share a table.
type Groups map[string][]struct{ Title, Most, Rest string }

// flagGroup is one group of a help.
type flagGroup struct {
	title string
	flags []helpFlag
}

// helpFlag is a flag in a help.
type helpFlag struct {
	*pflag.Flag
	value string // the word for the value of the flag
	brief string // its text in --help, if that is not the beginning of its full text
	most  bool   // whether --help shows it
}

// Ungrouped is the title over flags that are in no group.
const Ungrouped = "Other flags"

// of returns the flags of a command, in the groups of its help.
func (g Groups) of(c *cobra.Command) []flagGroup {
	var groups []flagGroup
	grouped := map[string]bool{}
	add := func(group *flagGroup, written, brief string, most bool) {
		name, value, _ := strings.Cut(written, "=")
		f := c.Flags().Lookup(name)
		if f == nil || f.Hidden || grouped[name] {
			return
		}
		grouped[name] = true
		group.flags = append(group.flags, helpFlag{f, cmp.Or(value, valueName(f)), brief, most})
	}
	table, tabled := g[c.CommandPath()]
	if !tabled && c.HasParent() {
		table, tabled = g[c.Parent().CommandPath()+" *"]
	}
	for _, row := range table {
		group := flagGroup{title: row.Title}
		for line := range strings.Lines(row.Most) {
			if written, brief, _ := strings.Cut(strings.TrimSpace(line), " "); written != "" {
				add(&group, written, strings.TrimSpace(brief), true)
			}
		}
		for written := range strings.FieldsSeq(row.Rest) {
			add(&group, written, "", false)
		}
		groups = append(groups, group)
	}
	rest := flagGroup{title: Ungrouped}
	if !tabled {
		rest.title = "Flags"
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !IsHelp(f) {
			add(&rest, f.Name, "", !tabled)
		}
	})
	return append(groups, rest)
}

// valueName is the word for the value of a flag without one in the table.
func valueName(f *pflag.Flag) string {
	if name, _ := pflag.UnquoteUsage(f); name == "" {
		return ""
	}
	switch of := f.Value.Type(); of {
	case "bool", "boolfunc", "count":
		return ""
	case "string", "stringArray":
		return "TEXT"
	case "strings", "stringSlice", "ints", "intSlice":
		return "A,B"
	case Count, "int", "int64", "uint", "uint64", "float", "float64":
		return "N"
	case "duration":
		return "TIME"
	default:
		return strings.ToUpper(of)
	}
}
