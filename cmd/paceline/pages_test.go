package main

import (
	"os"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/pages"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

const top = "../.."

// TestPages: the commands of the pages work. TestPages of paceline-lab has those of that,
// TestFairPage docs/fair.md, and TestComingFromRuns coming-from.md.
func TestPages(t *testing.T) {
	race.Without(t) // other tests have each verb, and what its goroutines do
	t.Parallel()
	runPages(t, 8, func(page string) bool { return slices.Contains(firstPages, page) })
}

// TestOtherPages is TestPages of the pages that are read after these.
func TestOtherPages(t *testing.T) {
	race.Without(t) // as TestPages
	need.NotShort(t, "TestPages has a page of each door")
	t.Parallel()
	runPages(t, 10, func(page string) bool {
		return !slices.Contains(firstPages, page) && page != "fair.md" && page != comingFrom
	})
}

// firstPages have the doors that most readers take.
var firstPages = []string{"README.md", "run.md", "proxy.md", "permit.md"}

// runPages runs the blocks of sh of the pages that are chosen, of which there are that many at least.
func runPages(t *testing.T, least int, chosen func(page string) bool) {
	t.Helper()
	n := pages.RunAll(t, top, shellEnv(t), func(p *pages.Page, b *pages.Block) bool { return chosen(p.Name) && !b.Lab() })
	if n < least {
		t.Errorf("%d blocks of sh are on the pages, expected %d or more", n, least)
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
