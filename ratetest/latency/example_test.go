package latency_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
)

// The latencies of a path, by the names that every flag of paceline reads. A recording is a file with
// a duration a line.
func ExampleParse() {
	rng := rand.New(rand.NewPCG(1, 2))
	l, err := latency.Parse("uniform:10ms-50ms", nil)
	if err != nil {
		fmt.Println(err, latency.Forms)
		return
	}
	d := l.Draw(rng)
	fmt.Println(l, d >= 10*time.Millisecond && d <= 50*time.Millisecond)

	open := func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12ms\n20ms\n")), nil }
	recorded, err := latency.Parse("recorded:ping.txt", open)
	fmt.Println(recorded.Min(), err)
	// Output:
	// uniform:10ms-50ms true
	// 12ms <nil>
}

// Laws in source code. Max is what a limiter's OneWayMax may promise, where there is one.
func ExampleLaw() {
	measured, err := latency.Recorded("ping", []time.Duration{12 * time.Millisecond, 20 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range []latency.Law{
		latency.Constant(20 * time.Millisecond),
		latency.Bimodal(20*time.Millisecond, 220*time.Millisecond, 0.05), // one in twenty is sent again
		latency.Lognormal(20*time.Millisecond, 80*time.Millisecond),
		latency.Exponential(5*time.Millisecond, 15*time.Millisecond),
		latency.Pareto(10*time.Millisecond, 2),
		measured,
	} {
		largest, ok := l.Max()
		fmt.Println(l, "at most", largest, ok)
	}
	// Output:
	// constant:20ms at most 20ms true
	// bimodal:20ms,220ms@0.05 at most 220ms true
	// lognormal:20ms,p99=80ms at most 0s false
	// exponential:5ms+15ms at most 0s false
	// pareto:10ms,2 at most 0s false
	// recorded:ping at most 20ms true

}
