//go:build unix

package entries

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed testdata/count.go
var countSource string

//go:embed testdata/drive.go
var driveSource string

// The packages that only the overlay has.
const countPath, drivePath = "tools/entries/count", "tools/entries/drive"

// function is a function of the module.
type function struct {
	pkg, file string // below the module's root
	name      string // of a method, with its type in front: Table.Get
}

// build is the module with counters.
type build struct {
	module, root string
	dir          string // for what is made
	overlay      map[string]string
	functions    []function // by the number of their counter
}

// newBuild writes the overlay for the module of the working directory.
func newBuild() (*build, error) {
	module, err := goCommand("", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "entries-")
	if err != nil {
		return nil, err
	}
	b := &build{dir: dir, overlay: map[string]string{}}
	b.module, b.root, _ = strings.Cut(strings.TrimSpace(string(module)), "\n")
	if err := b.addAll(); err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

func (b *build) remove() { os.RemoveAll(b.dir) }

// addAll puts into the overlay what the doors are made of.
func (b *build) addAll() error {
	listed, err := goCommand(b.root, "list", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,Module", ".", "./transport",
		"./cmd/paceline")
	if err != nil {
		return err
	}
	for list := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			ImportPath, Dir   string
			GoFiles, CgoFiles []string
			Module            *struct{ Path string }
		}
		if err := list.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Path != b.module {
			continue
		}
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
			if err := b.add(filepath.Join(p.Dir, file)); err != nil {
				return err
			}
		}
	}
	i := slices.IndexFunc(b.functions, func(f function) bool { return f.name == "MustRolling" })
	if i < 0 {
		return errors.New("no package has the function MustRolling, with which the drivers make limits")
	}
	drive := strings.NewReplacer(`"MODULE"`, quoted(b.module), `"TRANSPORT"`, quoted(b.module, "transport"),
		`"COUNT"`, quoted(b.module, countPath), `"LIMIT"`, quoted(b.module, b.functions[i].pkg)).Replace(driveSource)
	return errors.Join(
		b.replace(filepath.Join(countPath, "count.go"), []byte(countSource)),
		b.replace(filepath.Join(countPath, "most.go"),
			fmt.Appendf(nil, "package count\n\nconst Most = %d\n", len(b.functions))),
		b.replace(filepath.Join(drivePath, "drive.go"), []byte(drive)),
		b.writeOverlay())
}

func quoted(elements ...string) string { return `"` + path.Join(elements...) + `"` }

// add instruments a file.
func (b *build) add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, names, err := instrument(name, text, quoted(b.module, countPath), len(b.functions))
	if err != nil || len(names) == 0 {
		return err
	}
	below, err := filepath.Rel(b.root, name)
	if err != nil {
		return err
	}
	for _, f := range names {
		b.functions = append(b.functions, function{filepath.ToSlash(filepath.Dir(below)), filepath.ToSlash(below), f})
	}
	return b.replace(below, text)
}

// replace has the build take text for a file of the module.
func (b *build) replace(below string, text []byte) error {
	with := filepath.Join(b.dir, fmt.Sprintf("%d.go", len(b.overlay)))
	b.overlay[filepath.Join(b.root, below)] = with
	return os.WriteFile(with, text, 0o600)
}

func (b *build) writeOverlay() error {
	text, err := json.Marshal(map[string]any{"Replace": b.overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "overlay.json"), text, 0o600)
}

// program builds the command in a folder of the module, once, and returns its file.
func (b *build) program(folder string) (string, error) {
	file := filepath.Join(b.dir, filepath.Base(folder))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	_, err := goCommand(b.root, "build", "-overlay", filepath.Join(b.dir, "overlay.json"), "-o", file, "./"+folder)
	return file, err
}

func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &stderr, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return out, nil
}

// instrument has each function of a source text begin with an addition to its counter, and main
// also with a mark. It returns the new text, whose lines are those of the old, and the functions'
// names. The first counter has the number first.
func instrument(file string, text []byte, countPath string, first int) (counted []byte, names []string, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	done := 0 // how much of text is in counted
	insert := func(at token.Pos, what string) {
		offset := set.File(at).Offset(at)
		counted = append(append(counted, text[done:offset]...), what...)
		done = offset
	}
	insert(f.Name.End(), "; import entriesCount "+countPath)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name, mark := fn.Name.Name, ""
		if fn.Recv != nil {
			name = typeName(fn.Recv.List[0].Type) + "." + name
		} else if name == "main" && f.Name.Name == "main" {
			mark = " entriesCount.Mark();"
		}
		insert(fn.Body.Lbrace+1, fmt.Sprintf("%s entriesCount.N[%d].Add(1); ", mark, first+len(names)))
		names = append(names, name)
	}
	return append(counted, text[done:]...), names, nil
}

// typeName is the name of a receiver's type, without its pointer and its parameters.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.ParenExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	}
	return "?"
}
