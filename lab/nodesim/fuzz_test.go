package nodesim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/nodesim"
)

// FuzzLaw looks for what befalls, by chance, in which a window overflows.
func FuzzLaw(f *testing.F) {
	f.Add(uint64(1000))
	f.Add(uint64(1001))
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := storm(seed)
		c.Length = 60 * time.Second
		if r := nodesim.Run(c); r.Refused > 0 {
			t.Errorf("%d of %d refused: %d nodes, %+v", r.Refused, r.Sent, c.Nodes, c.Trouble)
		}
	})
}
