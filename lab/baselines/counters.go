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
		About: "The second half of an article: a map of events that is summed up anew, a queue with a running total, and a " +
			"ring of slots. It has the output of two examples and no " +
			"measurement. Ours are the examples, played through the counters of package window and through a ring built by " +
			"its recipe, and benchmarks, whose figures are of the date and " +
			"command that stand beside them, on one shared core."}
	for _, claim := range []func() (Claim, error){sampleRun, unasked, slotExample, slotSum, shorterWindow, memory} {
		c, err := claim()
		if err != nil {
			return d, err
		}
		d.Claims = append(d.Claims, c)
	}
	d.Claims = append(d.Claims, average(), bigJump(), powerOfTwo())
	d.Claims = append(d.Claims, benchmarked...)
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
	return Claim{
		Claim: "1, 3, 1, 4, 1 and 1 events at 1000, 1010, 1050, 1100, 1200 and 1300 make totals of 1, 4, 5, 9, 5 and 2",
		Setup: "an interval of 100",
		Rerun: fmt.Sprint(totals), Verdict: judge(fmt.Sprint(totals) == "[1 4 5 9 5 2]"), written: Confirmed,
		Why: "An event exactly as old as the interval still counts, in both.",
	}, nil
}

// unasked asks for a total long after the last event.
func unasked() (Claim, error) {
	r, err := window.NewRuns(100, 10)
	if err != nil {
		return Claim{}, err
	}
	last := r.Add(1300, 2)
	return Claim{
		Claim:   "while nothing is added the total stays as it was, so a check(time) is needed beside the insertion",
		Setup:   "the same example, asked at 1500",
		Rerun:   fmt.Sprintf("as it was: %d; asked by the time: %d", last, r.Total(1500)),
		Verdict: judge(last == 2 && r.Total(1500) == 0), written: Confirmed,
		Why: "A total is of an instant; ours are asked with one.",
	}, nil
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
	return Claim{
		Claim:   "2 events at 6.5 s, 6 at 8.8, 1 at 12.7, 3 at 17 and none by 32 make totals of 2, 8, 9, 10 and 0",
		Setup:   "ten slots of 1 s for ten seconds",
		Rerun:   fmt.Sprintf("its ring %v; ours, of eleven slots, %v", theirs, ours),
		Verdict: judge(fmt.Sprint(theirs) == "[2 8 9 10 0]"), written: Confirmed,
		Why: "At these instants a ring of ten and one of eleven say the same.",
	}, nil
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
	return Claim{
		Claim:   "the total is the sum of all events of the past ten seconds",
		Setup:   "the same example, asked at 16.0 s: 9 events are at most 9.5 s old",
		Rerun:   fmt.Sprintf("its ring says %d; ours %d", theirs, ours),
		Verdict: judge(theirs == 9), written: Refuted,
		Why: "The slot of 6.5 s is emptied when 16 s begins in its place. Ten whole slots take an eleventh for the one " +
			"that has begun.",
	}, nil
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
	return Claim{
		Claim:   "to keep 300 in 1.0 s at a precision of 0.1 s, keep 300 in 0.9 s: then the requirement surely holds",
		Setup:   "asked at the end of a slot",
		Rerun:   fmt.Sprintf("%d in one second (nine slots), %d (ten); %d by ours (eleven)", nine, ten, eleven),
		Verdict: judge(nine <= 300), written: Refuted,
		Why: "A shorter window forgets sooner, which lets more through, not less. It is the longer one that is on the safe " +
			"side.",
	}, nil
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
	return Claim{
		Claim: "a queue of events grows with what happens, slots do not", Setup: "one second, 300 or 100,000 instants in it",
		Rerun: fmt.Sprintf("ours: %d and %d bytes; %d slots take %d, whatever happens", queue(300), queue(100_000), s.Len(),
			fixed), Verdict: judge(fixed < queue(300)), written: Confirmed,
		Why: "Exact counts cost memory: 8 bytes an event where one asks only whether one more fits.",
	}, nil
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
	return Claim{
		Claim: "an exponential average lingers after a burst, and reacts too slowly to a stream (no figures)",
		Setup: "300 a second, an average over 1 s; 300 at once, then nothing; and 600 a second",
		Rerun: fmt.Sprintf("room for 299 after %.1f s, where the second is over after 1; %d of the stream pass before "+
			"one is refused", lingers.Seconds(), through),
		Verdict: judge(lingers > 2*time.Second, through > 300), written: Confirmed, Why: "Both ways, as the text says.",
	}
}

