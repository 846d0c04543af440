package nodesim_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// What more nodes cost is a table of docs/machines.md: at 1,000 a second, where all want all. PACELINE_LONG=1 has all of its rows but the last.
func TestCostOfNodes(t *testing.T) {
	race.Without(t) // one goroutine races with nobody
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once")
	}
	page, err := os.ReadFile("../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	counts := []int{8} // the last row takes a quarter of an hour: put 1000 here to measure it
	if long {
		counts = []int{8, 64, 250}
	}
	for _, n := range counts {
		c := base(rolling(1000, time.Second), n, 1)
		c.Rested, c.Later, c.LaterAt = true, 3, 5*time.Second
		c.Warm, c.Length = 10*time.Second, 20*time.Second
		one, r := nodesim.Alone(c), nodesim.Run(c)
		slices.Sort(r.Firsts)
		first := "none in 15 s"
		if len(r.Firsts) == c.Later {
			first = fmt.Sprintf("%.2f s", r.Firsts[c.Later-1].Seconds())
		}
		row := fmt.Sprintf("| %d | %.0f %% | %.2f | %.1f | %.2f | %.0f | %s |", n, 100*r.Rate/one.Rate, r.Jain(), float64(r.Tries)/float64(r.Turns),
			2*float64(r.Tries)/float64(r.Sent), 2*float64(r.Tries)/(c.Length-c.Warm).Seconds(), first)
		if r.Refused > 0 || !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("%d refused; the row that docs/machines.md does not have:\n%s", r.Refused, row)
		}
	}
}
