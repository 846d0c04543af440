package limit

import "github.com/paceline-go/paceline/limit/mono"

// A Limiter that is made of others has one method for it, as a wrapping error has:
//
//	Unwrap() []Limiter
//
// Each function of this package asks the wrapper first. If the wrapper has no answer, the function
// asks its parts. So a wrapper needs Ready, Admit, Settle and Unwrap. All, Varying and Named have no
// other method for it. A wrapper that adds a bound of its own knows more than its parts, and adds
// forecasts.

type wrapper interface{ Unwrap() []Limiter }

// Unwrap returns the parts of the wrapper. They still belong to it.
func (a *All) Unwrap() []Limiter    { return a.each }
func (f *Fitted) Unwrap() []Limiter { return f.made[:] }
func (n *named) Unwrap() []Limiter  { return n.made[:] }

// visit calls f for l. If f returns false, visit goes on to the parts of l. name is the name from
// the outermost Named; nil: there is none.
func visit(l Limiter, name *string, f func(l Limiter, name *string) (answered bool)) {
	if n, ok := l.(*named); ok && name == nil {
		name = &n.name
	}
	if f(l, name) {
		return
	}
	if w, ok := l.(wrapper); ok {
		for _, part := range w.Unwrap() {
			visit(part, name, f)
		}
	}
}

// Ask calls f for each part of l that is an I, such as an interface with a question or a kind of
// limiter. If l itself is an I, it answers for its parts. The order is that of the parts.
func Ask[I any](l Limiter, f func(part I)) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		i, ok := l.(I)
		if ok {
			f(i)
		}
		return ok
	})
}

// anyPart reports whether f holds for a part of l.
func anyPart(l Limiter, f func(l Limiter) bool) (found bool) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		found = found || f(l)
		return found
	})
	return found
}

// Parts returns the limiters in l that have no parts themselves. They still belong to l.
func Parts(l Limiter) (parts []Limiter) {
	if l == nil {
		return nil
	}
	visit(l, nil, func(l Limiter, _ *string) bool {
		_, is := l.(wrapper)
		if !is {
			parts = append(parts, l)
		}
		return !is
	})
	return parts
}

// conjunction returns the parts of a wrapper that adds nothing to them, and its last change.
func conjunction(l Limiter) (parts []Limiter, last mono.Time, ok bool) {
	switch l := l.(type) {
	case *All:
		return l.each, l.last, true
	case *Varying:
		return l.each, l.last, true
	case *named:
		return l.made[:], mono.Min, true
	}
	return nil, mono.Min, false
}
