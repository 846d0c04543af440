package fleet

import (
	"math"
	"slices"

	"github.com/paceline-go/paceline/limit/mono"
)

// Shares says how what the server served was shared. A share of 1 is a fair one: among clients that
// are alike except for strategy and weight, each process has a part by its weight, and its threads
// share that evenly. Clients are compared within the classes of RequestSD; clients of light demand
// are left out.
type Shares struct {
	// CV is the coefficient of variation of the clients' shares, in percent, and Processes that of the processes' shares.
	CV        float64 `json:"cv_percent"`
	Processes float64 `json:"process_cv_percent"`
	// Least and Most are the smallest and the largest share of a client.
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// WindowShares says how each whole window of the quota was shared: in each window the CV of the
// clients and the unused part are computed anew. The windows of a Calendar quota are its own;
// otherwise they follow each other from the first request on.
type WindowShares struct {
	// FirstCV is the CV of the window in which everybody began. Windows is how many windows followed;
	// the other figures are about those.
	FirstCV float64 `json:"first_cv_percent"`
	Windows int     `json:"windows"`
	// CV and Unused are in percent.
	CV     MedianWorst `json:"cv_percent"`
	Unused MedianWorst `json:"unused_percent"`
	// EvenPercent is how many percent of the windows gave every client its fair number, rounded down or up.
	EvenPercent float64 `json:"even_percent"`
}

// MedianWorst has the median and the largest, which is the worst, of several values.
type MedianWorst struct {
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
}

func medianWorst(values []float64) MedianWorst {
	if len(values) == 0 {
		return MedianWorst{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return MedianWorst{sorted[(len(sorted)-1)/2], sorted[len(sorted)-1]}
}

// taken is how much of the quota, in its unit, the server served to a client.
type taken struct {
	all, early, window int64 // in all, in the first third of the run, and in this window
}

func (t *taken) add(cost int64, early bool) {
	t.all += cost
	t.window += cost
	if early {
		t.early += cost
	}
}

// windows has what is counted for each window of the quota.
type windows struct {
	on         bool
	begin, end mono.Time
	offered    int64 // what the quota offered in this window
	n          int
	firstCV    float64
	cvs        []float64
	unused     []float64
	even       int
}

// start begins to count windows with the first request, unless there would be too many of them.
func (w *windows) start(f *Fleet, now mono.Time) {
	q := &f.scenario.Server
	n := float64(f.scenario.Duration) / float64(q.Window)
	w.on = q.Kind != DecreaseOnly && n >= 1 && n*float64(len(f.threads)) <= mostValues
	w.begin, w.end, w.offered = now, now.Add(q.Window-q.Into), scaled(q.Limit, q.factor(now))
	if q.Kind != Bucket && q.Kind != GCRA {
		w.offered = q.Level
	}
}

// until closes the windows that are over by now.
func (w *windows) until(f *Fleet, now mono.Time) {
	for w.on && now >= w.end {
		w.close(f)
		q := &f.scenario.Server
		w.begin, w.end, w.offered = w.end, w.end.Add(q.Window), scaled(q.Limit, q.factor(w.end))
	}
}

func (w *windows) close(f *Fleet) {
	of := f.shares(func(t *taken) int64 { return t.window }, func(g *Group) bool {
		return mono.Time(g.Join) <= w.begin && (g.Leave == 0 || mono.Time(g.Leave) >= w.end)
	})
	passed := int64(0)
	for i := range f.threads {
		passed += f.threads[i].taken.window
		f.threads[i].taken.window = 0
	}
	if w.n++; w.n == 1 {
		w.firstCV = of.CV
		return
	}
	w.cvs = append(w.cvs, of.CV)
	w.unused = append(w.unused, max(100-percent(float64(passed), float64(w.offered)), 0))
	if of.even {
		w.even++
	}
}

func (w *windows) report() *WindowShares {
	if !w.on || w.n == 0 {
		return nil
	}
	return &WindowShares{FirstCV: w.firstCV, Windows: len(w.cvs), CV: medianWorst(w.cvs), Unused: medianWorst(w.unused),
		EvenPercent: percent(float64(w.even), float64(len(w.cvs)))}
}

// division is Shares, and whether each client had its fair number, rounded down or up.
type division struct {
	Shares
	even bool
	all  []float64 // by client, one group after another; NaN where there is nothing to compare
}

// shares compares what clients took: of gives the number of a client, and among tells which groups are compared.
func (f *Fleet) shares(of func(*taken) int64, among func(*Group) bool) division {
	d := division{even: true, all: make([]float64, len(f.threads)), Shares: Shares{Least: math.Inf(1)}}
	for i := range d.all {
		d.all[i] = math.NaN()
	}
	var clients, processes deviations
	done := make([]bool, len(f.groups))
	for i := range f.groups {
		like := func(j int) bool {
			return f.scenario.Groups[j].like(&f.scenario.Groups[i]) && among(&f.scenario.Groups[j])
		}
		if done[i] || !like(i) || f.scenario.Groups[i].Demand.Kind == Light {
			continue
		}
		sum, weights := 0.0, 0.0
		for j := i; j < len(f.groups); j++ {
			if like(j) {
				done[j] = true
				sum += f.groups[j].sum(f, of)
				weights += f.scenario.Groups[j].weight() * float64(f.scenario.Groups[j].Processes)
			}
		}
		if sum == 0 {
			continue
		}
		for j := i; j < len(f.groups); j++ {
			if like(j) {
				d.divide(f, j, of, sum*f.scenario.Groups[j].weight()/weights, &clients, &processes)
			}
		}
		clients.free--
		processes.free--
	}
	d.CV, d.Processes = clients.cv(), processes.cv()
	if math.IsInf(d.Least, 1) {
		d.Least, d.Most = 1, 1
	}
	return d
}

// divide compares the clients of a group with what is fair for each of its processes.
func (d *division) divide(f *Fleet, group int, of func(*taken) int64, fair float64, clients, processes *deviations) {
	g, threads := &f.groups[group], f.scenario.Groups[group].Threads
	each := fair / float64(threads)
	for first := g.threads.from; first < g.threads.to; first += int32(threads) {
		process := 0.0
		for i := first; i < first+int32(threads); i++ {
			n := float64(of(&f.threads[i].taken))
			share := n / each
			process += n
			d.all[i] = share
			d.Least, d.Most = min(d.Least, share), max(d.Most, share)
			d.even = d.even && n >= math.Floor(each) && n <= math.Ceil(each)
			clients.add(share)
		}
		processes.add(process / fair)
	}
}

// deviations sums up the deviations of shares from 1.
type deviations struct {
	squares float64
	free    int // degrees of freedom
}

func (d *deviations) add(share float64) {
	d.squares += (share - 1) * (share - 1)
	d.free++
}

// cv is the sample standard deviation of the shares, in percent.
func (d *deviations) cv() float64 {
	if d.free <= 0 {
		return 0
	}
	return 100 * math.Sqrt(d.squares/float64(d.free))
}

func (g *groupState) sum(f *Fleet, of func(*taken) int64) (sum float64) {
	for i := g.threads.from; i < g.threads.to; i++ {
		sum += float64(of(&f.threads[i].taken))
	}
	return sum
}

// weight is the weight of each process of the group.
func (g *Group) weight() float64 {
	if g.Params.Weight > 0 {
		return g.Params.Weight
	}
	return 1
}

// like tells whether clients of both groups are compared with each other.
func (g *Group) like(of *Group) bool {
	return g.Demand == of.Demand && g.Join == of.Join && g.Leave == of.Leave
}

// peers are clients that are alike except for their strategy and its parameters.
type peers struct {
	classes []class
}

type class struct {
	of     *Group
	counts []int
}

func (p *peers) add(g *Group, counts []int) {
	i := slices.IndexFunc(p.classes, func(c class) bool { return c.of.like(g) })
	if i < 0 {
		i = len(p.classes)
		p.classes = append(p.classes, class{of: g})
	}
	p.classes[i].counts = append(p.classes[i].counts, counts...)
}

// spread returns the standard deviation of the counts, pooled over the classes, and Jain's index
// (Σx)²/(n Σx²). Counts are in units of the mean of their class; a class that did nothing is left
// out.
func (p *peers) spread() (sd, jain float64) {
	squares, free := 0.0, 0 // degrees of freedom
	sum, sumSquares, n := 0.0, 0.0, 0
	for _, c := range p.classes {
		mean := 0.0
		for _, x := range c.counts {
			mean += float64(x) / float64(len(c.counts))
		}
		for _, x := range c.counts {
			squares += (float64(x) - mean) * (float64(x) - mean)
			if mean > 0 {
				unit := float64(x) / mean
				sum += unit
				sumSquares += unit * unit
				n++
			}
		}
		free += len(c.counts) - 1
	}
	jain = 1
	if n > 0 {
		jain = sum * sum / (float64(n) * sumSquares)
	}
	if free > 0 {
		sd = math.Sqrt(squares / float64(free))
	}
	return sd, jain
}
