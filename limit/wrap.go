package limit

// A Limiter that is made of others says so, as an error does that wraps others:
//
//	Unwrap() []Limiter
//
// Then every function of this package that asks something of a Limiter asks it of what it is made of, where it has no answer of its own. So
// who wraps a Limiter writes Ready, Admit, Settle and Unwrap, and what a forecast or a lease needs that only the wrapper knows.

type wrapper interface{ Unwrap() []Limiter }

// Unwrap returns what the wrapper is made of. They still belong to it.
func (a *All) Unwrap() []Limiter    { return a.each }
func (f *Fitted) Unwrap() []Limiter { return f.made[:] }
func (n *named) Unwrap() []Limiter  { return n.made[:] }

// visit calls f for l, and where that returns false for what l is made of. name is what the outermost Named calls it; nil: none does.
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

// ask calls f for each part of l that is an I.
func ask[I any](l Limiter, f func(part I)) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		i, ok := l.(I)
		if ok {
			f(i)
		}
		return ok
	})
}

// any tells whether f holds of a part of l.
func anyPart(l Limiter, f func(l Limiter) bool) (found bool) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		found = found || f(l)
		return found
	})
	return found
}

// Parts returns the limiters that l is made of, down to those that are made of no others. They still belong to l.
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
