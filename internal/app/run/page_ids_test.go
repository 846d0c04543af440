package run

import (
	"testing"
)

func TestPageIDs(t *testing.T) {
	for _, c := range []struct {
		id, of string
		page   int
	}{{"a.p2", "a", 2}, {"a.p2.p10", "a.p2", 10}, {".p2", "", 0}, {"a.p1", "", 0}, {"a.p02", "", 0}, {"a.p", "", 0}, {"a.p-2", "", 0}, {"a", "", 0}, {"a.p2x", "", 0}} {
		of, page, ok := cutPage(c.id)
		if ok != (c.of != "") || ok && (of != c.of || page != c.page) {
			t.Errorf("%q: %q, %d, %v", c.id, of, page, ok)
		}
	}
}
