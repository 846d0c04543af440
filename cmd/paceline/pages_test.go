package main

import (
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/testkit/pages"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

const top = "../.."

// TestPages: the commands of the pages work. TestPages of paceline-lab has those of that,
// TestFairPage docs/fair.md, and TestComingFromRuns coming-from.md.
func TestPages(t *testing.T) {
	race.Without(t) // other tests have each verb, and what its goroutines do
	t.Parallel()
	n := pages.RunAll(t, top, shellEnv(t), func(p *pages.Page, b *pages.Block) bool {
		return p.Name != "fair.md" && p.Name != comingFrom && !b.Lab()
	})
	if n < 10 {
		t.Errorf("%d blocks of sh are on the pages", n)
	}
}

// TestPagesCommandLines: command lines that are not run have flags that exist and values that can
// be read.
func TestPagesCommandLines(t *testing.T) {
	race.Without(t) // nothing runs beside it
	if n := pages.CommandLines(t, top, "paceline", func() *cobra.Command { return newProgram().Command(os.Stdout) }); n < 100 {
		t.Errorf("%d command lines are on the pages", n)
	}
}
