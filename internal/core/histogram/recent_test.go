package histogram_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
)

// The 95th percentile is that of a sort of the latest 64, whatever came before.
func TestRecent(t *testing.T) {
	var r histogram.Recent
	if r.P95() != 0 {
		t.Fatalf("empty, but P95 is %v", r.P95())
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for n := range 5000 {
		d := time.Duration(rng.ExpFloat64()*float64(time.Second)) >> (n / 300 % 4) // the scale changes
		if n%7 == 0 {
			d = time.Second // equal durations
		}
		all = append(all, d)
		r.Add(d)
		last := slices.Clone(all[max(0, len(all)-64):])
		slices.Sort(last)
		rank := min(max((len(last)+1)/20, 2), len(last))
		if want := last[len(last)-rank]; r.P95() != want {
			t.Fatalf("after %d durations P95 is %v, want %v", n+1, r.P95(), want)
		}
		whole := time.Duration(rng.ExpFloat64() * float64(time.Second))
		short := slices.Clone(last)
		short = slices.DeleteFunc(short, func(d time.Duration) bool { return d >= whole })
		want, usual := time.Duration(0), 2*len(short) >= len(last)
		switch {
		case r.P95() < whole:
			want = r.P95()
		case usual && len(short) > 0:
			want = short[len(short)-min(max((len(short)+1)/20, 2), len(short))]
		case len(short) > 0:
			want = short[0]
		}
		if got, is := r.Within(whole); got != want || is != usual {
			t.Fatalf("after %d durations those within %v take %v (%v), want %v (%v)", n+1, whole, got, is, want, usual)
		}
	}
	r.Add(-time.Hour) // a clock that went back
	if r.P95() < 0 {
		t.Errorf("P95 is %v", r.P95())
	}
}

// Of answers of one law, 95 % are no longer than the P95 of those before.
func TestRecentIsExceededByOneInTwenty(t *testing.T) {
	var r histogram.Recent
	rng := rand.New(rand.NewPCG(3, 4))
	longer, n := 0, 20_000
	for i := range n {
		d := time.Duration(rng.Int64N(1e9) + rng.Int64N(1e9))
		if i >= 64 && d > r.P95() {
			longer++
		}
		r.Add(d)
	}
	if share := float64(longer) / float64(n); share > 0.05 || share < 0.04 {
		t.Errorf("%.3f of all answers were longer", share)
	}
}

// One outlier says nothing, and a host that is quick again is known as quick after 64 answers.
func TestRecentForgets(t *testing.T) {
	var r histogram.Recent
	r.Add(3 * time.Second) // with the connection
	r.Add(50 * time.Millisecond)
	if r.P95() != 50*time.Millisecond {
		t.Errorf("the first answer alone makes P95 %v", r.P95())
	}
	for range 64 {
		r.Add(2 * time.Second)
	}
	for range 62 {
		r.Add(50 * time.Millisecond)
	}
	if r.P95() != 50*time.Millisecond {
		t.Errorf("62 quick answers, but P95 is %v", r.P95())
	}
}

func BenchmarkRecent(b *testing.B) {
	var r histogram.Recent
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]time.Duration, 1<<12)
	for i := range all {
		all[i] = time.Duration(rng.ExpFloat64() * 1e9)
	}
	for i := 0; b.Loop(); i++ {
		r.Add(all[i%len(all)])
	}
}
