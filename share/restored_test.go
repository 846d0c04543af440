package share_test

import (
	"testing"

	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// A store goes back in time: the smallest store that does.
func TestRestored(t *testing.T) {
	t.Parallel()
	s := new(sharetest.Memory)
	sharetest.Restored(t, func(*testing.T) share.Store { return s }, func(*testing.T) func() { return s.Save() })
}
