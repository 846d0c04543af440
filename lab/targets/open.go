package targets

import "math"

// open says in a few words why throttle.Fair does not reach an aim. The keys are the scenario and the figure.
var open = map[string]string{
	"fixed-50: longest sleep s": "78 to 81 by seeds",
}

// mark sets Open of the figures that open names.
func (t aimList) mark() {
	for i := range t {
		for j := range t[i].Figures {
			f := &t[i].Figures[j]
			if why := open[t[i].Scenario.Name+": "+f.Name]; why != "" && !(math.IsNaN(f.Median) && math.IsNaN(f.Worst)) {
				f.Open = why
			}
		}
	}
}
