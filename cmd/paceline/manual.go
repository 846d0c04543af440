//go:build manual

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// init turns the program into one that writes man pages for a release: paceline manual DIR VERSION. The ordinary program leaves this out,
// because the code that writes them would add to its size.
func init() {
	if len(os.Args) != 4 || os.Args[1] != "manual" {
		return
	}
	if err := writeManual(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "paceline manual:", err)
		os.Exit(exitUsage)
	}
	os.Exit(exitOK)
}

func writeManual(dir, version string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH, the date of the pages: %w", err)
	}
	date := time.Unix(seconds, 0).UTC()
	root := newRoot()
	root.DisableAutoGenTag = true
	indentExamples(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &date, Source: "paceline " + version, Manual: "Paceline"}, dir)
}

// indentExamples has what is indented in the texts of a command, and of those below it, be examples of Markdown, which the pages are made from:
// otherwise its lines are filled and its words hyphenated.
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
