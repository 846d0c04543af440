package compare_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit/mono"
)

// halver is a strategy of one's own: the threads of a process share a sleep, which a limit doubles and a success makes a hundredth
// shorter.
type halver struct{ sleep time.Duration }

func (h *halver) Thread(rng *rand.Rand) strategy.Thread { return &halverThread{h, rng} }

type halverThread struct {
	*halver
	rng *rand.Rand // owned by the simulator, so that every run can be repeated
}

func (h *halverThread) Send(now mono.Time) mono.Time {
	return now.Add(h.sleep + time.Duration(0.1*h.rng.Float64()*float64(h.sleep)))
}

func (h *halverThread) Answer(_ mono.Time, a strategy.Answer) {
	if a.Limited {
		h.sleep = min(max(2*h.sleep, time.Second), time.Hour)
	} else {
		h.sleep -= h.sleep / 100
	}
}

func (h *halverThread) Sleep() time.Duration { return h.sleep }

// A strategy of one's own in the comparison, beside the best that was published: ten clients that start at once at an empty bucket.
// Without Only it runs in all scenarios, which are those of paceline-lab sim throttle.
func Example() {
	own := strategy.Strategy{Name: "halver", New: func(p strategy.Params) (strategy.Process, error) {
		return &halver{sleep: p.Start}, p.Check("halver")
	}}
	table, err := compare.Run(context.Background(), compare.Config{
		Strategies: []strategy.Strategy{own},
		Against:    []string{"exponential-increase-proportional-remaining-decrease", "exponential-backoff"},
		Only:       "cold-10",
		FirstSeed:  1001, // not those that it was tuned on
		Seeds:      3,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	table.Wall = 0 // which is never the same
	if err := table.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// clients that share a quota; median and worst of the seeds; our strategy is "halver"
	// exp: exponential, inc: increase, prop: proportional, rem: remaining, dec: decrease
	//
	// cold-10: 10 clients, 30 min, 3 seeds, optimum sleep 8.0 s
	//   strategy              limited %    max sleep s  sd       CV %         unused %
	//   halver                7.13/8.38    74/219       263/327  116.1/144.3  0.2/0.2
	//   exp-inc-prop-rem-dec  3.25/3.56    20/21        78/99    35.2/44.7    0.2/0.3
	//   exponential-backoff   81.71/82.27  57/347       157/447  16.9/41.6    0.0/0.0
	//
	// 4.5 virtual hours in 0.0 s
}
