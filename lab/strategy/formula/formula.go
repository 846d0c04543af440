// Package formula reads laws of throttling as text, for example from a file with a scenario. A law
// computes how many seconds a client sleeps before its next request. So such a file can define a
// law of its own, without Go code:
//
//	on_limited: sleep *= choose(tries > 0, 1.2, 1); sleep += min_sleep
//	on_ok:      sleep -= sleep*remaining/limit
//
// A formula is the text after on_limited (for a refused request) or on_ok (for a served one). It is
// one step or several, separated by semicolons. A step changes the sleep by sleep = X, or by +=,
// -=, *= or /=. A step that is an expression alone sets the sleep to its value. Expressions are
// written as in Go, over floating-point numbers of 64 bits: + - * /, comparisons and && || ! (1 is
// true, 0 is false). They may use the functions and variables that two tables in formula.go list,
// such as remaining and limit.
//
// Compile turns the text of a law into Go closures, once. A step of the compiled law then allocates
// no memory.
package formula

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/lab/strategy"
)

// Formula is a law as text, compiled.
type Formula struct{ steps []value }

// Error is a mistake in a formula. At counts the bytes before it.
type Error struct {
	At      int
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.At+1, e.Problem) }

type value func(*strategy.Moment) float64

// variables are what an answer and the scenario tell. Times are in seconds.
var variables = []struct {
	name string
	of   value
}{
	{"sleep", func(m *strategy.Moment) float64 { return m.Sleep }},
	{"remaining", func(m *strategy.Moment) float64 { return m.Remaining }},
	{"limit", func(m *strategy.Moment) float64 { return m.Limit }},
	{"tries", func(m *strategy.Moment) float64 { return m.Tries }},
	{"retry_after", func(m *strategy.Moment) float64 { return m.RetryAfter }},
	{"reset", func(m *strategy.Moment) float64 { return m.Reset }},
	{"now", func(m *strategy.Moment) float64 { return m.Now }},
	{"random", func(m *strategy.Moment) float64 { return m.Rng.Float64() }},
	{"min_sleep", func(m *strategy.Moment) float64 { return m.MinSleep }},
}

// functions have one argument or two. min, max and choose are not among them: they take others.
var (
	functions1 = map[string]func(float64) float64{"exp": math.Exp, "log": math.Log, "sqrt": math.Sqrt, "abs": math.Abs,
		"floor": math.Floor}
	functions2 = map[string]func(x, y float64) float64{"pow": math.Pow}
)

// callable are the names of all functions, for errors.
var callable = []string{"min", "max", "choose", "pow", "exp", "log", "sqrt", "abs", "floor"}

var assignment = regexp.MustCompile(`^\s*sleep\s*([-+*/]?)=([^=]|$)`)

// Compile reads a formula. The error is an *Error.
func Compile(source string) (*Formula, error) {
	f, at := &Formula{}, 0
	for step := range strings.SplitSeq(source, ";") {
		v, err := compileStep(step)
		if mistake, ok := errors.AsType[*Error](err); ok {
			mistake.At += at
			return nil, mistake
		}
		f.steps = append(f.steps, v)
		at += len(step) + 1
	}
	return f, nil
}

// compileStep compiles one step to the sleep after it.
func compileStep(step string) (value, error) {
	operator, begin := "", 0
	if m := assignment.FindStringSubmatchIndex(step); m != nil {
		operator, begin = step[m[2]:m[3]], m[3]+1
	}
	x, err := compileText(step[begin:])
	if err != nil {
		err.At += begin
		return nil, err
	}
	if operator == "" {
		return x, nil
	}
	sleep := variables[0].of
	return binary[operatorOf(operator)](sleep, x), nil
}

func operatorOf(s string) token.Token {
	return map[string]token.Token{"+": token.ADD, "-": token.SUB, "*": token.MUL, "/": token.QUO}[s]
}

func compileText(source string) (value, *Error) {
	if strings.TrimSpace(source) == "" {
		return nil, &Error{0, "nothing is here: want an expression such as sleep*1.2"}
	}
	tree, err := parser.ParseExprFrom(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if list, ok := errors.AsType[scanner.ErrorList](err); ok {
		return nil, &Error{min(list[0].Pos.Offset, len(source)), list[0].Msg}
	} else if err != nil {
		return nil, &Error{0, err.Error()}
	}
	v, mistake := compile(tree)
	if mistake != nil {
		mistake.At = min(mistake.At, len(source))
	}
	return v, mistake
}

func refuse(n ast.Node, format string, a ...any) (value, *Error) {
	return nil, &Error{int(n.Pos()) - 1, fmt.Sprintf(format, a...)} // positions of a file of its own begin at 1
}

func compile(n ast.Expr) (value, *Error) {
	switch n := n.(type) {
	case *ast.BasicLit:
		number, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return refuse(n, "%s is no number", n.Value)
		}
		return func(*strategy.Moment) float64 { return number }, nil
	case *ast.Ident:
		return variable(n)
	case *ast.ParenExpr:
		return compile(n.X)
	case *ast.UnaryExpr:
		return unary(n)
	case *ast.BinaryExpr:
		operator, ok := binary[n.Op]
		if !ok {
			return refuse(n.Y, "the operator %s is not known: want + - * / < <= > >= == != && ||", n.Op)
		}
		x, err := compile(n.X)
		if err != nil {
			return nil, err
		}
		y, err := compile(n.Y)
		if err != nil {
			return nil, err
		}
		return operator(x, y), nil
	case *ast.CallExpr:
		return call(n)
	}
	return refuse(n, "this is no arithmetic: want numbers, variables, operators and functions")
}