func bigJump() Claim {
	const rounds = (2000 - 110) / 100.0
	return Claim{
		Claim: "from slot 110 to slot 2000 of 100 slots one would clear the same slots 10 times", Setup: "by arithmetic",
		Rerun:   fmt.Sprintf("%.1f times", rounds),
		Verdict: judge(near(rounds, 10, 0.1)), written: Refuted,
		Why: "1,890 steps over 100 slots. That all should be cleared once instead is right.",
	}
}

func powerOfTwo() Claim {
	const wanted, slots = 127, 64
	share := 100 * float64(slots) / wanted
	return Claim{
		Claim: "a power of two of slots may cost half of the window", Setup: "by arithmetic: 127 slots wanted",
		Rerun:   fmt.Sprintf("%d slots, %.1f %% of it", slots, share),
		Verdict: judge(near(share, 50, 0.02)), written: Confirmed,
		Why: "Or twice the precision: the slots may as well be longer.",
	}
}

// benchmarked are written by hand, with the date and the command, since the time that a machine
// takes cannot be computed.
var benchmarked = []Claim{{
	Claim: "the queue with a running total does everything in constant time, optimally",
	Setup: "`go test ./limit/window -bench 'Runs|Log'`, 2026-11-22; N = 20, 300, 6,000, 100,000",
	Rerun: "Runs.Add 7.8, 9.7, 8.3, 8.0 ns; Log.Add, for one event each, 2.2, 2.0, 3.2, 2.1 ns", Verdict: Confirmed,
	written: Confirmed,
	Why: "The time does not grow with N. A ring of instants does the same in a quarter of it, if events have no " +
		"weight.",
}, {
	Claim:   "the ring of slots is fast, and does not grow with the number of events",
	Setup:   "`go test ./limit/window -bench 'Division|Slots'`, 2026-11-22",
	Rerun:   "as described 4.8 ns in the same slot, 6.4 in the next, 14 five slots on; ours 3.1, 6.5, 11",
	Verdict: Confirmed, written: Confirmed,
	Why: "Some nanoseconds, whatever was counted.",
}, {
	Claim: "memory is allocated at the start only", Setup: "`go test ./limit/window -bench . -benchmem`, 2026-11-22",
	Rerun: "0 bytes in each operation of each counter", Verdict: Confirmed, written: Confirmed,
	Why: "A ring has its length from the beginning.",
}, {
	Claim: "dividing in floating point is typically ten times as fast as dividing integers",
	Setup: "`go test ./limit/window -bench Division`, 2026-11-22; the same ring, both ways",
	Rerun: "8.8 ns in floating point, 4.8 by integers (same slot)", Verdict: Refuted, written: Refuted,
	Why: "Processors of today divide integers in a few nanoseconds, and rounding down takes a call.",
}, {
	Claim: "splitting the loop, a power of two or a constant number of slots save divisions",
	Setup: "`go test ./limit/window -bench Division`, 2026-11-22; five slots on",
	Rerun: "14.3 ns as described; 8.7 split, 9.9 with 16 slots, 8.8 with a constant", Verdict: Confirmed,
	written: Confirmed, Why: "Each does, where slots are cleared; in the same slot they differ by less than a nanosecond.",
}}
