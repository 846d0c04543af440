package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

// Mutant is a file with one fault.
type Mutant struct {
	File string // from the module's root, with slashes
	Func string // the function or method that it is in; the declaration, outside of functions
	Line int
	// Before and After are the lines of the edit without and with it, shortened.
	Before, After string

	src      []byte
	from, to int // of the source, what is replaced
	text     string
	in       *overlay.Function // nil outside of functions
}

// Package is the folder of the file, "." for the root.
func (m *Mutant) Package() string { return path.Dir(m.File) }

// String tells the mutant from others, however lines move.
func (m *Mutant) String() string {
	return fmt.Sprintf("%s %s: %s → %s", m.File, m.Func, m.Before, m.After)
}

// Source is the file with the fault.
func (m *Mutant) Source() []byte { return slices.Concat(m.src[:m.from], []byte(m.text), m.src[m.to:]) }

// Folder returns the mutants of a folder below root, of all its files but tests and those for other systems.
func Folder(root, folder string) (all []Mutant, err error) {
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	sources, zeros := map[string][]byte{}, map[string]bool{}
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") || base == "doc.go" || strings.HasSuffix(base, "_windows.go") ||
			strings.HasSuffix(base, "_other.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sources[path.Join(filepath.ToSlash(folder), base)] = src
		if err := first(src, zeros); err != nil {
			return nil, err
		}
	}
	for _, file := range slices.Sorted(maps.Keys(sources)) {
		some, err := Of(file, sources[file], zeros)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// first adds to zeros the first constant of each list that begins with iota: it is 0, so to return
// the zero value in its place is no fault.
func first(src []byte, zeros map[string]bool) error {
	tree, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || len(g.Specs) == 0 {
			continue
		}
		if v := g.Specs[0].(*ast.ValueSpec); len(v.Values) == 1 && isName(v.Values[0], "iota") {
			zeros[v.Names[0].Name] = true
		}
	}
	return nil
}

// Of returns the mutants of a source, in order. zeros are constants of its package that are nothing.
func Of(file string, src []byte, zeros map[string]bool) ([]Mutant, error) {
	source, err := overlay.Parse(file, src)
	if err != nil {
		return nil, err
	}
	p := planter{file: file, src: src, source: source, zeros: zeros, failed: map[*ast.ReturnStmt]bool{}}
	for _, d := range source.Tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && !spared(d) {
				p.name, p.in = funcName(d), source.Function(d)
				p.walk(d.Body, d.Type)
			}
		case *ast.GenDecl:
			if d.Tok == token.CONST || d.Tok == token.VAR {
				p.name, p.in = d.Tok.String(), nil
				p.walk(d, nil)
			}
		}
	}
	seen := map[string]int{}
	for i := range p.found {
		m := &p.found[i]
		key := m.String()
		if seen[key]++; seen[key] > 1 {
			m.Func += "#" + strconv.Itoa(seen[key])
		}
	}
	return p.found, nil
}

// spared are functions whose results are read by people: nobody is promised the words.
func spared(d *ast.FuncDecl) bool {
	switch d.Name.Name {
	case "String", "Error", "GoString", "LogValue":
		return true
	}
	return false
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// planter collects the mutants of a file.
type planter struct {
	file, name string
	src        []byte
	source     *overlay.Source
	in         *overlay.Function
	zeros      map[string]bool
	failed     map[*ast.ReturnStmt]bool // which return an error that is not nil
	found      []Mutant
}

func (p *planter) at(pos token.Pos) int { return p.source.At(pos) }

func (p *planter) code(n ast.Node) string { return string(p.src[p.at(n.Pos()):p.at(n.End())]) }

// plant replaces what is from one position to another.
func (p *planter) plant(from, to token.Pos, text string) {
	m := Mutant{File: p.file, Func: p.name, in: p.in, src: p.src, from: p.at(from), to: p.at(to), text: text,
		Line: p.source.Line(from)}
	begin := strings.LastIndexByte(string(p.src[:m.from]), '\n') + 1
	end := len(p.src)
	if i := strings.IndexByte(string(p.src[m.to:]), '\n'); i >= 0 {
		end = m.to + i
	}
	m.Before = short(string(p.src[begin:end]))
	if m.After = short(string(p.src[begin:m.from]) + text + string(p.src[m.to:end])); m.After == "" {
		m.After = "(dropped)"
	}
	p.found = append(p.found, m)
}

func (p *planter) replace(n ast.Node, text string) { p.plant(n.Pos(), n.End(), text) }

// short puts code on one line, without its comment, and leaves out the middle if it is long.
func short(code string) string {
	var words []string
	for line := range strings.Lines(code) {
		line, _, _ = strings.Cut(line, " // ")
		words = append(words, strings.Fields(line)...)
	}
	s := strings.Join(words, " ")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:70]) + " … " + string(r[len(r)-47:])
	}
	return s
}

