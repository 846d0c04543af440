package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Require is the environment variable that makes a missing program a failure, if it is "1".
const Require = "PACELINE_REQUIRE_SERVICES"

// Whole reports whether this is the whole check, as CI runs it. `./check` alone has less time.
func Whole() bool { return os.Getenv(Require) == "1" }

// WholeOnly skips the test in `./check` alone. CI and the long form run it. reason says what it takes.
func WholeOnly(t testing.TB, reason string) {
	t.Helper()
	if !Whole() && !Long() {
		t.Skipf("%s: %s=1", reason, Require)
	}
}

// NotShort skips the test where it has -short: in a `./check` that names no packages. One that names the package of the
// test runs it, and so does CI. reason says what there is to see without it.
func NotShort(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() && !Long() {
		t.Skipf("%s: run ./check with this package", reason)
	}
}

// Fewer returns all in CI and in the long form, and few in `./check` alone. CONTRIBUTING.md lists the
// tests that have fewer cases there, and why these are enough.
func Fewer[T any](few, all T) T {
	if Whole() || Long() {
		return all
	}
	return few
}

// Daemons are installed where only an administrator's PATH looks.
var beside = []string{"/usr/sbin", "/usr/local/sbin", "/sbin"}

// Program returns the path of the program called name, from PATH or from where daemons are installed. If there is none
// it skips the test, saying why, or fails it if Require is set.
func Program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range beside {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	if Whole() {
		t.Fatalf("%s is not installed, and %s=1 says that it must be", name, Require)
	}
	// The go command caches a skip like a pass and does not look for programs again.
	t.Skipf("%s is not installed: run .ci/run, or install it and run go clean -testcache", name)
	return ""
}
