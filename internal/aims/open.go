package aims

import "math"

// open says in a few words why throttle.Fair does not reach an aim. The keys are the scenario and the figure.
var open = map[string]string{
	"cold-10: sd of requests":           "one start of twenty is uneven",
	"threads-2x5: longest sleep s":      "10 × 5 would pay for it",
	"threads-5x5: longest sleep s":      "as 2 × 5",
	"threads-10x5: longest sleep s":     "one start of twenty",
	"40-as-one: longest sleep / fair":   "while the reserve is built",
	"cold-100: CV of shares %":          "some find N late",
	"burst-5-50: refused when steady %": "50 phases waver by more",
	"fixed-50: longest sleep s":         "78 to 81 by seeds",
}

// mark sets Open of the figures that open names.
func (t table) mark() {
	for i := range t {
		for j := range t[i].Figures {
			f := &t[i].Figures[j]
			if why := open[t[i].Scenario.Name+": "+f.Name]; why != "" && !(math.IsNaN(f.Median) && math.IsNaN(f.Worst)) {
				f.Open = why
			}
		}
	}
}
