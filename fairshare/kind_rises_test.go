package fairshare

import "testing"

// However it came to be taken for a window again, it takes eight small rises anew to show that it
// is a bucket.
func TestRisesCountAnew(t *testing.T) {
	f := fairOf(t, hourly)
	at, left := 200.0, 2600.0
	rises := func() {
		f.hears(at, left, 0)
		f.hears(at+5, left+2, 0)
		at, left = at+10, left-10
	}
	f.hears(0, 100, 0)
	f.hears(100, 2700, 0)
	for again := range 2 {
		for i := range 8 {
			if !f.isWindow() {
				t.Fatalf("time %d: after %d rises it is taken for a bucket", again+1, i)
			}
			rises()
		}
		if f.isWindow() {
			t.Fatalf("time %d: after 8 rises it is taken for a window", again+1)
		}
		f.be(&f.window)
	}
}
