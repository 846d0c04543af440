package archtest

import (
	"go/ast"
	"strconv"
)

// asserts finds type assertions on the optional interfaces of package limit outside of it. An
// assertion sees the outermost wrapper and not what it is made of, so it answers wrongly and in
// silence. A function of the package asks the parts, too (limit.Ask, limit.Keeps).
func (c *checker) asserts(pkg string, file *ast.File) {
	if pkg == "limit" {
		return
	}
	name := ""
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == c.module+"/limit" {
			name = "limit"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "" {
		return
	}
	report := func(asserted ast.Expr) {
		s, ok := asserted.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == name && s.Sel.Name != "Limiter" {
			c.add(s.Pos(), "%s asserts %s.%s, which sees a wrapper and not the limiter inside: ask a function of package "+
				"limit, which asks both",
				pkg, name, s.Sel.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			report(n.Type)
		case *ast.TypeSwitchStmt:
			for _, clause := range n.Body.List {
				for _, t := range clause.(*ast.CaseClause).List {
					report(t)
				}
			}
		}
		return true
	})
}
