package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

var update = flag.Bool("update", false, "write anew what tests write in docs and README.md")

// asProgram is the environment variable that makes the test binary the program itself.
const asProgram = "PACELINE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// command runs a command line.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// printings are those of printedOnce, by the words of the command.
var printings sync.Map

// printedOnce is what a command line that succeeds prints, if that is the same each time: several tests read it, and it
// runs once.
func printedOnce(t *testing.T, args ...string) string {
	t.Helper()
	run, _ := printings.LoadOrStore(strings.Join(args, "\x00"), sync.OnceValue(func() string { return printed(t, args...) }))
	return run.(func() string)()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// printed is what a command line that succeeds prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	return clitest.Printed(t, newProgram(), args...)
}

func TestHelp(t *testing.T) {
	race.Without(t)
	t.Parallel()
	if n := clitest.Help(t, newProgram); n < 15 {
		t.Errorf("%d examples are found, expected 15 or more", n)
	}
}
