package limit

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// The refusals have nothing to do with the rate in two cases. An eighth of the once accepted cost
// has been kept for the third time. Or, with one request at a time, 64 were kept. Neither holds if
// more than a tenth of the served requests is refused.
func TestDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		n, kept int64 // kept before each refusal
		served  int   // in all
		want    []bool
	}{
		"an eighth":                     {10, 10, 1000, []bool{false, false, true, true}},
		"more than an eighth":           {11, 11, 1000, []bool{false, false, false, false}},
		"not kept to":                   {10, 9, 1000, []bool{false, false, false, false}},
		"a tenth is refused":            {10, 10, 30, []bool{false, false, true, false}},
		"more than a tenth is refused":  {10, 10, 29, []bool{false, false, false, false}},
		"one after 64":                  {1, 64, 1000, []bool{true, true}},
		"one after 63":                  {1, 63, 1000, []bool{false, false}},
		"one after 64, a tenth refused": {1, 64, 10, []bool{true, false}},
		"one after 64, more refused":    {1, 64, 9, []bool{false, false}},
		"two, kept to as one would be":  {2, 64, 1000, []bool{false, false, true}},
	} {
		d := doubt{served: c.served}
		d.refuses(100, 80) // the first refusal, after 80 had been accepted
		d.refused = 0
		var got []bool
		for range c.want {
			d.kept = c.kept
			got = append(got, d.refuses(c.n, 5))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	d := doubt{most: 80, served: 1000, kept: 30}
	for range 3 {
		if d.refuses(10, 5) {
			t.Error("what was kept to once counts for each refusal")
		}
	}
}

// While refusals are no evidence, three of them mean nothing. Nor do more, up to a tenth of the
// served requests. Afterwards they are evidence again.
func TestDisbelief(t *testing.T) {
	f := fit{doubt: doubt{deaf: mono.Time(time.Minute)}}
	disbelieves := func(now time.Duration, want bool) {
		t.Helper()
		if got := f.disbelieves(mono.Time(now)); got != want {
			t.Errorf("at %v, %d refused and %d served: %v", now, f.doubt.refused, f.doubt.served, got)
		}
	}
	for range 3 {
		disbelieves(time.Second, true)
	}
	disbelieves(time.Second, false)
	for range 20 {
		f.serve(0, 1)
	}
	disbelieves(time.Second, true) // 5 of 25
	disbelieves(time.Second, false)
	f.doubt = doubt{deaf: f.deaf}
	disbelieves(time.Minute-1, true)
	disbelieves(time.Minute, false)
}
