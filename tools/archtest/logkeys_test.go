package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
)

// logKey is the form of a key in a log: a filter of jq or Loki has it without quotes.
var logKey = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// afterMessage is where the keys and values begin, by the method of a slog.Logger.
var afterMessage = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3,
}

// attributes are the functions of slog whose first argument is a key.
var attributes = []string{"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group"}

// logKeys finds keys of log lines that are not in snake_case. It looks at calls that have a word where slog has a key.
func (c *checker) logKeys(file *ast.File) {
	check := func(e ast.Expr) {
		if text, ok := textOf(e); ok && !logKey.MatchString(text) {
			c.add(e.Pos(), "the key %q of a log line is not in snake_case, and a filter has to quote it: expected such as asked_again_in", text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "slog" {
			if slices.Contains(attributes, f.Sel.Name) && len(call.Args) > 1 {
				check(call.Args[0])
			}
			return true
		}
		from, ok := afterMessage[f.Sel.Name]
		if x, is := f.X.(*ast.Ident); is && x.Name == "http" { // http.Error
			return true
		}
		if !ok || len(call.Args) < from+2 {
			return true
		}
		for i := from; i+1 < len(call.Args); i += 2 {
			if _, isText := textOf(call.Args[i]); !isText { // an attribute, or no call of slog
				return true
			}
			check(call.Args[i])
		}
		return true
	})
}

// textOf is the text of a literal.
func textOf(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}