func variable(n *ast.Ident) (value, *Error) {
	var names []string
	for i := range variables {
		if variables[i].name == n.Name {
			return variables[i].of, nil
		}
		names = append(names, variables[i].name)
	}
	return refuse(n, "%q is not known: want %s%s", n.Name, strings.Join(names, ", "), text.DidYouMean(n.Name, names))
}

func unary(n *ast.UnaryExpr) (value, *Error) {
	x, err := compile(n.X)
	switch {
	case err != nil:
		return nil, err
	case n.Op == token.SUB:
		return func(m *strategy.Moment) float64 { return -x(m) }, nil
	case n.Op == token.NOT:
		return func(m *strategy.Moment) float64 { return truth(x(m) == 0) }, nil
	}
	return refuse(n, "the operator %s is not known: want - or !", n.Op)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var binary = map[token.Token]func(x, y value) value{
	token.ADD: func(x, y value) value { return func(m *strategy.Moment) float64 { return x(m) + y(m) } },
	token.SUB: func(x, y value) value { return func(m *strategy.Moment) float64 { return x(m) - y(m) } },
	token.MUL: func(x, y value) value { return func(m *strategy.Moment) float64 { return x(m) * y(m) } },
	token.QUO: func(x, y value) value { return func(m *strategy.Moment) float64 { return x(m) / y(m) } },
	token.LSS: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) < y(m)) } },
	token.LEQ: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) <= y(m)) } },
	token.GTR: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) > y(m)) } },
	token.GEQ: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) >= y(m)) } },
	token.EQL: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) == y(m)) } },
	token.NEQ: func(x, y value) value { return func(m *strategy.Moment) float64 { return truth(x(m) != y(m)) } },
	token.LAND: func(x, y value) value {
		return func(m *strategy.Moment) float64 { return truth(x(m) != 0 && y(m) != 0) }
	},
	token.LOR: func(x, y value) value {
		return func(m *strategy.Moment) float64 { return truth(x(m) != 0 || y(m) != 0) }
	},
}

func call(n *ast.CallExpr) (value, *Error) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || !slices.Contains(callable, name.Name) {
		called := "this"
		if ok {
			called = strconv.Quote(name.Name)
		}
		return refuse(n, "%s is no function: want %s", called, strings.Join(callable, ", "))
	}
	args := make([]value, len(n.Args))
	for i, arg := range n.Args {
		var err *Error
		if args[i], err = compile(arg); err != nil {
			return nil, err
		}
	}
	if want, least := arguments(name.Name); len(args) < want || len(args) > want && !least {
		return refuse(n, "%s has %s: want %d", name.Name, text.Count(len(args), "argument", "arguments"), want)
	}
	switch name.Name {
	case "min", "max":
		pick := func(x, y float64) float64 { return min(x, y) }
		if name.Name == "max" {
			pick = func(x, y float64) float64 { return max(x, y) }
		}
		return func(m *strategy.Moment) float64 {
			v := args[0](m)
			for _, arg := range args[1:] {
				v = pick(v, arg(m))
			}
			return v
		}, nil
	case "choose":
		return func(m *strategy.Moment) float64 {
			if args[0](m) != 0 {
				return args[1](m)
			}
			return args[2](m)
		}, nil
	}
	if f, ok := functions2[name.Name]; ok {
		return func(m *strategy.Moment) float64 { return f(args[0](m), args[1](m)) }, nil
	}
	f := functions1[name.Name]
	return func(m *strategy.Moment) float64 { return f(args[0](m)) }, nil
}

// arguments returns how many arguments a function has. More are right, too, if least is true.
func arguments(function string) (want int, least bool) {
	switch function {
	case "min", "max":
		return 2, true
	case "choose":
		return 3, false
	case "pow":
		return 2, false
	}
	return 1, false
}

// Name is how reports call a strategy of formulas.
const Name = "formula"

// Strategy returns the strategy that takes one formula after a refusal, and the other after an answer that serves.
func Strategy(limited, ok *Formula) strategy.Strategy {
	return strategy.ByLaw(Name, "a law as formulas", func(m *strategy.Moment) float64 {
		steps := ok.steps
		if m.Limited {
			steps = limited.steps
		}
		for _, step := range steps {
			m.Sleep = step(m)
		}
		return m.Sleep
	})
}
