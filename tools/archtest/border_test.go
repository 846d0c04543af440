package archtest

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"strings"
)

// Crossings checks the imports of the Go files below fsys, the folder of the module called module,
// against borders. Tests and nested modules count. Errors and violations are as those of Sources.
func Crossings(fsys fs.FS, module string, borders []Border) ([]Violation, error) {
	c := checker{module: module, fset: token.NewFileSet()}
	var errs []error
	err := goFiles(fsys, true, func(name string) error {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(c.fset, name, src, parser.ImportsOnly)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // Sources reports it
			}
			folder, isOurs := strings.CutPrefix(imported, module+"/")
			for _, b := range borders {
				if isOurs && within(folder, b.Folder) && !b.allows(name) {
					c.add(spec.Pos(), "%s imports %s across the border of %s: %s", packageOf(name), folder, b.Folder, b.Why)
				}
			}
		}
		return nil
	})
	return sorted(c.found), errors.Join(append(errs, err)...)
}

// allows reports whether the file of a name may import what is behind the border.
func (b *Border) allows(name string) bool {
	if b.Tests && isTest(name) || within(name, b.Folder) {
		return true
	}
	for open := range strings.FieldsSeq(b.Open) {
		if within(name, open) {
			return true
		}
	}
	return false
}

// within reports whether a slash-separated name is that of a folder, or below it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
