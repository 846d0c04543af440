package limit

import "fmt"

// driven is in each limiter of this package. It has the driver of the limiter; nil: none yet.
type driven struct{ driver any }

func (d *driven) drivenBy() *any { return &d.driver }

// Bind gives l, and all in it, to a driver, which is a pointer. It returns an error, and changes
// nothing, if another driver has a part of l. A second Bind to the same driver has no effect. Gate,
// Group, Pool and transport call it. Limiters of other packages are not noticed.
func Bind(l Limiter, driver any) (err error) {
	each := func(f func(part Limiter, name *string, had *any)) {
		visit(l, nil, func(part Limiter, name *string) bool {
			d, ok := part.(interface{ drivenBy() *any })
			if ok {
				f(part, name, d.drivenBy())
			}
			return ok
		})
	}
	each(func(part Limiter, name *string, had *any) {
		if err != nil || *had == nil || *had == driver {
			return
		}
		which := fmt.Sprintf("%T", part) // its rules may change under the lock of its driver
		if name != nil {
			which += fmt.Sprintf(" named %q", *name)
		}
		err = fmt.Errorf("the Limiter, a %s, belongs to another Gate, Group, Pool or Transport already; expected: "+
			"one owner for each Limiter; where several need one limit, let them use one owner together", which)
	})
	if err == nil {
		each(func(_ Limiter, _ *string, had *any) { *had = driver })
	}
	return err
}
