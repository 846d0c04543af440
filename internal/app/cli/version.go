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

// addVersionFlag lets root answer --version with the line of the verb version. The flag is defined
// here because cobra's own would take -v as its short form.
func addVersionFlag(root *cobra.Command) {
	root.Version = versionLine(root.Name())
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this binary")
}

func versionLine(program string) string {
	info, _ := debug.ReadBuildInfo()
	system := runtime.GOOS + "/" + runtime.GOARCH
	return fmt.Sprintf("%s %s %s %s", program, versionOf(info, stamped), runtime.Version(), system)
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
