package provider

import "strings"

// dated matches names with a date, and gives the model of the snapshot. gpt-4o-2024-08-06 counts in
// the limits of gpt-4o, and so does an alias that ends in -latest.
var dated = []Family{{Name: "*", Models: []Pattern{"*-20??-??-??", "*-20??????", "*-latest"}}}

// SharedModel returns the name of the limits in which a model's requests count. By the provider's
// row it is the name of the family with which the model shares them, or else the model's own name.
func SharedModel(provider, model string) string {
	if d := rowOf(provider); d != nil {
		return sharedName(d.Shares, model)
	}
	return model
}

func sharedName(all []Family, model string) string {
	for _, s := range all {
		for _, m := range s.Models {
			rest, ok := m.head(model)
			switch {
			case !ok:
			case s.Name == "*":
				return rest
			default:
				return s.Name
			}
		}
	}
	return model
}

// head reports whether the pattern fits the name of a model, with ? for a digit, and returns the
// text for the first *.
func (p Pattern) head(name string) (string, bool) {
	before, after, star := strings.Cut(string(p), "*")
	rest, ok := strings.CutPrefix(name, before)
	if !ok || !star {
		return rest, ok && rest == ""
	}
	if strings.HasSuffix(string(p), "*") {
		return rest, true
	}
	if len(rest) <= len(after) {
		return "", false
	}
	cut := len(rest) - len(after)
	for i := range len(after) {
		if c := rest[cut+i]; after[i] == '?' && (c < '0' || c > '9') || after[i] != '?' && after[i] != c {
			return "", false
		}
	}
	return rest[:cut], true
}
