package archtest

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	tableRow   = regexp.MustCompile(`(?m)^//\t([a-z][\w*]*\.go(?:, [a-z][\w*]*\.go)*)(?:  +|$)`)
	systemPart = regexp.MustCompile(`_(linux|darwin|windows|unix|other)(_\w+)?\.go$`)
)

// mostUnlisted is how many files a package without a table may have. A reader sees so few at a glance.
const mostUnlisted = 4

// Tables checks the tables of files in the comments of packages: a table has each file of its folder but tests, the file
// with the table and the parts by system. It has no file that is not there, and may have tests. A package with more than
// mostUnlisted such files has its table in doc.go.
func Tables(fsys fs.FS) (found []Violation, err error) {
	rows, files, where := map[string][]string{}, map[string][]string{}, map[string]string{}
	tests := map[string][]string{}
	err = goFiles(fsys, true, func(name string) error {
		dir := path.Dir(name)
		if isTest(name) {
			tests[dir] = append(tests[dir], path.Base(name))
			return nil
		}
		files[dir] = append(files[dir], path.Base(name))
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		comment, _, ok := strings.Cut("\n"+string(src), "\npackage ")
		if !ok {
			return nil
		}
		for _, row := range tableRow.FindAllStringSubmatch(comment, -1) {
			rows[dir], where[dir] = append(rows[dir], strings.Split(row[1], ", ")...), name
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for dir, all := range files {
		if doc := path.Join(dir, "doc.go"); where[dir] != doc && ideas(all) > mostUnlisted {
			found = append(found, Violation{cmp.Or(where[dir], doc), 1, "expected the table of files in doc.go"})
		}
	}
	for dir, table := range rows {
		say := func(format string, args ...any) {
			found = append(found, Violation{where[dir], 1, fmt.Sprintf(format, args...)})
		}
		for _, row := range table {
			is := func(f string) bool { is, _ := path.Match(row, f); return is }
			if !slices.ContainsFunc(files[dir], is) && !slices.ContainsFunc(tests[dir], is) {
				say("the table of files has %s, which is not there", row)
			}
		}
		for _, f := range files[dir] {
			base := systemPart.ReplaceAllString(f, ".go")
			if f == "doc.go" || f == path.Base(where[dir]) {
				continue
			}
			if !slices.ContainsFunc(table, func(row string) bool {
				is, _ := path.Match(row, f)
				part, _ := path.Match(systemPart.ReplaceAllString(row, ".go"), base)
				return is || part
			}) {
				say("the table of files has no %s", f)
			}
		}
	}
	return sorted(found), nil
}

// ideas counts the files of a folder, a file and its parts by system as one. doc.go does not count.
func ideas(files []string) int {
	names := map[string]bool{}
	for _, f := range files {
		names[systemPart.ReplaceAllString(f, ".go")] = true
	}
	delete(names, "doc.go")
	return len(names)
}
