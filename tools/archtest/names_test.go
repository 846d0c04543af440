package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
)

// retired are words that no exported name has any more, with the word of docs/glossary.md that took their place.
var retired = map[string]string{
	"Junction": "group", "Guard": "stack", "Health": "breaker", "Ledger": "node, journal or recorder",
	"Told": "learned or stated", "Heard": "learned", "Hears": "learns", "Shown": "sanitized", "Handed": "input",
	"Strange": "testkit", "Blind": "contention", "Overdue": "timer", "Pasted": "explain", "Sight": "link",
	"Near": "suggest", "Throttle": "fairshare",
}

var wordOfName = regexp.MustCompile(`[A-Z][a-z0-9]*`)

// Words finds exported names with a retired word in the Go files below fsys that are no tests.
// Errors and violations are as those of Sources.
func Words(fsys fs.FS) ([]Violation, error) {
	var found []Violation
	fset := token.NewFileSet()
	err := goFiles(fsys, false, func(name string) error {
		if isTest(name) {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, id := range exportedNames(file) {
			for _, word := range wordOfName.FindAllString(id.Name, -1) {
				if instead := retired[word]; instead != "" {
					found = append(found, Violation{name, fset.Position(id.Pos()).Line,
						fmt.Sprintf("%s has a word that is retired: say %s (docs/glossary.md)", id.Name, instead)})
				}
			}
		}
		return nil
	})
	return sorted(found), err
}

// exportedNames are the exported names that a file declares at its top level, methods too.
func exportedNames(file *ast.File) (names []*ast.Ident) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	exported := names[:0]
	for _, id := range names {
		if id.IsExported() && !strings.HasPrefix(id.Name, "Test") {
			exported = append(exported, id)
		}
	}
	return exported
}
