package boottime

import (
	"runtime"
	"testing"
	"time"
)

// Readings of one boot go on, as Go's clock does while nothing sleeps, and say which boot that is.
func TestRead(t *testing.T) {
	began := time.Now()
	a := Read()
	for time.Since(began) < 5*time.Millisecond {
	}
	passed := time.Since(began)
	b := Read()
	if a.Boot != b.Boot || (a.Boot == "") != (runtime.GOOS != "linux" && runtime.GOOS != "darwin") {
		t.Errorf("boots %q, %q", a.Boot, b.Boot)
	}
	for _, d := range []time.Duration{b.Up - a.Up, b.Awake - a.Awake} {
		if d < 4*time.Millisecond || d > passed+time.Second {
			t.Errorf("%v passed in %v", d, passed)
		}
	}
	if slept := b.Slept(a); slept < -time.Second || slept > time.Second || a.Awake > a.Up {
		t.Errorf("slept %v; %+v", slept, a)
	}
	if slept := (Reading{Up: 10, Awake: 4}).Slept(Reading{Up: 3, Awake: 2}); slept != 5 {
		t.Errorf("slept %d of 7", slept)
	}
}
