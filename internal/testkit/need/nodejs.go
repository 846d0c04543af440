package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// oldestNode is the major version that the SDKs for Node ask for.
const oldestNode = 20

// Node returns the path of a Node that is new enough for the SDKs in dir, which dir/install has
// installed: that of PATH, or npm's package node. If there is none, or no SDKs, it skips the test
// or fails it, as Program does.
func Node(t testing.TB, dir string) string {
	t.Helper()
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole // whoever runs it may do so elsewhere
	}
	path := ""
	for _, candidate := range []string{"node", filepath.Join(dir, "node_modules", ".bin", "node")} {
		if p, err := exec.LookPath(candidate); err == nil && nodeVersion(p) >= oldestNode {
			path = p
			break
		}
	}
	lacks := ""
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".installed")); err != nil {
		lacks = "no SDKs are in " + filepath.Join(dir, "node_modules")
	}
	if path == "" {
		lacks = "no Node of version " + strconv.Itoa(oldestNode) + " or later is installed"
	}
	switch {
	case lacks == "":
	case Whole():
		t.Fatalf("%s, and %s=1 says that they must be there: run contrib/sdk/node/install", lacks, Require)
	default:
		t.Skipf("%s: run contrib/sdk/node/install and go clean -testcache", lacks)
	}
	return path
}

// nodeVersion is the major version that a Node says it has, 0 if it does not say.
func nodeVersion(path string) int {
	said, err := exec.Command(path, "--version").Output()
	if err != nil {
		return 0
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(said)), "v"), ".")
	n, _ := strconv.Atoi(major)
	return n
}
