package sim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
)

// Nobody is refused, whatever comes of the prompts; who reserves what they may come to takes twice as long, and who reserves nothing
// and looks only at what has been settled is refused.
func TestLLMProduced(t *testing.T) {
	run := func(c sim.LLMProduced) sim.LLMProducedTally {
		t.Helper()
		c.Way = 20 * time.Millisecond
		got, err := c.Run()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	produced := func(v int64) limit.Limiter {
		return must(limit.NewProduced(limit.ProducedConfig{Limit: 8000, Window: time.Minute, PerSecond: v}))
	}
	for _, outputs := range []sim.LLMOutputs{sim.Short, sim.Longest, sim.Bimodal, sim.Growing} {
		for _, speed := range []int64{60, 150, 500} {
			for _, most := range []int64{4096, 20_000} {
				if got := run(sim.LLMProduced{Limiter: produced(0), Outputs: outputs, PerSecond: speed, MaxTokens: most}); got.Rejected > 0 {
					t.Errorf("%v, %d a second, %d at most: %+v", outputs, speed, most, got)
				}
			}
		}
	}
	if got := run(sim.LLMProduced{Limiter: produced(0)}); got.End > 40*time.Second || got.Ideal != 32*time.Second {
		t.Errorf("%+v", got)
	}
	if got := run(sim.LLMProduced{Limiter: produced(0), Prompts: 400}); got.Steady < 0.95 || got.Rejected > 0 {
		t.Errorf("%+v", got)
	}
	if got := run(sim.LLMProduced{Limiter: produced(-1)}); got.End > time.Minute || got.Rejected > 0 {
		t.Errorf("whatever the speed: %+v", got)
	}
	reserved := must(limit.NewBucket(limit.BucketConfig{Limit: 8000, Window: time.Minute, Unit: limit.Output}))
	if got := run(sim.LLMProduced{Limiter: reserved}); got.End < time.Minute || got.Rejected > 0 {
		t.Errorf("reserved: %+v", got)
	}
	if got := run(sim.LLMProduced{Limiter: produced(20), Prompts: 400, Outputs: sim.Bimodal}); got.Rejected == 0 {
		t.Errorf("a speed that is far too low: %+v", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
