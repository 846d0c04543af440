package output

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/itchyny/gojq"
)

// piece is a column and its expression.
type piece struct{ name, text string }

// listedColumns reads NAME=EXPRESSION, NAME=EXPRESSION. It returns false if the text does not begin with NAME=.
func listedColumns(text string) ([]piece, bool, error) {
	var all []piece
	for i, part := range splitColumns(text) {
		name, expression, ok := namedColumn(part)
		if !ok && i == 0 {
			return nil, false, nil
		}
		if !ok {
			return nil, true, fmt.Errorf("%q: %q has no name, expected NAME=EXPRESSION after each comma, and commas of an "+
				"expression within ( )", text, strings.TrimSpace(part))
		}
		if strings.TrimSpace(expression) == "" {
			return nil, true, fmt.Errorf("%q: %s= has no expression, expected such as %s=.body.%s", text, name, name, name)
		}
		all = append(all, piece{name, expression})
	}
	return all, true, nil
}

// namedColumn splits NAME=EXPRESSION. A comparison, such as .a=="b", has no name.
func namedColumn(part string) (name, expression string, ok bool) {
	name, expression, ok = strings.Cut(part, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.HasPrefix(expression, "=") || name[0] == '.' {
		return "", "", false
	}
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-. ", c) {
			return "", "", false
		}
	}
	return name, expression, true
}

// splitColumns splits a text at the commas that are neither within brackets nor within a string.
func splitColumns(text string) (parts []string) {
	var open []byte // for each bracket and string that is open, the character that closes it
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		inString := len(open) > 0 && open[len(open)-1] == '"'
		switch {
		case inString && c == '\\' && i+1 < len(text):
			if i++; text[i] == '(' { // \( begins an expression within a string
				open = append(open, ')')
			}
		case inString && c == '"', !inString && len(open) > 0 && c == open[len(open)-1]:
			open = open[:len(open)-1]
		case inString:
		case c == '"':
			open = append(open, '"')
		case c == '(':
			open = append(open, ')')
		case c == '[':
			open = append(open, ']')
		case c == '{':
			open = append(open, '}')
		case c == ',' && len(open) == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// objectColumns reads the columns of a query that makes one object. It returns false if the query does
// not, or computes the names.
func objectColumns(q *gojq.Query) (all []piece, ok bool, err error) {
	t := q.Term
	if t == nil || t.Type != gojq.TermTypeObject || len(t.SuffixList) > 0 || len(q.FuncDefs) > 0 || q.Op != 0 {
		return nil, false, nil
	}
	for _, kv := range t.Object.KeyVals {
		var p piece
		switch {
		case kv.KeyString != nil && kv.KeyString.Queries == nil:
			p.name = kv.KeyString.Str
			p.text = "." + kv.KeyString.String()
		case kv.Key != "" && kv.Key[0] != '$':
			p.name, p.text = kv.Key, "."+kv.Key
		default:
			return nil, false, nil
		}
		if kv.Val != nil {
			p.text = kv.Val.String()
		}
		all = append(all, p)
	}
	return all, len(all) > 0, nil
}
