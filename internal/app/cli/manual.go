//go:build manual

package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// init makes a program that writes man pages for a release: paceline manual DIR VERSION. The
// ordinary program leaves it out, because its code would add to the size.
func init() {
	manual = func(p Program, args []string) (code int, is bool) {
		if len(args) != 3 || args[0] != "manual" {
			return 0, false
		}
		root := p.Command(os.Stdout)
		if err := writeManual(root, args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, root.Name(), "manual:", err)
			return ExitUsage, true
		}
		return ExitOK, true
	}
}

func writeManual(root *cobra.Command, dir, version string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH, the date of the pages: %w", err)
	}
	date := time.Unix(seconds, 0).UTC()
	root.DisableAutoGenTag = true
	indentExamples(root)
	head := &doc.GenManHeader{Section: "1", Date: &date, Source: root.Name() + " " + version, Manual: "Paceline"}
	return doc.GenManTree(root, head, dir)
}

// indentExamples turns the indented parts of commands' texts into examples of Markdown, the source
// of the pages. Otherwise their lines would be filled and their words hyphenated.
func indentExamples(c *cobra.Command) {
	lines := strings.Split(c.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "    " + line
		}
	}
	c.Long = strings.Join(lines, "\n")
	for _, below := range c.Commands() {
		indentExamples(below)
	}
}
