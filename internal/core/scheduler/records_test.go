package scheduler

import "testing"

// Places are taken again, and a Number is never: it rises. Who settles a request twice is told so, also when its
// place has another request by then.
func TestRecords(t *testing.T) {
	var r records
	a, b := r.take().Number, r.take().Number
	r.end(a)
	c := r.take().Number
	if len(r.all) != 2 || b <= a || c <= b {
		t.Errorf("%d places, numbers %d, %d, %d, want 2 and each larger", len(r.all), a, b, c)
	}
	if r.at(a) != nil || r.at(0) != nil || r.at(r.number()) != nil || r.at(99) != nil {
		t.Error("a record of a request that is not open")
	}
	open := map[uint64]bool{}
	for k := range r.each() {
		open[k.Number] = true
	}
	if len(open) != 2 || !open[b] || !open[c] {
		t.Errorf("open are %v, want %d and %d", open, b, c)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a request is settled twice")
			}
		}()
		r.end(a)
	}()
	if k := r.end(c); k.Number != c || r.at(c) != nil {
		t.Errorf("its record has number %d, want %d, which Settle returns; open: %v", k.Number, c, r.at(c) != nil)
	}
}
