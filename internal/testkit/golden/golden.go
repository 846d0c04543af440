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
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(between.Replace(withoutEmpty(text)))))
}

var (
	between   = strings.NewReplacer(" ", "", ",", "")
	emptyGo   = []string{"", "[]", "map[]", "0", "0s", "false", "<nil>"}
	emptyJSON = []string{"0", `""`, "null", "[]", "{}", "false"}
)

// withoutEmpty leaves out fields that are empty. As a regular expression it took a fifth of the time of some tests.
func withoutEmpty(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	kept, at := 0, 0
	for {
		n := strings.IndexByte(text[at:], ':')
		if n < 0 {
			b.WriteString(text[kept:])
			return b.String()
		}
		at += n + 1
		begin, values := field(text[:at-1])
		for _, v := range values {
			if end := at + len(v); strings.HasPrefix(text[at:], v) && end < len(text) && strings.IndexByte(" ,}", text[end]) >= 0 {
				b.WriteString(text[kept:begin])
				kept, at = end, end
				break
			}
		}
	}
}

// field returns where the name of a field begins with which a text ends, and what is empty there. Without a field, nothing is.
func field(text string) (begin int, empty []string) {
	end := len(text)
	quoted := strings.HasSuffix(text, `"`)
	if quoted {
		end--
	}
	begin = end
	for begin > 0 && isWord(text[begin-1]) {
		begin--
	}
	if quoted {
		if begin == end || begin == 0 || text[begin-1] != '"' {
			return 0, nil
		}
		return begin - 1, emptyJSON
	}
	for ; begin < end; begin++ {
		if c := text[begin]; 'A' <= c && c <= 'Z' {
			return begin, emptyGo
		}
	}
	return 0, nil
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
