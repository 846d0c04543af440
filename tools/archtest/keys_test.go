package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// keyFiles are the files that decide what keys are: which may be used, who is at fault for a denial, and in whose limits
// each counts. All of their lines count.
var keyFiles = []string{
	"internal/core/keyring/ring.go",     // bans, and whose turn it is
	"internal/core/keyring/blame.go",    // denials
	"internal/core/keyring/owners.go",   // whose limits; newcomers
	"internal/core/keyring/past.go",     // what a key takes along that was noted
	"internal/core/keyring/carry.go",    // what it takes along that was not
	"transport/key.go",                  // Config.Keys
	"transport/key_owners.go",           // moves of keys that come with requests
	"transport/choice.go",               // other Keys, also while requests wait
	"transport/denied.go",               // servers that deny all keys
	"transport/newcomer.go",             // their first requests
	"internal/core/dispatch/blame.go",   // denials in a Pool
	"internal/core/dispatch/shared.go",  // limits of several keys in a Pool
	"pool/shared_limits.go",             // the same, with a lock
	"internal/app/run/organizations.go", // whose limits a key of run counts in
}

// keyDoors are the folders whose other files use those. Only their lines that name a key's state count.
var (
	keyDoors = []string{"internal/core/dispatch", "transport", "pool", "internal/app/run"}
	namesKey = regexp.MustCompile(`\bkeyring\.(Ring|Key|New|Config|NewOwners|OwnersConfig|Owners|Account|Denials|Past|Count|Carry)\b|\.ring\.|\bt\.owners\b|\*owners\b|\bnewcomer|\bvisit\b`)
)

// mostKeyLines is the bound of both together. 1,430 are of the laws that all doors share. The others came with Keys that
// change while requests wait, and with servers that deny all of them. It only goes down.
const mostKeyLines = 1907

var noCode = regexp.MustCompile(`^\s*(//.*)?$`)

// countLines counts the lines of a file that are neither blank nor comment, those of them that match, and all lines.
func countLines(fsys fs.FS, name string, match *regexp.Regexp) (code, matching, all int, err error) {
	src, err := fs.ReadFile(fsys, name)
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSuffix(line, "\n")
		if all++; noCode.MatchString(line) {
			continue
		}
		if code++; match.MatchString(line) {
			matching++
		}
	}
	return code, matching, all, err
}

// keyLines counts the code lines about keys, and writes one line for each file.
func keyLines(fsys fs.FS, files, doors []string, log func(string)) (total int, err error) {
	whole := 0
	for _, name := range files {
		code, _, all, err := countLines(fsys, name, namesKey)
		if err != nil {
			return 0, err
		}
		total, whole = total+code, whole+all
		log(fmt.Sprintf("%5d %5d  %s", code, all, name))
	}
	log(fmt.Sprintf("%5d %5d  in these files; the second number has blank lines and comments", total, whole))
	for _, folder := range doors {
		names, err := fs.Glob(fsys, path.Join(folder, "*.go"))
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			_, n, _, err := countLines(fsys, name, namesKey)
			if err != nil {
				return 0, err
			}
			if n > 0 && !isTest(name) && !slices.Contains(files, name) {
				total += n
				log(fmt.Sprintf("%5d        of %s", n, name))
			}
		}
	}
	log(fmt.Sprintf("%5d        in all", total))
	return total, nil
}

// TestLinesOfKeys holds the lines about keys to a bound. With -v, it lists them by file.
func TestLinesOfKeys(t *testing.T) {
	total, err := keyLines(os.DirFS(root), keyFiles, keyDoors, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if total > mostKeyLines {
		t.Errorf("%d lines are about keys, expected %d at most", total, mostKeyLines)
	}
	odd := fstest.MapFS{
		"ring/ring.go":   {Data: []byte("// Package ring.\npackage ring\n\n\t// why\nvar a = 1 // one\n")},
		"door/ring.go":   {Data: []byte("package door\n")},
		"door/door.go":   {Data: []byte("package door\n// newcomer\nvar newcomer = t.ring.Add()\nvar other = 1\n")},
		"door/a_test.go": {Data: []byte("package door\nvar newcomer = 1\n")},
	}
	if n, err := keyLines(odd, []string{"ring/ring.go", "door/ring.go"}, []string{"door"}, func(string) {}); n != 4 || err != nil {
		t.Errorf("of the planted files %d lines, %v, expected 4", n, err)
	}
	if _, err := keyLines(odd, []string{"gone.go"}, nil, func(string) {}); err == nil {
		t.Error("a file that is gone is not missed")
	}
}
