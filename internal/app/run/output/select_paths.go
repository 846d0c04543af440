package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/paceline-go/paceline/internal/text"
)

// paths returns the paths of names that a query reads from its input for sure: .body.name is body and name. It leaves
// out parts that allow for an absent value, as .a? and .a // .b do, and parts with another input, as .b of .a | .b.
func paths(q *gojq.Query) (all [][]string) {
	switch {
	case q == nil || len(q.FuncDefs) > 0 || q.Op == gojq.OpAlt:
		return nil
	case q.Term != nil:
		return termPaths(q.Term)
	case q.Op == gojq.OpPipe && len(q.Patterns) == 0:
		return paths(q.Left)
	}
	return append(paths(q.Left), paths(q.Right)...)
}

func termPaths(t *gojq.Term) (all [][]string) {
	switch t.Type {
	case gojq.TermTypeIndex:
		return indexPath(t)
	case gojq.TermTypeQuery:
		return paths(t.Query)
	case gojq.TermTypeArray:
		return paths(t.Array.Query)
	case gojq.TermTypeUnary:
		return termPaths(t.Unary.Term)
	case gojq.TermTypeString, gojq.TermTypeFormat:
		if t.Str != nil {
			for _, q := range t.Str.Queries {
				all = append(all, paths(q)...)
			}
		}
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			all = append(all, paths(kv.KeyQuery)...)
			if all = append(all, paths(kv.Val)...); kv.Val == nil && kv.Key != "" && kv.Key[0] != '$' {
				all = append(all, []string{kv.Key})
			}
		}
	}
	return all
}

// indexPath is the path of .a.b["c"], up to the first index that is no name.
func indexPath(t *gojq.Term) [][]string {
	name, ok := nameOf(t.Index)
	path := []string{name}
	for _, s := range t.SuffixList {
		if s.Optional {
			return nil
		}
		if ok = ok && s.Index != nil; !ok {
			break
		}
		if name, ok = nameOf(s.Index); ok {
			path = append(path, name)
		}
	}
	if path[0] == "" {
		return nil
	}
	return [][]string{path}
}

func nameOf(i *gojq.Index) (name string, ok bool) {
	str := i.Str                                                                              // of ."a"
	if q := i.Start; q != nil && !i.IsSlice && q.Term != nil && len(q.Term.SuffixList) == 0 { // of ["a"]
		str = q.Term.Str
	}
	if str != nil && str.Queries == nil {
		return str.Str, true
	}
	return i.Name, i.Name != ""
}

// parts are the columns or, if there are none, the expression as one without a name.
func (s *Shape) parts() []column {
	if s.whole != nil {
		return []column{{text: s.text, reads: s.reads}}
	}
	return s.columns
}

// RowColumns returns the columns of the input's rows that the selection reads for sure, as .row.name reads name.
func (s *Shape) RowColumns() (names []string) {
	for _, c := range s.parts() {
		for _, p := range c.reads {
			if len(p) > 1 && p[0] == "row" && !slices.Contains(names, p[1]) {
				names = append(names, p[1])
			}
		}
	}
	return names
}

// Nulls describes the columns of a mask of Row, which are null in an answer, v. For each it says what v has in place
// of a name of its expression.
func (s *Shape) Nulls(mask uint64, v any) string {
	var all []string
	for i, c := range s.parts() {
		if i < maxMask && mask>>i&1 == 1 {
			all = append(all, c.said()+c.lacks(v))
		}
	}
	return strings.Join(all, "; ")
}

func (c *column) said() string {
	if c.name == "" {
		return c.text
	}
	return c.name + "=" + c.text
}

// lacks says which name of the expression v does not have, and which it has there.
func (c *column) lacks(v any) string {
	for _, path := range c.reads {
		at := v
		for i, name := range path {
			members, ok := at.(map[string]any)
			if !ok {
				break
			}
			if at, ok = members[name]; ok {
				continue
			}
			where := "the answer"
			if i > 0 {
				where = "." + strings.Join(path[:i], ".")
			}
			var names []string
			for name := range members {
				names = append(names, name)
			}
			slices.Sort(names)
			const most = 20
			return fmt.Sprintf(" (%s has no %s, but %s%s)", where, name, text.Some(names, most), text.DidYouMean(name, names))
		}
	}
	return ""
}
