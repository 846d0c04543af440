package overlay

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Function is one with a body, by offsets in its file. The function itself begins by calling the copy whose
// number is at work.
type Function struct {
	pkg             string
	from, to        int // from its func to its last brace
	name, afterName int
	body            int    // after its first brace
	names           []edit // for parameters that have none
	call            string // of a copy, with %s for its name
}

type edit struct {
	from, to int
	text     string
}

// Source is a file, as it was read and parsed.
type Source struct {
	Text []byte
	Tree *ast.File
	base *token.File
}

// Parse parses a file.
func Parse(name string, text []byte) (*Source, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return nil, err
	}
	return &Source{text, tree, fset.File(tree.Pos())}, nil
}

// At is the offset of a position, and Line its line.
func (s *Source) At(pos token.Pos) int   { return s.base.Offset(pos) }
func (s *Source) Line(pos token.Pos) int { return s.base.Line(pos) }

// Function returns nil for a declaration that cannot be called.
func (s *Source) Function(d *ast.FuncDecl) *Function {
	if d.Body == nil || d.Name.Name == "init" || d.Name.Name == "_" {
		return nil
	}
	f := &Function{pkg: s.Tree.Name.Name, from: s.At(d.Pos()), to: s.At(d.End())}
	f.name, f.afterName, f.body = s.At(d.Name.Pos()), s.At(d.Name.End()), s.At(d.Body.Lbrace)+1
	receiver := ""
	if d.Recv != nil {
		receiver = f.passed(s, d.Recv)[0] + "."
	}
	types := ""
	if d.Type.TypeParams != nil {
		var names []string
		for _, t := range d.Type.TypeParams.List {
			for _, n := range t.Names {
				names = append(names, n.Name)
			}
		}
		types = "[" + strings.Join(names, ", ") + "]"
	}
	args := f.passed(s, d.Type.Params)
	if n := len(d.Type.Params.List); n > 0 {
		if _, ok := d.Type.Params.List[n-1].Type.(*ast.Ellipsis); ok {
			args[len(args)-1] += "..."
		}
	}
	f.call = receiver + "%s" + types + "(" + strings.Join(args, ", ") + ")"
	if d.Type.Results != nil {
		f.call = "return " + f.call
	} else {
		f.call += "; return"
	}
	return f
}

// passed returns the names of parameters, and gives names to those that have none.
func (f *Function) passed(s *Source, list *ast.FieldList) (names []string) {
	fresh := func() string { return fmt.Sprintf("p%d__", len(f.names)) }
	for _, field := range list.List {
		if len(field.Names) == 0 {
			at, name := s.At(field.Type.Pos()), fresh()
			f.names = append(f.names, edit{at, at, name + " "})
			names = append(names, name)
		}
		for _, n := range field.Names {
			name := n.Name
			if name == "_" {
				name = fresh()
				f.names = append(f.names, edit{s.At(n.Pos()), s.At(n.End()), name})
			}
			names = append(names, name)
		}
	}
	return names
}

// Holds reports whether a part of the file is in the body.
func (f *Function) Holds(from, to int) bool { return f.body <= from && to < f.to }

// number is the variable, one per package, that says which change is at work.
const number = "mutant__"

// Chosen returns the file that declares this variable for the package of a function, and its name from the
// module's root beside that of another file of the package.
func (f *Function) Chosen(beside string) (name string, text []byte) {
	return path.Join(path.Dir(beside), "mutant__.go"), fmt.Appendf(nil, `package %s

import (
	os__ "os"
	strconv__ "strconv"
)

var %s, _ = strconv__.Atoi(os__.Getenv(%q))
`, f.pkg, number, environment)
}

const environment = "PACELINE_MUTANT"

// AtWork is the line of the environment that has the changes of a number at work; 0: none.
func AtWork(number int) string { return environment + "=" + strconv.Itoa(number) }

// Change is an edit inside a function, by offsets in its file.
type Change struct {
	Number   int // at which it is at work, from 1 on
	In       *Function
	From, To int
	Text     string
}

// Together returns a file with all these changes of it, and the lines at which their copies begin, by number.
func Together(src []byte, changes []Change) (text []byte, lines map[int]int) {
	copies, edits := map[*Function][]int{}, []edit{}
	var appended bytes.Buffer
	lines = map[int]int{}
	line := bytes.Count(src, []byte("\n")) + 2
	for _, c := range changes {
		f := c.In
		if copies[f] == nil {
			edits = append(edits, f.names...)
		}
		copies[f] = append(copies[f], c.Number)
		lines[c.Number] = line
		from := appended.Len()
		appended.Write(src[f.from:f.name])
		appended.WriteString(f.copyName(src, c.Number))
		appended.Write(src[f.afterName:c.From])
		appended.WriteString(c.Text)
		appended.Write(src[c.To:f.to])
		appended.WriteString("\n")
		line += bytes.Count(appended.Bytes()[from:], []byte("\n"))
	}
	for f, numbers := range copies {
		var b strings.Builder
		fmt.Fprintf(&b, " if %s != 0 { switch %s {", number, number)
		for _, n := range numbers {
			fmt.Fprintf(&b, " case "+strconv.Itoa(n)+": "+f.call+";", f.copyName(src, n))
		}
		b.WriteString(" } };")
		edits = append(edits, edit{f.body, f.body, b.String()})
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(src[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(src[at:])
	out.WriteString("\n")
	out.Write(appended.Bytes())
	return out.Bytes(), lines
}

func (f *Function) copyName(src []byte, n int) string {
	return string(src[f.name:f.afterName]) + "__" + strconv.Itoa(n)
}
