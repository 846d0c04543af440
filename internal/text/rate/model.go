package rate

import "slices"

// HasOwn reports whether some of the limits are for this model.
func HasOwn(all []Limit, model string) bool {
	return model != "" && slices.ContainsFunc(all, func(l Limit) bool { return l.Model == model })
}

// OfModel returns the limits in which a model's requests count: its own, or else those without a
// model.
func OfModel(all []Limit, model string) (its []Limit) {
	if !slices.ContainsFunc(all, func(l Limit) bool { return l.Model != "" }) {
		return all
	}
	if !HasOwn(all, model) {
		model = ""
	}
	for _, l := range all {
		if l.Model == model {
			its = append(its, l)
		}
	}
	return its
}
