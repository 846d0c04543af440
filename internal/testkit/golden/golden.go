// Package golden compares the output of a test, line by line, with a golden file: the output of an
// earlier run, in testdata. With the flag -update of go test, the test writes the golden file anew.
// Read the new file before you commit it.
package golden

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files; read them before they are committed")

// Compare ends the test at the first line of text that is not as in testdata/name. A line that is
// indented is told with the latest one that is not, which says what it is of.
func Compare(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(text, "\n"), strings.Split(string(before), "\n")
	of := ""
	for i := range min(len(got), len(want)) {
		if !strings.HasPrefix(got[i], " ") {
			of = got[i]
		}
		if got[i] != want[i] {
			t.Fatalf("%s, line %d, of %s:\n%s, was\n%s", file, i+1, of, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d lines, %d before", file, len(got), len(want))
	}
}

// CompareFloats is Compare of what was worked out with floating point. Elsewhere than on amd64 it
// skips the test: there a product and a sum may be rounded once.
func CompareFloats(t testing.TB, name, text string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once")
	}
	Compare(t, name, text)
}

// Sum stands for a text that is too long to be kept: all that something has said, structs as %+v or
// JSON has them. Fields that are empty do not count, so that a new one of which nobody there makes
// use changes nothing.
func Sum(text string) string {
	text = empty.ReplaceAllString(text, "$1")
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(between.Replace(text))))
}

var (
	empty   = regexp.MustCompile(`(?:[A-Z]\w*:(?:\[\]|map\[\]|0s?|false|<nil>)?|"\w+":(?:0|""|null|\[\]|\{\}|false))([ ,}])`)
	between = strings.NewReplacer(" ", "", ",", "")
)
