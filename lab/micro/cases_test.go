package micro

import (
	"testing"
	"time"
)

// BenchmarkCases is the table as benchmarks, each by itself.
func BenchmarkCases(b *testing.B) {
	for _, c := range Cases() {
		b.Run(c.Group+"/"+c.String(), func(b *testing.B) {
			run := c.Run()
			run(1)
			b.ReportAllocs()
			b.ResetTimer()
			took := run(b.N)
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
		})
	}
}

// TestCases runs every case but for a moment: those that are not about what they say panic.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if name := c.Group + c.String(); seen[name] {
			t.Errorf("%s: twice", name)
		} else {
			seen[name] = true
		}
		if c.Group == Cold || c.N > 6000 {
			continue // seconds to set up
		}
		run := c.Run()
		for range 2 {
			if d := run(256); d <= 0 || d > time.Minute {
				t.Errorf("%s, %v: 256 operations took %v", c.Group, c, d)
			}
		}
	}
}

func TestHoldings(t *testing.T) {
	for i, h := range Holdings() {
		if i == 0 != (h.Bytes == 0) || h.Touched > h.Bytes && i > 0 {
			t.Errorf("%+v", h)
		}
	}
}
