package histogram

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts durations in classes less than 1 % wide: 128 between a power of two and the
// next. The zero value is empty. Not safe for concurrent use.
type Histogram struct {
	classes []uint64
	n       uint64
	sum     float64
}

// Add counts a duration. A negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	if h.classes == nil {
		h.classes = make([]uint64, 64*128)
	}
	h.n++
	h.sum += float64(max(d, 0))
	h.classes[classOf(d)]++
}

func classOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 256 {
		return int(v)
	}
	shift := bits.Len64(v) - 8
	return shift<<7 + int(v>>shift) // v>>shift is from 128 to 255
}

// middle returns the middle of a class.
func middle(class int) time.Duration {
	if class < 256 {
		return time.Duration(class)
	}
	shift := class>>7 - 1
	return time.Duration(uint64(class&127|128)<<shift + 1<<shift/2)
}

// N returns the number of durations.
func (h *Histogram) N() uint64 { return h.n }

// Mean returns the mean of the durations. It is 0 if there are none.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.n))
}

// Quantile returns the duration that a fraction p of all durations does not exceed, exact to 0.5 %.
// It is 0 if there are none.
func (h *Histogram) Quantile(p float64) time.Duration {
	rank := uint64(math.Ceil(p * float64(h.n)))
	for class, n := range h.classes {
		if n >= rank && n > 0 {
			return middle(class)
		}
		rank -= min(n, rank)
	}
	return 0
}

// AgeQuantile takes the durations as times between events that follow each other. It returns the age that the latest
// event does not exceed for a fraction p of all time. It is 0 if there are none.
func (h *Histogram) AgeQuantile(p float64) time.Duration {
	// Within a time d between two events, the age is at most a for min(a, d). So the answer is the a for which
	// the sum of min(a, d) is p of the sum of d. passed is that sum for the durations below a class.
	total, passed, longer := 0.0, 0.0, float64(h.n)
	for class, n := range h.classes {
		total += float64(n) * float64(middle(class))
	}
	for class, n := range h.classes {
		if n == 0 {
			continue
		}
		if d := float64(middle(class)); passed+longer*d >= p*total {
			return time.Duration((p*total - passed) / longer)
		}
		passed += float64(n) * float64(middle(class))
		longer -= float64(n)
	}
	return 0
}

// Clone returns a copy.
func (h *Histogram) Clone() *Histogram {
	c := new(Histogram)
	c.merge(h)
	return c
}
