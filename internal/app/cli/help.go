package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// A help fits one screen. --help has the most frequent flags; --help-all has all flags and the
// whole text.
const (
	HelpLines = 45
	HelpWidth = 100
	// helpColumn is the rightmost first column of flags' texts.
	helpColumn = 32
	// mostListed is the largest number of commands that --help explains.
	mostListed = 12
)

// addHelp gives every command --help and --help-all.
func (p Program) addHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		io.WriteString(c.OutOrStdout(), p.Groups.help(c, c.Flags().Changed("help-all")))
	})
	root.SetHelpCommand(p.newHelp())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			Family(c)
		}
	}
	Each(root, func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		c.Flags().Lookup("help").Usage = "help with the flags used most"
		c.Flags().BoolFunc("help-all", "help with all flags", func(string) error {
			return c.Flags().Set("help", "true")
		})
	})
}

func (p Program) newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND …]",
		Short: "Help about any command, as COMMAND --help prints it",
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, name := range args {
				at := slices.IndexFunc(of.Commands(), func(b *cobra.Command) bool {
					return b.Name() == name || b.HasAlias(name)
				})
				switch {
				case at < 0 && !of.HasParent():
					return Usage(p.unknown(of, name))
				case at < 0:
					return Usage(unknownCommand(of, name, ""))
				}
				of = of.Commands()[at]
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// IsHelp reports whether a flag asks for help.
func IsHelp(f *pflag.Flag) bool { return f.Name == "help" || f.Name == "help-all" }

// help is the help of a command. Without all, paragraphs at the end of its text are left out until
// it fits a screen.
func (g Groups) help(c *cobra.Command, all bool) string {
	about := paragraphs(cmp.Or(c.Long, c.Short))
	rest, hidden := g.body(c, all)
	shown := len(about)
	page := func() string {
		p := strings.Join(about[:shown], "\n\n") + "\n\n" + rest
		if footer := helpFooter(c, all, hidden, shown < len(about)); footer != "" {
			p += "\n" + footer + "\n"
		}
		return p
	}
	for !all && shown > 1 && strings.Count(page(), "\n") > HelpLines {
		shown--
	}
	return page()
}

// helpFooter says where to find the rest. hidden is the number of flags that are not shown; cut
// means that some of the text is not shown.
func helpFooter(c *cobra.Command, all bool, hidden int, cut bool) string {
	var more []string
	if hidden > 0 {
		more = append(more, fmt.Sprintf("%d more flags", hidden))
	}
	if cut {
		more = append(more, "the rest of this text")
	}
	switch {
	case len(more) > 0:
		return c.CommandPath() + " --help-all has " + strings.Join(more, " and ") + "."
	case c.HasAvailableSubCommands() && !all:
		return c.CommandPath() + " COMMAND --help says more of a command."
	}
	return ""
}

// body follows the text: usage, examples, commands and flags. hidden is how many flags it leaves
// out.
func (g Groups) body(c *cobra.Command, all bool) (body string, hidden int) {
	var b strings.Builder
	usage := c.UseLine()
	if c.HasAvailableSubCommands() && !strings.Contains(usage, "COMMAND") {
		usage += "\n        " + c.CommandPath() + " COMMAND"
	}
	b.WriteString("Usage:  " + usage + "\n")
	if c.Example != "" {
		b.WriteString("\nExamples:\n" + c.Example + "\n")
	}
	b.WriteString(helpCommands(c, all))
	groups := g.of(c)
	width := 0
	for _, g := range groups {
		for _, f := range g.flags {
			if n := utf8.RuneCountInString(f.left()); n <= helpColumn && (f.most || all) {
				width = max(width, n)
			}
		}
	}
	b.WriteString("\n")
	for i, g := range groups {
		if !all {
			listed := len(g.flags)
			g.flags = slices.DeleteFunc(g.flags, func(f helpFlag) bool { return !f.most })
			hidden += listed - len(g.flags)
		}
		if len(g.flags) == 0 {
			continue
		}
		if all && i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(g.title + ":\n")
		for _, f := range g.flags {
			f.write(&b, width, all)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n", hidden
}

// helpCommands lists the commands below c, in their groups.
func helpCommands(c *cobra.Command, all bool) string {
	var b strings.Builder
	groups := []*cobra.Group{{Title: "Commands:"}}
	if len(c.Groups()) > 0 {
		groups = append(slices.Clone(c.Groups()), &cobra.Group{Title: "Others:"})
	}
	for _, g := range groups {
		var names []string
		var texts strings.Builder
		for _, below := range c.Commands() {
			if below.GroupID != g.ID || !below.IsAvailableCommand() && below.Name() != "help" {
				continue
			}
			names = append(names, below.Name())
			left := "  " + below.Name() + strings.Repeat(" ", max(0, c.NamePadding()-len(below.Name())))
			texts.WriteString(hanging(left+"  ", below.Short))
		}
		switch {
		case len(names) == 0:
		case len(names) > mostListed && !all:
			fmt.Fprintf(&b, "\n%s\n%s", g.Title, hanging("  ", strings.Join(names, ", ")))
		default:
			fmt.Fprintf(&b, "\n%s\n%s", g.Title, texts.String())
		}
	}
	return b.String()
}

// left is the text to the left of a flag's explanation: its names and its value.
func (f *helpFlag) left() string {
	left := "      --"
	if f.Shorthand != "" {
		left = "  -" + f.Shorthand + ", --"
	}
	left += f.Name
	switch {
	case f.value == "":
	case f.NoOptDefVal != "":
		left += "[=" + f.value + "]"
	default:
		left += " " + f.value
	}
	return left
}

// write writes a flag with its text, which begins at the column width + 2. With all, the text is
// complete; otherwise it is one line.
func (f *helpFlag) write(b *strings.Builder, width int, all bool) {
	left := f.left()
	if n := utf8.RuneCountInString(left); n > width {
		b.WriteString(left + "\n")
		left = strings.Repeat(" ", width)
	} else {
		left += strings.Repeat(" ", width-n)
	}
	left += "  "
	text := f.Usage
	if !all {
		text = cmp.Or(f.brief, inBrief(f.Usage, HelpWidth-width-2))
	}
	if d := f.standard(); d != "" && !strings.Contains(text, "(default") {
		if d = " (default " + d + ")"; all || utf8.RuneCountInString(left+text+d) <= HelpWidth {
			text += d
		}
	}
	b.WriteString(hanging(left, text))
}

// standard is the default of a flag, if it is interesting.
func (f *helpFlag) standard() string {
	switch d := strings.Trim(f.DefValue, "[]"); d {
	case "0", "0s", "false", "-1":
		return ""
	default:
		return d
	}
}

// inBrief is the longest beginning of a text that fits the width and makes sense alone.
func inBrief(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	for _, ends := range []string{";:(", ","} {
		n, cut := 0, 0
		for i, r := range text {
			if strings.ContainsRune(ends, r) && n <= width {
				cut = i
			}
			n++
		}
		if cut > 0 {
			return strings.TrimRight(text[:cut], " ")
		}
	}
	return text
}

// paragraphs splits a text at its empty lines, and refills paragraphs of running text to the width.
// A paragraph that ends in a colon stays together with the next one.
func paragraphs(text string) []string {
	var out []string
	announced := false
	for p := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if p = strings.Trim(p, "\n"); p == "" {
			continue
		}
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			p = strings.TrimSuffix(hanging("", p), "\n")
		} else {
			p = tabular(p)
		}
		if announced {
			out[len(out)-1] += "\n\n" + p
		} else {
			out = append(out, p)
		}
		announced = strings.HasSuffix(p, ":")
	}
	return out
}

// tabular breaks the lines of a table that are too long. The rest of a line goes below its last
// column.
func tabular(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		column := strings.LastIndex(strings.TrimRight(line, " "), "  ") + 2
		if utf8.RuneCountInString(line) > HelpWidth && column < HelpWidth*2/3 {
			line = strings.TrimSuffix(hanging(line[:column], line[column:]), "\n")
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// hanging writes left, and beside it the text, broken to fill the width.
func hanging(left, text string) string {
	indent := utf8.RuneCountInString(left)
	words := strings.Join(strings.Fields(text), " ")
	return strings.TrimRight(left+screen.Wrap(words, HelpWidth-indent, strings.Repeat(" ", indent)), " ") + "\n"
}
