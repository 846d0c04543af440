package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/internal/text/suggest"
)

// meant maps names that other programs use for a flag to our names, where these are too different to be found as a misspelling.
var meant = map[string]string{
	"rate": "limit", "rps": "limit", "qps": "limit", "rate-limit": "limit", "throttle": "limit", "r": "limit", "l": "limit",
	"workers": "concurrency", "parallel": "concurrency", "threads": "concurrency", "jobs": "concurrency", "c": "concurrency", "j": "concurrency",
	"retries": "attempts", "retry": "attempts", "max-retries": "attempts", "tries": "attempts",
	"max-time": "timeout", "t": "timeout",
	"data": "body", "payload": "body", "d": "body", "request": "method", "verb": "method", "X": "method",
	"file": "out", "save": "out", "output-file": "out", "out-file": "out", "results": "out",
	"key": "key-env", "keys": "key-env", "api-key": "key-env", "token": "key-env",
	"cost": "budget", "deadline": "until", "silent": "quiet", "s": "quiet", "debug": "verbose", "plan": "dry-run", "n": "dry-run",
	"port": "addr", "listen": "addr", "address": "addr", "bind": "addr", "host": "addr", "p": "addr", "rpm": "limit",
}

// unknownCommand is the error for a command that c does not have.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	meant := suggest.Or(name, names)
	if _, err := os.Stat(name); meant == "" && err == nil && !c.HasParent() {
		meant = "; did you mean paceline run " + name + "?"
	}
	if meant == "" {
		var others []string
		each(c.Root(), func(o *cobra.Command) {
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

// noSuchFile adds to the error for a missing file the name of a file that may be meant.
func noSuchFile(name string, err error) error {
	if info, bad := os.Stat(name); bad == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, expected a file", name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(name)
	entries, _ := os.ReadDir(folder)
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	found := suggest.Names(filepath.Base(name), names)
	for i := range found {
		if found[i] = filepath.Join(folder, found[i]); found[i] == name {
			return err
		}
	}
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(found, " or "))
}

// noArguments refuses arguments of a command that takes none.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, and there is %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	return nil
}

// flagError adds to the error for a flag what would be right.
func flagError(c *cobra.Command, err error) error {
	see := "; see " + c.CommandPath() + " --help"
	if args := c.Flags().Args(); len(args) > 0 && c.HasSubCommands() { // an unknown command comes first: its flags are not the mistake
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
			return fmt.Errorf("unknown flag: --%s%s%s", name, otherFlag(c, name), see)
		}
		if long, _, _ := strings.Cut(run, "="); len(long) > 1 {
			for _, n := range []string{long, meant[long]} {
				if c.Flags().Lookup(n) != nil {
					return fmt.Errorf("unknown flag: -%s; did you mean --%s, with two dashes?%s", long, n, see)
				}
			}
		}
		return fmt.Errorf("unknown flag: -%s in -%s%s%s", name, run, otherFlag(c, name), see)
	case errors.As(err, &empty):
		f := empty.GetFlag()
		return fmt.Errorf("--%s needs a value: %s%s", f.Name, inBrief(f.Usage, helpWidth), see)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s%w%s", invalid.GetFlag().Name, badValue(invalid), see)
	}
	return fmt.Errorf("%w%s", err, see)
}

// otherFlag names a flag that may be meant by one that c does not have: a flag of c, or one of another verb.
func otherFlag(c *cobra.Command, name string) string {
	own, said := []string{}, ""
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			own = append(own, f.Name)
		}
	})
	if found := suggest.Names(name, own); len(name) > 1 && len(found) > 0 {
		said = "; did you mean --" + strings.Join(found, " or --") + "?"
	}
	if f := c.Flags().Lookup(meant[name]); f != nil {
		said = "; did you mean --" + f.Name + "?"
	}
	dashes := "--"
	if len(name) == 1 {
		dashes = "-"
	}
	var others []string
	each(c.Root(), func(o *cobra.Command) {
		f := o.Flags().Lookup(name)
		if len(name) == 1 {
			f = o.Flags().ShorthandLookup(name)
		}
		if f != nil && !f.Hidden && o.IsAvailableCommand() && o.GroupID != groupProviders {
			others = append(others, strings.TrimPrefix(o.CommandPath(), c.Root().Name()+" "))
		}
	})
	if len(others) > 0 {
		said = cmp.Or(said, ";") + " " + dashes + name + " is a flag of " + sanitize.Some(others, 3)
	}
	return said
}

// badValue says what is expected as the value of a flag. Its text is to follow the name of the flag.
func badValue(e *pflag.InvalidValueError) error {
	value, reason := e.GetValue(), e.Unwrap()
	expected := ""
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		expected = "a whole number"
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
