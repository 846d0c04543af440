package main

import (
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// printed is what a command line that succeeds prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	return clitest.Printed(t, newProgram(), args...)
}

func TestHelp(t *testing.T) {
	race.Without(t)
	t.Parallel()
	if n := clitest.Help(t, newProgram); n < 50 {
		t.Errorf("%d examples are found, expected 50 or more", n)
	}
}
