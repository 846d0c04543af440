package limit

// Named returns l under a name. The name distinguishes its verdicts from those of others: two
// limits of requests, or the limits of a model and of an organisation. All limits in an All get
// that one name. Change l itself (SetLimit, SetWindow); admit and settle through the returned
// Limiter. It panics if l is nil.
func Named(name string, l Limiter) Limiter {
	if l == nil {
		panic("limit: Named: the Limiter is nil")
	}
	return &named{l, [1]Limiter{l}, name}
}

type named struct {
	Limiter
	made [1]Limiter
	name string
}
