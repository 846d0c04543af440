package race

import (
	"reflect"
	"slices"
	"testing"
)

// Unlocks calls each exported method of v with empty arguments, and fails where mu, which they lock, is
// held afterwards. A method that unlocks what it has not locked ends the process. A panic of a method is
// none of this test's business. The methods named in except are not called: they wait for others, or their callers hold mu.
func Unlocks(t *testing.T, v any, mu interface {
	TryLock() bool
	Unlock()
}, except ...string) {
	t.Helper()
	of := reflect.ValueOf(v)
	for i := range of.NumMethod() {
		name := of.Type().Method(i).Name
		if slices.Contains(except, name) {
			continue
		}
		func() {
			defer func() { _ = recover() }()
			f := of.Method(i)
			f.Call(empty(f.Type()))
		}()
		if !mu.TryLock() {
			t.Fatalf("after %T.%s its lock is held", v, name)
		}
		mu.Unlock()
	}
}

// empty returns arguments for a function: pointers to new values, functions that return empty values, and empty values.
func empty(f reflect.Type) (args []reflect.Value) {
	for i := range f.NumIn() {
		if f.IsVariadic() && i == f.NumIn()-1 {
			break
		}
		switch in := f.In(i); in.Kind() {
		case reflect.Pointer:
			args = append(args, reflect.New(in.Elem()))
		case reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for out0 := range in.Outs() {
					out = append(out, reflect.Zero(out0))
				}
				return out
			}))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return args
}
