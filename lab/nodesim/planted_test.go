package nodesim_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/overlay"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// faultAtWork is the environment variable with the number of the fault that is at work, from 1 on.
const faultAtWork = "PACELINE_PLANTED"

// TestMain runs the search for one fault in place of the tests where the environment has faultAtWork.
func TestMain(m *testing.M) {
	if number, err := strconv.Atoi(os.Getenv(faultAtWork)); err == nil {
		if err := json.NewEncoder(os.Stdout).Encode(faults[number-1].find()); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

// search is the result of one aim while a fault is at work.
type search struct {
	Runs, Found, Refused int
	Ended                []time.Duration // the runs, by seed: each at its find, or at its end
}

// run is the run of an aim with a seed.
func (a aim) run(seed uint64) nodesim.Config {
	c := base(rolling(20, time.Second), 3+int(seed%4), 7000+seed)
	c.Way, c.StoreWay = sharp, near
	a(&c)
	return c
}

// isWrong tells whether the fault shows in a run.
func (p *planted) isWrong(r *nodesim.Report) bool {
	if p.wrong != nil {
		return p.wrong(r)
	}
	return r.Refused > 0
}

// find makes the runs of each aim while the fault is at work. A run ends at the first find. So do the
// runs, without PACELINE_LONG.
func (p *planted) find() (all []search) {
	for _, aim := range p.aims {
		var s search
		for seed := uint64(0); seed < 12 && (s.Found == 0 || long); seed++ {
			c := aim.run(seed)
			c.Until = p.isWrong
			r := nodesim.Run(c)
			s.Runs, s.Ended = s.Runs+1, append(s.Ended, r.Ended)
			if p.isWrong(r) {
				s.Found++
				s.Refused += r.Refused
			}
		}
		all = append(all, s)
	}
	return all
}

// took is how long the runs of all aims took together.
func took(all []search) (sum time.Duration) {
	for _, s := range all {
		for _, ended := range s.Ended {
			sum += ended
		}
	}
	return sum
}

// plantedBinary returns a binary of these tests that has all faults in it.
func plantedBinary(t *testing.T) string {
	b := overlay.Builder{Root: filepath.Join("..", ".."), Work: t.TempDir()}
	b.Flags = cmp.Or(os.Getenv("GOFLAGS"), "-buildvcs=false")
	build, err := plant(&b, "internal/core/node", faults)
	if err != nil {
		t.Fatalf("the law changed here: renew the planted fault\n%v", err)
	}
	binary, err := build.Tests(t.Context(), "lab/nodesim")
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// searched is what the runs find while the fault with this number is at work in a program of plantedBinary.
func searched(t *testing.T, binary string, number int) (all []search) {
	c := exec.CommandContext(t.Context(), binary)
	c.Env = append(os.Environ(), overlay.AtWork(number), fmt.Sprintf("%s=%d", faultAtWork, number))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", faults[number-1].name, err, out)
	}
	return all
}

// soon is the longest that the runs of a fault which is not late take until it shows.
const soon = 2 * time.Minute

// Each planted fault is found, by runs that are aimed at it, in which nothing is wrong without it. `./check` has the
// faults that show soon. It looks at what is right for as long as the fault took to show; CI for whole runs, two at least.
func TestFaultsAreFound(t *testing.T) {
	binary := plantedBinary(t)
	found := make([][]search, len(faults))
	onAll(len(faults), func(i int) func() {
		if need.Whole() || !faults[i].late {
			found[i] = searched(t, binary, i+1)
		}
		return nil
	})
	var runs []nodesim.Config
	var of []*planted
	for i, all := range found {
		p := &faults[i]
		if took := took(all); !long && all != nil && took <= soon == p.late {
			t.Errorf("%s: it shows after %v, and late is %v", p.name, took, p.late)
		}
		for k, s := range all {
			t.Logf("%-30s found in %d of %d runs, %d refused", p.name, s.Found, s.Runs, s.Refused)
			if s.Found == 0 {
				t.Errorf("%s: not found: %s", p.name, p.means)
			}
			for seed := range uint64(s.Runs + s.Runs%2) {
				c := p.aims[k].run(seed)
				if !need.Whole() {
					if int(seed) == s.Runs {
						break
					}
					c.Length = s.Ended[seed]
				}
				runs, of = append(runs, c), append(of, p)
			}
		}
	}
	each(runs, func(i int, r *nodesim.Report) {
		if p := of[i]; p.isWrong(r) {
			t.Errorf("%s: without it %d of %d are refused, and of %d answers %d are told, seed %d",
				p.name, r.Refused, r.Sent, r.Answered, r.Told, runs[i].Seed)
		}
	})
}
