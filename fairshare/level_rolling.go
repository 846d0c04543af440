package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// rollingLevel reads what remains of a rolling window, of L per T. The window gives back what was
// taken a window ago. A burst would come again in every window, for ever, so there must be none.
// All pace themselves so that a reserve is left, and go slower below it:
//
//	r(N) = 3 + b·ln(1000/N)
//
// The amount above it is used only if nobody wanted it for a whole window, and then little by
// little.
type rollingLevel struct {
	limit  float64 // L
	length float64 // T, in seconds

	part  [rollingParts]float64 // the least amount that was left, for each part of the last window
	rate  [rollingParts]float64 // the rate at which all took, for each part
	took  float64               // the amount that all took in the present part
	time  float64               // the time over which took was counted, in seconds
	at    int64                 // the number of the present part
	since int64                 // the number of the part in which this process began to look
	last  sighting              // the latest sighting; seq 0: none
}

const (
	rollingParts = 16
	rollingLeast = 3.0
	rollingMost  = 1000.0
	rollingUse   = 1.5   // the part of the amount above the reserve that is used
	rollingSlope = 0.004 // b, of L
	rollingMeet  = 0.03  // κ is small: the remainder is a sum over a window, and reacts late
	// But many sharers learn so rarely that they would not meet: from 13 on κ is n over this.
	rollingMany  = 450.0
	rollingMeets = 0.11 // at most
	rollingFirst = 0.01 // κ in the first window, towards a fixed N: the remainder says nothing yet
	rollingAlone = 3.0  // the least n for which this is done
	rollingSure  = 10.0 // the b from which on the remainder shows N to within a factor of a few
	rollingTrust = 0.3
	rollingPrior = 1.0 // in units of this process; with 2, a process alone leaves 3 % unused
	rollingNews  = 20.0
)

func newRollingLevel(units float64, length time.Duration) rollingLevel {
	w := rollingLevel{limit: units, length: length.Seconds()}
	for i := range w.part {
		w.part[i] = math.Inf(1)
	}
	return w
}

func (w *rollingLevel) slot(at int64) int64 {
	return ((at % rollingParts) + rollingParts) % rollingParts
}

func (w *rollingLevel) reserve(shares float64) (r, slope float64) {
	slope = rollingSlope * w.limit
	return rollingLeast + slope*math.Log(rollingMost/shares), slope
}

func (w *rollingLevel) look(f *Fair, s *sighting) {
	at := int64(math.Floor(float64(s.mid) / 1e9 / w.length * rollingParts))
	if w.last.seq == 0 {
		// Consumption before the first sighting is assumed to be even.
		for i := range w.rate {
			w.rate[i] = max(0, w.limit-s.left) / w.length
		}
		w.at, w.since = at, at
	} else if dt := s.mid.Sub(w.last.mid).Seconds(); dt > 0 {
		w.took += max(0, w.last.left-s.left+w.rate[w.slot(w.at)]*dt)
		w.time += dt
	}
	if at > w.at {
		w.turn(at, s.left)
	}
	if k := w.slot(w.at); !s.limited || s.none {
		w.part[k] = min(w.part[k], s.left)
	}
	w.last = *s
}

// turn ends the present part. The rates of a whole window are scaled to its content, so that errors
// in them do not add up.
func (w *rollingLevel) turn(at int64, left float64) {
	mean := w.took / max(w.time, 1e-9)
	for i := w.at; i < min(at, w.at+rollingParts); i++ {
		w.rate[w.slot(i)] = mean
	}
	sum := 0.0
	for _, r := range w.rate {
		sum += r * w.length / rollingParts
	}
	if sum > 0 {
		by := min(max((w.limit-left)/sum, 0.5), 2)
		for i := range w.rate {
			w.rate[i] *= by
		}
	}
	for i := max(w.at+1, at-rollingParts+1); i <= at; i++ {
		w.part[w.slot(i)] = math.Inf(1)
	}
	w.at, w.took, w.time = at, 0, 0
}

// least returns the least amount that was left in the last window, and whether all of it was
// watched.
func (w *rollingLevel) least() (m float64, whole bool) {
	m = math.Inf(1)
	for _, p := range w.part {
		m = min(m, p)
	}
	return m, w.at-w.since > rollingParts
}

func (w *rollingLevel) stand(f *Fair, s *sighting) stand {
	r, slope := w.reserve(f.shares())
	st := stand{gap: min(0, s.left-r), slope: slope, stretch: w.limit / max(w.limit-r, w.limit/2),
		meet: min(max(rollingMeet, f.shares()/rollingMany), rollingMeets), sure: slope > rollingSure}
	m, whole := w.least()
	switch {
	case !whole && s.left > r:
		st.price, st.meet = math.Log(assumedSharers), rollingFirst
		if f.n < rollingAlone {
			st.slope = 0
		}
		return st
	case whole && m > r:
		st.stretch /= 1 + rollingUse*(m-r)/w.limit
	}
	st.price = min(max(math.Log(rollingMost)-(min(m, s.left)-rollingLeast)/slope, 0), math.Log(windowMost))
	return st
}

func (w *rollingLevel) taken(_ *Fair, from, to *sighting) (float64, bool) {
	// Part by part, since rates are known by parts.
	back, length := 0.0, w.length/rollingParts
	begin, end := float64(from.mid)/1e9, float64(to.mid)/1e9
	for t := begin; t < end; {
		part := math.Floor(t / length)
		next := min((part+1)*length, end)
		if next <= t {
			break
		}
		back += w.rate[w.slot(int64(part))] * (next - t)
		t = next
	}
	return from.left - to.left + back, end-begin < w.length
}

func (w *rollingLevel) newcomer(f *Fair, s *sighting) float64 { return assumedSharers }

func (w *rollingLevel) prior() float64 { return rollingPrior }

func (w *rollingLevel) trust(float64) float64 { return rollingTrust }

func (w *rollingLevel) news() float64 { return rollingNews }

func (w *rollingLevel) adjust(_ *Fair, _ *sighting, next mono.Time) mono.Time { return next }

func (w *rollingLevel) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	f.bucket.refused(f, now, s, retryAfter)
}
