package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// initial has the flags with which a verb that reads a file prints one to begin with, or its schema, and does nothing else.
type initial struct {
	verb   string // paceline sim
	what   string // what --init writes, such as: a scenario with comments
	files  string // what the schema describes, such as: scenarios
	next   string // what to type next, with %s for the file
	text   []byte
	schema func() []byte

	wantsText, wantsSchema bool
}

func (i *initial) flags(f *pflag.FlagSet) {
	f.BoolVar(&i.wantsText, "init", false, "write "+i.what+" to begin with, to FILE or to standard output")
	f.BoolVar(&i.wantsSchema, "schema", false, "print the JSON schema of "+i.files+", for editors")
}

// instead tells whether one of these flags is given.
func (i *initial) instead() bool { return i.wantsText || i.wantsSchema }

func (i *initial) check(args []string) error {
	switch {
	case i.wantsText && i.wantsSchema:
		return errors.New("--init and --schema: expected one of them")
	case i.wantsSchema && len(args) > 0:
		return fmt.Errorf("--schema goes to standard output: %s --schema > %s", i.verb, args[0])
	case len(args) > 1:
		return fmt.Errorf("--init writes one file, and there are %d", len(args))
	}
	return nil
}

func (i *initial) run(cmd *cobra.Command, args []string) error {
	text := i.text
	if i.wantsSchema {
		text = i.schema()
	}
	if len(args) == 0 || args[0] == "-" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("%s is there already, and --init overwrites nothing", args[0])}
	}
	if err != nil {
		return exitError{exitConfig, cmp.Or(folderOf(args[0]), err)}
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s is written; next: %s\n", sanitize.Text(args[0]), fmt.Sprintf(i.next, sanitize.Text(quoted(args[0]))))
	return nil
}
