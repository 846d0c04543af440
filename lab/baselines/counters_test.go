package baselines

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

const second = mono.Time(time.Second)

// slotRing is the document's counter: slot (t/precision) mod N, emptied as time comes round to it, and a running total.
type slotRing struct {
	slots     []int64
	precision mono.Time
	at        int64 // slot of the last event, not yet modulo N
	total     int64
}

func newSlotRing(n int, precision mono.Time) *slotRing {
	return &slotRing{slots: make([]int64, n), precision: precision}
}

func (r *slotRing) add(now mono.Time, n int64) int64 {
	at := int64(now / r.precision)
	for i := max(r.at, at-int64(len(r.slots))) + 1; i <= at; i++ {
		place := i % int64(len(r.slots))
		r.total -= r.slots[place]
		r.slots[place] = 0
	}
	r.at = max(r.at, at)
	r.slots[at%int64(len(r.slots))] += n
	r.total += n
	return r.total
}

// mostInASecond is the most events that a counter, kept at 300, lets into one closed second if a
// client asks at the last instant of a slot of 0.1 s, and every millisecond after that.
func mostInASecond(add func(now mono.Time, n int64) int64) int {
	const limit, begin = 300, 100*second/1000 - 1
	type admitted struct {
		at mono.Time
		n  int
	}
	var log []admitted
	for now := mono.Time(begin); now < 3*second; now += mono.Time(time.Millisecond) {
		n := 0
		for ; add(now, 0)+1 <= limit; n++ {
			add(now, 1)
		}
		log = append(log, admitted{now, n})
	}
	most := 0
	for i := range log {
		sum := 0
		for _, e := range log[i:] {
			if e.at-log[i].at > second {
				break
			}
			sum += e.n
		}
		most = max(most, sum)
	}
	return most
}

// counters is the article about counting recent events, for trading.
func counters(*run, *Page) (Document, error) {
	d := Document{Name: "rolling counters for trading",
		About: "The second half of an article has three counters: a map of events that is summed up each time, a queue " +
			"with a running total, and a ring of slots. It has the output of two examples and no measurement. We " +
			"played the examples through the counters of package window, and through a ring built as described. Our " +
			"benchmarks stand with their date and command, on one shared core."}
	for _, claim := range []func() (Claim, error){sampleRun, unasked, slotExample, slotSum, shorterWindow, memory} {
		c, err := claim()
		if err != nil {
			return d, err
		}
		d.Claims = append(d.Claims, c)
	}
	d.Claims = append(d.Claims, average(), bigJump(), powerOfTwo())
	d.Claims = append(d.Claims, benchmarked()...)
	return d, nil
}

// sampleRun reruns the output that both of the article's first two counters print.
func sampleRun() (Claim, error) {
	r, err := window.NewRuns(100, 10)
	if err != nil {
		return Claim{}, err
	}
	var totals []int64
	for _, e := range [][2]int64{{1000, 1}, {1010, 3}, {1050, 1}, {1100, 4}, {1200, 1}, {1300, 1}} {
		totals = append(totals, r.Add(mono.Time(e[0]), e[1]))
	}
	return claim("1, 3, 1, 4, 1", judge(fmt.Sprint(totals) == "[1 4 5 9 5 2]"), totals), nil
}

// unasked asks for a total long after the last event.
func unasked() (Claim, error) {
	r, err := window.NewRuns(100, 10)
	if err != nil {
		return Claim{}, err
	}
	last := r.Add(1300, 2)
	return claim("while nothing is added", judge(last == 2 && r.Total(1500) == 0), last, r.Total(1500)), nil
}

// slotExample reruns the example of a ring of ten slots of a second each.
func slotExample() (Claim, error) {
	s, err := window.NewSlots(10*time.Second, time.Second)
	if err != nil {
		return Claim{}, err
	}
	ring := newSlotRing(10, second)
	var ours, theirs []int64
	for _, e := range []struct {
		at float64
		n  int64
	}{{6.5, 2}, {8.8, 6}, {12.7, 1}, {17, 3}, {32, 0}} {
		now := mono.Time(e.at * 1e9)
		ours, theirs = append(ours, s.Add(now, e.n)), append(theirs, ring.add(now, e.n))
	}
	return claim("2 events at 6.5", judge(fmt.Sprint(theirs) == "[2 8 9 10 0]"), theirs, ours), nil
}

func slotSum() (Claim, error) {
	s, err := window.NewSlots(10*time.Second, time.Second)
	if err != nil {
		return Claim{}, err
	}
	ring, theirs, ours := newSlotRing(10, second), int64(0), int64(0)
	for _, e := range []struct {
		at float64
		n  int64
	}{{6.5, 2}, {8.8, 6}, {12.7, 1}, {16, 0}} {
		now := mono.Time(e.at * 1e9)
		theirs, ours = ring.add(now, e.n), s.Add(now, e.n)
	}
	return claim("the total is the", judge(theirs == 9), theirs, ours), nil
}

func shorterWindow() (Claim, error) {
	ours, err := window.NewSlots(time.Second, 100*time.Millisecond)
	if err != nil {
		return Claim{}, err
	}
	nine, ten, eleven := mostInASecond(newSlotRing(9, second/10).add), mostInASecond(newSlotRing(10, second/10).add),
		mostInASecond(func(now mono.Time, n int64) int64 {
			return ours.Add(now, n)
		})
	return claim("to keep 300 in", judge(nine <= 300), nine, ten, eleven), nil
}

// memory compares what the queue and the slots take, as package window documents its own memory.
func memory() (Claim, error) {
	const runs, perInstant, slots, perSlot = 128, 32, 96, 8
	s, err := window.NewSlots(time.Second, 100*time.Millisecond)
	if err != nil {
		return Claim{}, err
	}
	queue := func(n int) int { return runs + perInstant*n }
	fixed := slots + perSlot*s.Len()
	return claim("a queue of events", judge(fixed < queue(300)), queue(300), queue(100_000), s.Len(), fixed), nil
}

// average tests a moving average of the events, weighted by e^(−age/1 s), that is taken for a count
// with a limit of 300.
func average() Claim {
	decay := func(v float64, d time.Duration) float64 { return v * math.Exp(-d.Seconds()) }
	const gap = time.Second / 600
	through, v := 0, 0.0
	for ; v <= 299; through++ {
		v = decay(v+1, gap)
	}
	lingers := time.Duration(0)
	for v := 300.0; v > 1; v = decay(v, time.Millisecond) {
		lingers += time.Millisecond
	}
	return claim("an exponential average lingers", judge(lingers > 2*time.Second, through > 300),
		lingers.Seconds(), through)
}

func bigJump() Claim {
	const rounds = (2000 - 110) / 100.0
	return claim("from slot 110 to", judge(near(rounds, 10, 0.1)), rounds)
}

func powerOfTwo() Claim {
	const wanted, slots = 127, 64
	share := 100 * float64(slots) / wanted
	return claim("a power of two", judge(near(share, 50, 0.02)), slots, share)
}

// benchmarked are measured by hand, with the date and the command, since the time that a machine
// takes cannot be computed.
func benchmarked() []Claim {
	return []Claim{
		claim("the queue with a", Confirmed),
		claim("the ring of slots", Confirmed),
		claim("memory is allocated at", Confirmed),
		claim("dividing in floating point", Refuted),
		claim("splitting the loop, a", Confirmed),
	}
}
