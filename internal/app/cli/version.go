package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// stamped is the version of a release, which tools/release writes in by -ldflags "-X
// …/internal/app/cli.stamped=v1.2.3".
var stamped string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(cmd.Root().Name()))
			return err
		},
	}
}

// addVersionFlag lets root answer --version with the line of the verb version. Cobra's own flag would take -v as its
// short form, and its text is a template, with which the linker keeps what nobody calls.
func addVersionFlag(root *cobra.Command) {
	asked := root.Flags().Bool("version", false, "print the version of this binary")
	args, run := root.Args, root.RunE
	root.Args = func(c *cobra.Command, given []string) error {
		if *asked {
			return nil
		}
		return args(c, given)
	}
	root.RunE = func(c *cobra.Command, given []string) error {
		if *asked {
			_, err := fmt.Fprintln(c.OutOrStdout(), versionLine(root.Name()))
			return err
		}
		return run(c, given)
	}
}

func versionLine(program string) string {
	system := runtime.GOOS + "/" + runtime.GOARCH
	return fmt.Sprintf("%s %s %s %s", program, Version(), runtime.Version(), system)
}

// Version is the version of this program.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info, stamped)
}

// versionOf is the version of a program. It is the stamp of a release. Without a stamp it is the
// version that go install was given, or that go build found in git: a tag, or the time and the
// commit. Without these it is the commit alone. info may be nil.
func versionOf(info *debug.BuildInfo, stamped string) string {
	if stamped != "" {
		return stamped
	}
	if info == nil {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		return "devel"
	}
	dirty := map[string]string{"true": "+dirty"}[settings["vcs.modified"]]
	return "devel-" + commit[:min(12, len(commit))] + dirty
}
