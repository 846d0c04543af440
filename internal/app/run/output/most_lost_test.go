package output

import (
	"fmt"
	"testing"

	"github.com/paceline-go/paceline/internal/app/journal"
)

// Behind the last request of which it is known that it was sent, mostLost are named.
func TestMostLost(t *testing.T) {
	l := lostEnd{Found: true}
	l.Passed()
	h := &journal.History{Doubts: map[string]struct{}{"known": {}}}
	named := 0
	for i := range 3 * MostLost {
		if l.MayHave(fmt.Sprint(i), h) {
			named++
		}
	}
	if named != MostLost || !l.MayHave("known", h) || !l.MayHave("next", h) {
		t.Errorf("%d are named", named)
	}
}