var operators = map[token.Token][]string{
	token.LSS: {"<="}, token.LEQ: {"<"}, token.GTR: {">="}, token.GEQ: {">"}, token.EQL: {"!="}, token.NEQ: {"=="},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
}

// walk plants in a body of a function of that type.
func (p *planter) walk(n ast.Node, of *ast.FuncType) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			p.walk(n.Body, n.Type)
			return false
		case *ast.BinaryExpr:
			if d, ok := n.Y.(*ast.SelectorExpr); ok && n.Op == token.MUL && isName(d.X, "time") {
				if lit, ok := n.X.(*ast.BasicLit); ok {
					p.literal(lit, scaled)
					return false
				}
			}
			for _, op := range operators[n.Op] {
				p.plant(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op)
			}
		case *ast.UnaryExpr:
			if lit, ok := n.X.(*ast.BasicLit); ok && n.Op == token.SUB {
				p.literal(lit, near)
				return false
			}
		case *ast.BasicLit:
			p.literal(n, around)
		case *ast.CallExpr:
			switch {
			case isPanic(n), grows(n):
				return false
			case isCall(n, "make"):
				for _, a := range n.Args[:min(len(n.Args), lengths(n))] {
					p.walk(a, of)
				}
				return false
			}
			if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 1 {
				if other := map[string]string{"min": "max", "max": "min"}[f.Name]; other != "" {
					p.replace(f, other)
				}
			}
		case *ast.IfStmt:
			p.fails(n)
			if p.clamps(n) {
				p.replace(n.Cond, "!("+p.code(n.Cond)+")")
				p.walk(n.Body, of)
				return false
			}
			p.replace(n.Cond, "!("+p.code(n.Cond)+")")
		case *ast.ForStmt:
			if n.Cond != nil {
				p.replace(n.Cond, "!("+p.code(n.Cond)+")")
			}
		case *ast.ReturnStmt:
			p.returned(n, of)
			if last := len(n.Results) - 1; last > 0 && of != nil &&
				(p.failed[n] || unheard(n.Results[last], of.Results.List[len(of.Results.List)-1].Type)) {
				p.walk(n.Results[last], of)
				return false
			}
		case *ast.BlockStmt:
			p.statements(n.List)
		case *ast.CaseClause:
			p.statements(n.Body)
		case *ast.CommClause:
			p.statements(n.Body)
		case *ast.IncDecStmt:
			p.plant(n.TokPos, n.End(), map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
		case *ast.AssignStmt:
			if other := map[token.Token]string{token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+="}[n.Tok]; other != "" {
				p.plant(n.TokPos, n.TokPos+2, other)
			}
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				p.constants(n)
				return false
			}
		case *ast.Field: // the tag is no constant
			return n.Tag == nil
		case *ast.ImportSpec:
			return false
		}
		return true
	})
}

// around, near and scaled return numbers that may stand in the place of one.
func around(v int64) []int64 { return []int64{v + 1, v - 1} }
func near(v int64) []int64   { return []int64{v - 1} }
func scaled(v int64) []int64 { return []int64{2 * v, v / 2} }

// literal changes a whole number.
func (p *planter) literal(n *ast.BasicLit, others func(int64) []int64) {
	if n.Kind != token.INT {
		return
	}
	v, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil {
		return
	}
	for _, o := range others(v) {
		if o >= 0 && o != v {
			p.replace(n, strconv.FormatInt(o, 10))
		}
	}
}

