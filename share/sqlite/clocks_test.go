package sqlite

import (
	"strings"
	"testing"
)

// A row put by a process of the same start of the machine, by a clock with another zero, is
// refused. A row of another start is lost, and replaced.
func TestSameClock(t *testing.T) {
	here := "6b1ff9a0-0000-4000-8000-000000000001"
	s := &Store{file: "limits.db", boot: here + " time:[4026532000]"}
	for boot, refused := range map[string]bool{s.boot: false, here: true, here + " time:[4026531834]": true, "6b1ff9a0-0000-4000-8000-000000000002": false, "": false} {
		err := s.sameClock(boot)
		if (err != nil) != refused {
			t.Errorf("%q: %v", boot, err)
		}
		if err != nil && !(strings.Contains(err.Error(), "another time namespace") && strings.Contains(err.Error(), boot) && strings.Contains(err.Error(), s.boot)) {
			t.Errorf("it does not name both: %v", err)
		}
	}
}
