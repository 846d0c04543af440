package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
)

// Program is a binary. It is made anew for each command line.
type Program struct {
	// Root makes the root command, with the name and the texts of the program.
	Root func() *cobra.Command
	// Verbs are all commands below Root but version, help and completion.
	Verbs []Verb
	// Groups are the groups of flags in help texts.
	Groups Groups
	// Values returns the values of flags, for completions in a shell. The first key is the path of a
	// command without the name of the program, the second is the name of a flag.
	Values func() map[string]map[string][]string
	// Meant maps other programs' names for a flag to this program's names, if the two are too
	// different for a misspelling.
	Meant map[string]string
	// Reads is the verb to suggest for a file in the place of a verb.
	Reads string
	// Alike is a group of many commands with the same flags. Errors do not list them as commands
	// that have a flag.
	Alike string
	// AsJSON reports whether a command writes its log as JSON, so that an error of its start is a line of that.
	AsJSON func(*cobra.Command) bool
}

// Verb is a command below the root. A command line makes only its own verb, since each has flags,
// texts and tables of its own.
type Verb struct {
	Name string
	New  func() *cobra.Command
}

// only is the program with the one verb with which args begin.
func (p Program) only(args []string) (one Program, ok bool) {
	for _, v := range p.Verbs {
		if len(args) > 0 && args[0] == v.Name {
			p.Verbs = []Verb{v}
			return p, true
		}
	}
	return p, false
}

// Command returns the root command with all verbs, which prints to stdout. The command for
// completions needs stdout at its creation.
func (p Program) Command(stdout io.Writer) *cobra.Command {
	root := Family(p.Root(), newVersion())
	for _, v := range p.Verbs {
		root.AddCommand(v.New())
	}
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return p.unknown(c, args[0])
		}
		return nil
	}
	addVersionFlag(root)
	root.SetOut(stdout)
	root.SetFlagErrorFunc(p.flagError)
	p.addHelp(root)
	return root
}

// manual writes manual pages in place of running a command line. It is nil except in a program
// built with the tag manual.
var manual func(p Program, args []string) (code int, is bool)

// Execute runs a command line and returns its exit code.
func (p Program) Execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if manual != nil {
		if code, is := manual(p, args); is {
			return code
		}
	}
	var set []string       // flags that environment variables have set
	var cmd *cobra.Command // that ran
	run := func(root *cobra.Command) (began bool, err error) {
		root.SetArgs(args)
		root.SetIn(stdin)
		root.SetErr(stderr)
		root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
			var err error
			if set, err = fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			began = true
			return nil
		}
		cmd, err = root.ExecuteContextC(ctx)
		return began, err
	}
	var began bool
	var err error
	one, ok := p.only(args)
	if ok {
		began, err = run(one.Command(stdout))
	}
	if !ok || err != nil && !began { // a wrong command line: with all verbs, errors can suggest the right one
		root := p.Command(stdout)
		if completes(args) {
			p.addCompletions(root)
		}
		began, err = run(root)
	}
	switch {
	case err == nil:
		return ExitOK
	case err.Error() != "" && p.AsJSON != nil && p.AsJSON(cmd):
		log := slog.New(slog.NewJSONHandler(Harmless(stderr, "json"), nil))
		log.Error(cmd.CommandPath()+" does not go on", "err", text.SanitizeLines(err.Error()+fromVariable(err, set)))
	case err.Error() != "":
		screen.New(stderr, screen.Config{}).Ours(p.Root().Name() + ": " + text.SanitizeLines(err.Error()+fromVariable(err, set)))
	}
	if !began {
		return ExitUsage
	}
	return Code(err)
}

// fromEnvironment sets flags that are missing on the command line from environment variables, such
// as --key-env from PACELINE_KEY_ENV. It returns their names.
func fromEnvironment(flags *pflag.FlagSet) (set []string, err error) {
	for _, pair := range os.Environ() {
		name, v, _ := strings.Cut(pair, "=")
		rest, ok := strings.CutPrefix(name, "PACELINE_")
		if !ok || v == "" {
			continue
		}
		f := flags.Lookup(strings.ToLower(strings.ReplaceAll(rest, "_", "-")))
		if f == nil || f.Changed || IsHelp(f) || f.Name == "version" {
			continue
		}
		set = append(set, f.Name)
		if bad := flags.Set(f.Name, v); bad != nil {
			err = fmt.Errorf("%s: %w", name, bad)
			if invalid := new(pflag.InvalidValueError); errors.As(bad, &invalid) {
				err = fmt.Errorf("%s%w", name, badValue(invalid))
			}
			return set, err
		}
	}
	return set, nil
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "PACELINE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromVariable names the variable behind a flag that an error begins with.
func fromVariable(err error, set []string) string {
	for _, name := range set {
		if text, ok := strings.CutPrefix(err.Error(), "--"+name); ok && (text == "" || !isWord(text[0])) {
			return fmt.Sprintf(" (--%s is from %s in the environment)", name, variable(name))
		}
	}
	return ""
}

func isWord(c byte) bool { return c == '-' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// Family makes c a verb that only has verbs below it. An unknown verb below it is an error. Without
// Family, cobra would print the help.
func Family(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.Use += " COMMAND"
	c.DisableFlagsInUseLine = true
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0], "")
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(verbs...)
	return c
}

// Each calls f with c and all commands below it.
func Each(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, below := range c.Commands() {
		Each(below, f)
	}
}

// NoArguments refuses arguments of a command that takes none.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		path := c.CommandPath()
		return Usage(fmt.Errorf("%s takes no argument, and there is %q; see %s --help", path, args[0], path))
	}
	return nil
}
