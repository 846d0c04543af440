package histogram

import (
	"slices"
	"time"
)

const (
	// recent is how many durations a Recent keeps. The rarest twentieth of 64 are 3.
	recent = 64
	// rarest is the most ranks from the top that p95 looks at.
	rarest = (recent + 1) / 20
)

// Recent keeps the latest 64 durations, and knows which of them 95 % do not exceed. After a change
// it knows the new value within as many durations. It takes 544 bytes. The zero value is empty. Not
// safe for concurrent use.
type Recent struct {
	all [recent]time.Duration
	n   uint64 // how many were added
	p95 time.Duration
}

// Add takes in a duration in place of the oldest. A negative one counts as 0.
func (r *Recent) Add(d time.Duration) {
	d = max(d, 0)
	slot := &r.all[r.n%recent]
	old := *slot
	*slot = d
	r.n++
	// If the new and the oldest duration are on one side of p95, its rank stays the same.
	if r.n > recent && (d == old || d < r.p95 && old < r.p95 || d > r.p95 && old > r.p95) {
		return
	}
	r.p95 = r.fromTop(rank(min(r.n, recent)))
}

// rank returns the place, from the top, of the duration that one in twenty of all future ones is
// expected to exceed. It is at least the second of several, since the first answer of a host often
// includes the connection.
func rank(n uint64) int { return min(max(int(n+1)/20, 2), int(n)) }

// fromTop returns the k-th longest duration. k is at most rarest.
func (r *Recent) fromTop(k int) time.Duration {
	var top [rarest]time.Duration // the longest, in falling order
	for _, d := range r.all[:min(r.n, recent)] {
		for i := range k {
			if d > top[i] {
				d, top[i] = top[i], d
			}
		}
	}
	return top[k-1]
}

// Within returns how long before its end an answer must be asked for, if it is of use for whole. It
// is what 95 % of those answers did not exceed that took less than whole. The others are late
// whenever they are asked for. If they are more than half, usual is false, and d is the shortest
// time that is less than whole; 0: there is none.
func (r *Recent) Within(whole time.Duration) (d time.Duration, usual bool) {
	if r.p95 < whole {
		return r.p95, true
	}
	var sorted [recent]time.Duration
	all := sorted[:copy(sorted[:], r.all[:min(r.n, recent)])]
	slices.Sort(all)
	n, _ := slices.BinarySearch(all, whole)
	switch {
	case n == 0:
		return 0, false
	case 2*n < len(all):
		return all[0], false
	}
	return all[n-rank(uint64(n))], true
}

// P95 returns the duration that 95 % of the answers are expected not to exceed. It is 0 if there
// are none.
func (r *Recent) P95() time.Duration { return r.p95 }
