package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// mostLines is the longest that a function may be, with its signature and its last brace. A screen is better.
	mostLines = 100
	// mostSiblings is how many files of a folder may begin with the same word: more are a package of their own.
	mostSiblings = 8
	// mostFiles is how many files without tests a package may have. Those of large have had more, and get no further one.
	mostFiles = 25
	// mostColumns is the width of a line, a tab being one. Of a thousand lines wideLines may have more:
	// a text for people that reads worse in two halves.
	mostColumns, wideLines = 120, 5
	// mostShared is how many names of files may be in several folders. A reader is to guess the file from its name.
	mostShared = 40
)

// large are the packages of more than mostFiles files, and how many these have: docs/decisions/0102-packages-of-many-files.md.
var large = map[string]int{"cmd/paceline": 93, "fairshare": 33, "internal/app/proxy": 48, "limit": 40, "provider": 29, "transport": 36}

// SharedNames returns the names that files of several folders have, each with its files. Not counted are tests, doc.go,
// main.go, and the file that is named like its folder.
func SharedNames(fsys fs.FS) (map[string][]string, error) {
	all := map[string][]string{}
	err := goFiles(fsys, true, func(name string) error {
		base := path.Base(name)
		if !isTest(name) && base != "doc.go" && base != "main.go" && base != path.Base(path.Dir(name))+".go" {
			all[base] = append(all[base], name)
		}
		return nil
	})
	maps.DeleteFunc(all, func(_ string, names []string) bool { return len(names) < 2 })
	return all, err
}

// Columns counts the lines of the Go files below fsys that are no tests, and names those that are
// too wide.
func Columns(fsys fs.FS) (lines int, wide []Violation, err error) {
	err = goFiles(fsys, true, func(name string) error {
		if isTest(name) {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > mostColumns {
				wide = append(wide, Violation{name, n, fmt.Sprintf("%d columns, expected %d at most", columns, mostColumns)})
			}
		}
		lines += n
		return err
	})
	return lines, sorted(wide), err
}

// Sizes checks the functions and the folders of the Go files below fsys, nested modules too. Errors
// and violations are as those of Sources.
func Sizes(fsys fs.FS) ([]Violation, error) {
	var found []Violation
	var errs []error
	siblings := map[string][]string{} // by folder and first word
	files := map[string][]string{}    // by folder
	err := goFiles(fsys, true, func(name string) error {
		if isTest(name) {
			return nil
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".go"), "_")
		word = path.Join(path.Dir(name), word)
		siblings[word] = append(siblings[word], name)
		files[path.Dir(name)] = append(files[path.Dir(name)], name)
		long, err := longFunctions(fsys, name)
		found = append(found, long...)
		errs = append(errs, err)
		return nil
	})
	for _, word := range slices.Sorted(maps.Keys(siblings)) {
		if names := siblings[word]; len(names) > mostSiblings {
			found = append(found,
				Violation{names[0], 1,
					fmt.Sprintf("%d files of %s begin with %s, more than %d: make them a package in a folder of their own",
						len(names), packageOf(word), path.Base(word), mostSiblings)})
		}
	}
	for folder, names := range files {
		if most := max(mostFiles, large[folder]); len(names) > most {
			found = append(found, Violation{slices.Min(names), 1,
				fmt.Sprintf("%s has %d files, more than %d: join those that tell one story, or make a package of what needs no other",
					packageOf(names[0]), len(names), most)})
		}
	}
	return sorted(found), errors.Join(append(errs, err)...)
}

func longFunctions(fsys fs.FS, name string) (found []Violation, err error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.FuncDecl:
			what = n.Name.Name
		case *ast.FuncLit:
			what = "a function without a name"
		default:
			return true
		}
		from, to := fset.Position(n.Pos()).Line, fset.Position(n.End()).Line
		if lines := to - from + 1; lines > mostLines {
			found = append(found, Violation{name, from, fmt.Sprintf("%s has %d lines, more than %d: give its steps names",
				what, lines, mostLines)})
		}
		return false // what is inside is shorter
	})
	return found, nil
}
