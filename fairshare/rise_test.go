package fairshare

import (
	"math"
	"testing"

	"github.com/paceline-go/paceline/limit/mono"
)

// In an empty bucket N sharers keep 3·ln(50/N) tokens at first, and evenly more until they keep the
// whole reserve. That takes 8.5 times the reserve of one sharer. N is read from the reserve at any
// time. In a small bucket it is less, and sooner.
func TestReserveRises(t *testing.T) {
	c := hourly
	c.Kind = TokenBucket
	for _, test := range []struct {
		capacity int64
		ends     float64 // in seconds, each of which gives a token
		first    float64 // of ten
		whole    float64
	}{{4500, 1375, 4.83, 120.33}, {40, 255, 0.895, 30 * (0.35 + 0.65*120.33/161.77)}} {
		c.Capacity = test.capacity
		f := fairOf(t, c)
		b := &f.bucket
		b.begin(f, &sighting{left: 0.5})
		for part, keep := range map[float64]float64{0: test.first, 0.5: (test.first + test.whole) / 2, 1: test.whole, 2: test.whole} {
			s := &sighting{sent: sent{at: second(part * test.ends)}}
			if r, _ := b.kept(10, b.missing(f, s)); math.Abs(r-keep) > 0.05 {
				t.Errorf("after %v of the time ten keep %.2f of a bucket of %d, want %.2f", part, r, test.capacity, keep)
			}
			for _, n := range []float64{2, 10, 30} {
				f.n = n
				s.left, _ = b.kept(n, b.missing(f, s))
				if st := b.stand(f, s); math.Abs(st.gap) > 1e-9 || math.Abs(math.Exp(st.price)-n) > 1e-6 {
					t.Errorf("after %v of the time %.2f are left of %d, are %.2f too many, and are read as of %.2f sharers, not %v",
						part, s.left, test.capacity, st.gap, math.Exp(st.price), n)
				}
			}
		}
	}
}

// A newcomer to an empty bucket begins with the others that find it so. A later one finds out
// nearly how far they are, and assumes less. One that finds as much as 1,500 sharers would keep, or
// more, takes it for a reserve. So does one that comes when the reserve is there.
func TestNewcomersToARise(t *testing.T) {
	c := hourly
	c.Kind = TokenBucket
	first := fairOf(t, c)
	first.bucket.begin(first, &sighting{left: 0.5})
	at := func(seconds float64) *sighting { return &sighting{sent: sent{at: second(seconds)}} }
	for _, seconds := range []float64{0, 100, 250} {
		f, s := fairOf(t, c), at(seconds)
		s.left, _ = first.bucket.kept(9.5, first.bucket.missing(first, s))
		f.bucket.begin(f, s)
		f.bucket.begin(f, at(seconds+1)) // only the first answer counts
		if own, theirs := f.bucket.missing(f, s), first.bucket.missing(first, s); own < theirs-1e-6 || own > theirs+0.06 {
			t.Errorf("after %v s %.3f are missing, and a newcomer believes %.3f", seconds, theirs, own)
		}
	}
	for _, left := range []float64{30.2, 100, 3600} {
		f, s := fairOf(t, c), at(10)
		s.left = left
		if f.bucket.begin(f, s); f.bucket.missing(f, s) > 0 {
			t.Errorf("a newcomer who finds %v believes that it is not all", left)
		}
	}
	f, s := fairOf(t, c), at(10)
	if f.bucket.missing(f, s) > 0 {
		t.Error("before any answer something is missing")
	}
	f.bucket.begin(f, s)
	if ends := f.bucket.rise.ends; ends < second(1300) || ends == mono.Max {
		t.Errorf("who finds nothing is there at %v", ends)
	}
}
