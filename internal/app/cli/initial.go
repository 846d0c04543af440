package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/text"
)

// Initial has the flags --init and --schema of a verb that reads a file. With one of them the verb
// only prints an example file, or the schema.
type Initial struct {
	Verb   string // paceline proxy
	What   string // the content of the file that --init writes, such as: a configuration with comments
	Files  string // the kind of files that the schema describes, such as: configurations
	Next   string // the next command to type, with %s for the file
	Text   []byte
	Schema func() []byte

	wantsText, wantsSchema bool
}

// Add adds the flags --init and --schema.
func (i *Initial) Add(f *pflag.FlagSet) {
	f.BoolVar(&i.wantsText, "init", false, "write "+i.What+" to begin with, to FILE or to standard output")
	f.BoolVar(&i.wantsSchema, "schema", false, "print the JSON schema of "+i.Files+", for editors")
}

// Wanted reports whether one of these flags is given.
func (i *Initial) Wanted() bool { return i.wantsText || i.wantsSchema }

// Check checks the arguments beside the flags.
func (i *Initial) Check(args []string) error {
	switch {
	case i.wantsText && i.wantsSchema:
		return errors.New("--init and --schema: expected one of them")
	case i.wantsSchema && len(args) > 0:
		return fmt.Errorf("--schema goes to standard output: %s --schema > %s", i.Verb, args[0])
	case len(args) > 1:
		return fmt.Errorf("--init writes one file, and there are %d", len(args))
	}
	return nil
}

// Run writes the file, or the schema.
func (i *Initial) Run(cmd *cobra.Command, args []string) error {
	content := i.Text
	if i.wantsSchema {
		content = i.Schema()
	}
	if len(args) == 0 || args[0] == "-" {
		_, err := cmd.OutOrStdout().Write(content)
		return err
	}
	file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return Usage(fmt.Errorf("%s is there already, and --init overwrites nothing", args[0]))
	}
	if err != nil {
		return Exit(ExitConfig, cmp.Or(FolderOf(args[0]), err))
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s is written; next: %s\n", text.Sanitize(args[0]),
		fmt.Sprintf(i.Next, text.Sanitize(Quoted(args[0]))))
	return nil
}
