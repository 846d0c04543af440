package targets

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// none stands for an aim that does not exist.
var none = math.NaN()

// most is a figure whose values should be no larger than the aim. least is one whose values should be no smaller.
func most(name string, median, worst float64, of func(*fleet.Report) float64) Figure {
	return Figure{Name: name, Of: of, Median: median, Worst: worst}
}

func least(name string, median float64, of func(*fleet.Report) float64) Figure {
	return Figure{Name: name, Of: of, Median: median, Worst: none, AtLeast: true}
}

// refused is the percentage of all requests that were refused. steady is the percentage of those in
// the last two thirds of the run.
func refused(median, worst float64) Figure {
	return most("refused %", median, worst, func(r *fleet.Report) float64 { return r.RetryPercentPooled })
}

func steady(median, worst float64) Figure {
	return most("refused when steady %", median, worst, func(r *fleet.Report) float64 { return r.Steady.Percent })
}

// refusedEach is how many refusals each client has in each window.
func refusedEach(window time.Duration, median float64) Figure {
	return most("refused per client and window", median, none, func(r *fleet.Report) float64 {
		return float64(r.Limited) / float64(r.Clients) / (r.Seconds / window.Seconds())
	})
}

// sd is the standard deviation of the clients' requests.
func sd(median, worst float64) Figure {
	return most("sd of requests", median, worst, func(r *fleet.Report) float64 { return r.RequestSD })
}

// longest is the longest sleep of all.
func longest(median, worst float64) Figure {
	return most("longest sleep s", median, worst, func(r *fleet.Report) float64 { return r.Sleep.Max })
}

// longestOf is the longest sleep of a group, as a multiple of what would be fair.
func longestOf(group int, fair, median float64) Figure {
	return most("longest sleep / fair", median, none, func(r *fleet.Report) float64 {
		longest := 0.0
		for _, s := range r.Groups[group].MaxSleep {
			longest = max(longest, s)
		}
		return longest / fair
	})
}

// cv is the coefficient of variation of the clients' shares of what was served in the run. cvSteady
// is that of the last two thirds of the run, and cvWindow that of a window.
func cv(median, worst float64) Figure {
	return most("CV of shares %", median, worst, func(r *fleet.Report) float64 { return r.Shares.CV })
}

func cvSteady(median, worst float64) Figure {
	return most("CV of shares when steady %", median, worst, func(r *fleet.Report) float64 { return r.SharesSteady.CV })
}

// cvProcesses is the coefficient of variation of the shares of processes, in the last two thirds of
// the run. It is used where costs are drawn: there the 300 requests of a thread differ by 6 % by
// chance alone.
func cvProcesses(median float64) Figure {
	return most("CV of processes when steady %", median, none,
		func(r *fleet.Report) float64 { return r.SharesSteady.Processes })
}

func cvWindow(median float64) Figure {
	return most("CV of shares in a window %", median, none, func(r *fleet.Report) float64 { return r.Windows.CV.Median })
}

// even is the percentage of windows in which each client is served its fair share, rounded down or up.
func even(percent float64) Figure {
	return least("windows that are even %", percent, func(r *fleet.Report) float64 { return r.Windows.EvenPercent })
}

// unused is what is left of a window.
func unused(median float64) Figure {
	return most("unused of a window %", median, none, func(r *fleet.Report) float64 { return r.Windows.Unused.Median })
}

// off is how far the group that is furthest from its fair share is from it, in the last two thirds of the run.
func off(percent float64) Figure {
	return most("furthest group off its share %", percent, none, func(r *fleet.Report) float64 {
		off := 0.0
		for i := range r.Groups {
			off = max(off, 100*math.Abs(r.Groups[i].MeanShareSteady-1))
		}
		return off
	})
}

// settled is the time until the last client had its fair share.
func settled(median float64) Figure {
	return most("settled after s", median, none, func(r *fleet.Report) float64 { return compare.OrNever(r.SettleClients) })
}

// clear is the time until all requests are done.
func clear(median float64) Figure {
	return most("cleared in s", median, none, func(r *fleet.Report) float64 { return compare.OrNever(r.Clear) })
}

// share is the part of its fair share that the first group has in the last two thirds of the run,
// with an aim below and one above.
func share(atLeast, atMost float64) []Figure {
	of := func(r *fleet.Report) float64 { return r.Groups[0].MeanShareSteady }
	figures := []Figure{least("share of ours", atLeast, of)}
	if !math.IsNaN(atMost) {
		figures = append(figures, most("share of ours, at most", atMost, none, of))
	}
	return figures
}

// refusedOurs is how many of the first group's requests were refused.
func refusedOurs(median float64) Figure {
	return most("refused of ours %", median, none, func(r *fleet.Report) float64 {
		limited, all := 0, 0
		for i, n := range r.Groups[0].Requests {
			limited, all = limited+r.Groups[0].Limited[i], all+n
		}
		return 100 * float64(limited) / float64(max(all, 1))
	})
}
