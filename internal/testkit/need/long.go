package need

import (
	"os"
	"testing"
)

// longVariable is the environment variable that asks for the long form of every test, if it is "1".
const longVariable = "PACELINE_LONG"

// Long reports whether the tests run in their long form. CONTRIBUTING.md lists the tests that have
// one, and what the long form adds.
func Long() bool { return os.Getenv(longVariable) == "1" }

// LongOnly skips the test, unless the tests run in their long form. reason says why the short form
// leaves the test out.
func LongOnly(t testing.TB, reason string) {
	t.Helper()
	if !Long() {
		t.Skipf("%s: %s=1", reason, longVariable)
	}
}
