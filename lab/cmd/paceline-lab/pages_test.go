package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/testkit/pages"
)

const top = "../../.."

// TestPages: commands of the pages that run paceline-lab work. TestFairPage has docs/fair.md.
func TestPages(t *testing.T) {
	t.Parallel()
	chosen := func(p *pages.Page, b *pages.Block) bool { return p.Name != "fair.md" && b.Lab() }
	if n := pages.RunAll(t, top, pages.Env(t, "paceline-lab", asProgram, nil), chosen); n < 3 {
		t.Errorf("%d blocks of the pages run paceline-lab", n)
	}
}

// TestPagesCommandLines: command lines that are not run have flags that exist and values that can be read.
func TestPagesCommandLines(t *testing.T) {
	root := func() *cobra.Command { return newProgram().Command(io.Discard) }
	if n := pages.CommandLines(t, top, "paceline-lab", root); n < 40 {
		t.Errorf("%d command lines are on the pages", n)
	}
}

// built is the program paceline, which is built once for all tests.
var built struct {
	sync.Once
	dir string
	out []byte
	err error
}

// paceline returns the path of the program paceline. The laboratory does not import it.
func paceline(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "paceline-built-*"); built.err == nil {
			build := exec.Command("go", "build", "-o", built.dir, "github.com/paceline-go/paceline/cmd/paceline")
			built.out, built.err = build.CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("%v\n%s", built.err, built.out)
	}
	return filepath.Join(built.dir, "paceline")
}