// constants changes numbers that have names.
func (p *planter) constants(n *ast.GenDecl) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			if v, err := strconv.ParseInt(lit.Value, 0, 64); err == nil && v > 4 {
				p.literal(lit, scaled)
			} else {
				p.literal(lit, around)
			}
		}
		return true
	})
}

// clamps tells whether n assigns a bound to what is beyond it: for the bound itself that changes nothing.
func (p *planter) clamps(n *ast.IfStmt) bool {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || n.Init != nil || n.Else != nil || len(n.Body.List) != 1 {
		return false
	}
	a, ok := n.Body.List[0].(*ast.AssignStmt)
	if !ok || a.Tok != token.ASSIGN || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return false
	}
	switch cond.Op {
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		return p.code(cond.X) == p.code(a.Lhs[0]) && p.code(cond.Y) == p.code(a.Rhs[0])
	}
	return false
}

// fails notes what returns the error that n has found not to be nil.
func (p *planter) fails(n *ast.IfStmt) {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || !isName(cond.X, "err") || !isName(cond.Y, "nil") {
		return
	}
	for _, s := range n.Body.List {
		if r, ok := s.(*ast.ReturnStmt); ok && len(r.Results) > 1 && isName(r.Results[len(r.Results)-1], "err") {
			p.failed[r] = true
		}
	}
}

// returned has one result at a time be the zero value of its type.
func (p *planter) returned(n *ast.ReturnStmt, of *ast.FuncType) {
	if of == nil || of.Results == nil {
		return
	}
	var types []ast.Expr
	for _, f := range of.Results.List {
		for range max(1, len(f.Names)) {
			types = append(types, f.Type)
		}
	}
	if len(types) != len(n.Results) {
		return // a call that has them all, or they have names
	}
	last := len(n.Results) - 1
	for i, r := range n.Results {
		switch code := p.code(r); {
		case i < last && (p.failed[n] || unheard(n.Results[last], types[last])):
		case code == "nil" || code == "0" || code == `""` || code == "false" || p.zeros[code] || p.empty(r, types[i]):
		case code == "true":
			p.replace(r, "false")
		default:
			p.replace(r, "*new("+p.code(types[i])+")")
		}
	}
}

// statements drops each statement without which the others may still compile.
func (p *planter) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok && !isPanic(c) && !grows(c) {
				p.replace(s, "")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !blank(s) {
				p.replace(s, "")
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
			p.replace(s, "")
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE || s.Tok == token.BREAK {
				p.replace(s, "")
			}
		case *ast.ReturnStmt:
			if len(s.Results) == 0 {
				p.replace(s, "")
			}
		}
	}
}

func isPanic(c *ast.CallExpr) bool { return isCall(c, "panic") }

func isCall(c *ast.CallExpr, name string) bool { return isName(c.Fun, name) }

func isName(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

// empty tells whether a value is written as the zero value of the type that is returned. (A slice
// or a map is something else than nil then.)
func (p *planter) empty(e, t ast.Expr) bool {
	c, ok := e.(*ast.CompositeLit)
	if !ok || len(c.Elts) > 0 || c.Type == nil || p.code(c.Type) != p.code(t) {
		return false
	}
	switch t.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		return true
	}
	return false
}

// grows tells whether a call only allocates in advance.
func grows(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Grow"
}

// lengths is how many arguments of a make do more than allocate in advance.
func lengths(c *ast.CallExpr) int {
	if _, ok := c.Args[0].(*ast.MapType); ok {
		return 1
	}
	return 2
}

// unheard tells whether nobody looks at the other results: the last is false, or an error that is made there.
func unheard(last, t ast.Expr) bool {
	if isName(last, "false") {
		return true
	}
	made, _ := last.(*ast.CallExpr)
	if made == nil || !isName(t, "error") {
		return false
	}
	f, ok := made.Fun.(*ast.SelectorExpr)
	return ok && (isName(f.X, "fmt") && f.Sel.Name == "Errorf" || isName(f.X, "errors") && f.Sel.Name == "New")
}

func blank(s *ast.AssignStmt) bool {
	for _, l := range s.Lhs {
		if i, ok := l.(*ast.Ident); !ok || i.Name != "_" {
			return false
		}
	}
	return true
}
