package node

import "testing"

// An heir whose weight is enough keeps to its weight; one with less has its least part of the whole.
func TestWeigh(t *testing.T) {
	for _, c := range []struct {
		heirs []Entry
		want  []uint64
	}{
		{[]Entry{{Weight: 1000, Least: 300}, {Weight: 1000, Least: 150}, {Weight: 8000, Least: 100}}, []uint64{3000, 1500, 5500}},
		{[]Entry{{Weight: 1000}, {Weight: 3000}}, []uint64{1000, 3000}},
		{[]Entry{{Weight: 1000, Least: 950}, {Weight: 1000, Least: 950}, {Weight: 8000}}, []uint64{4750, 4750, 500}},
	} {
		var heirs []*Entry
		for i := range c.heirs {
			heirs = append(heirs, &c.heirs[i])
		}
		weigh(heirs)
		for i, e := range heirs {
			if e.Counts != c.want[i] {
				t.Errorf("%+v: heir %d counts as %d, want %d", c.heirs, i, e.Counts, c.want[i])
			}
		}
	}
}
