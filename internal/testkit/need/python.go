package need

import (
	"os/exec"
	"strings"
	"testing"
)

// systemPython is where Debian's Python is, with the packages of Debian, whatever else is before it in PATH.
const systemPython = "/usr/bin/python3"

// Python returns the path of a Python 3 that can import the modules: that of PATH, or the system's.
// If there is none it skips the test or fails it, as Program does.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	for _, candidate := range []string{"python3", systemPython} {
		if path, err := exec.LookPath(candidate); err == nil &&
			exec.Command(path, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return path
		}
	}
	lacks := "no Python is installed that has " + strings.Join(modules, ", ")
	if Whole() {
		t.Fatalf("%s, and %s=1 says that it must be", lacks, Require)
	}
	t.Skipf("%s: run .ci/run, or install them and run go clean -testcache", lacks)
	return ""
}
