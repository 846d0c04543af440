package mutate

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// function is one with a body, by offsets in its file. All mutants of a file are built at once: each in a copy of its function
// under another name, and the function itself begins by calling the copy whose turn it is.
type function struct {
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

// function returns nil for one that cannot be called.
func (p *planter) function(d *ast.FuncDecl) *function {
	if d.Name.Name == "init" || d.Name.Name == "_" {
		return nil
	}
	f := &function{pkg: p.pkg, from: p.at(d.Pos()), to: p.at(d.End()), name: p.at(d.Name.Pos()), afterName: p.at(d.Name.End()), body: p.at(d.Body.Lbrace) + 1}
	receiver := ""
	if d.Recv != nil {
		receiver = f.passed(p, d.Recv)[0] + "."
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
	args := f.passed(p, d.Type.Params)
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
func (f *function) passed(p *planter, list *ast.FieldList) (names []string) {
	fresh := func() string { return fmt.Sprintf("p%d__", len(f.names)) }
	for _, field := range list.List {
		if len(field.Names) == 0 {
			at, name := p.at(field.Type.Pos()), fresh()
			f.names = append(f.names, edit{at, at, name + " "})
			names = append(names, name)
		}
		for _, n := range field.Names {
			name := n.Name
			if name == "_" {
				name = fresh()
				f.names = append(f.names, edit{p.at(n.Pos()), p.at(n.End()), name})
			}
			names = append(names, name)
		}
	}
	return names
}

// number is the variable, one per package, that says which mutant is at work.
const number = "mutant__"

// chosen is the source that declares this variable.
func chosen(pkg string) []byte {
	return fmt.Appendf(nil, `package %s

import (
	os__ "os"
	strconv__ "strconv"
)

var %s, _ = strconv__.Atoi(os__.Getenv(%q))
`, pkg, number, environment)
}

const environment = "PACELINE_MUTANT"

// together returns a file with all these mutants of it, by the numbers at which they work, and the lines at which their copies
// begin.
func together(numbers []int, mutants []*Mutant) (src []byte, lines map[int]int) {
	src = mutants[0].src
	copies, edits := map[*function][]int{}, []edit{}
	var appended bytes.Buffer
	lines = map[int]int{}
	line := bytes.Count(src, []byte("\n")) + 2
	for i, m := range mutants {
		f := m.in
		if copies[f] == nil {
			edits = append(edits, f.names...)
		}
		copies[f] = append(copies[f], numbers[i])
		lines[numbers[i]] = line
		from := appended.Len()
		appended.Write(src[f.from:f.name])
		appended.WriteString(f.copyName(src, numbers[i]))
		appended.Write(src[f.afterName:m.from])
		appended.WriteString(m.text)
		appended.Write(src[m.to:f.to])
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

func (f *function) copyName(src []byte, n int) string {
	return string(src[f.name:f.afterName]) + "__" + strconv.Itoa(n)
}
