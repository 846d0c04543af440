package rate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Changed returns l with the number and the window of a text, such as 10/s. All else stays: what is
// counted, the model, a bucket. Without a unit, the text is in that of l.
func (l Limit) Changed(text string) (Limit, error) {
	to, err := ParseCounted(text)
	if err != nil {
		return l, err
	}
	if to.Unit == limit.Requests && l.Unit != limit.Requests && l.Unit != limit.Money {
		to.Unit, to.Text = l.Unit, fmt.Sprintf("%d %v/%s", to.N, l.Unit, after(to.Text))
	}
	switch {
	case to.Unit != l.Unit:
		return l, fmt.Errorf("%q counts %v, and %s counts %v; expected the same", text, to.Unit, l.Text, l.Unit)
	case to.Zone != l.Zone:
		return l, fmt.Errorf("%q has another zone than %s; expected the same", text, l.Text)
	}
	if l.Burst == l.N {
		l.Burst = to.N
	}
	l.N, l.Per, l.Text = to.N, to.Per, to.Text
	_, err = l.Limiter(limit.Arrivals{})
	return l, err
}

// Meant returns the one of some limits that a text without a name is for: the only one, or the only one
// with its window.
func Meant(limits []Limit, text string) (name string, err error) {
	to, err := ParseCounted(text)
	if err != nil {
		return "", err
	}
	var all, same []string
	for _, l := range limits {
		if !slices.Contains(all, l.Text) {
			if all = append(all, l.Text); l.Per == to.Per && l.Unit == to.Unit {
				same = append(same, l.Text)
			}
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(same) == 1:
		return same[0], nil
	}
	return "", fmt.Errorf("%s may be for each of several limits; expected the name of one before it: %s", text,
		strings.Join(all, " or "))
}

// Turn changes a limiter into l, and reports whether that was possible. Its counts stay. sameTime chooses
// between limiters of the window of l, and those of another one. After a failure the limiter may have
// changed and must not be used any more.
func (l Limit) Turn(now mono.Time, had limit.Limiter, sameTime bool) bool {
	rates, ok := limit.Rates(had)
	if !ok || len(rates) != 1 || rates[0].Unit != l.Unit || sameTime != (rates[0].Per == l.Per) {
		return false
	}
	changes := rates[0].N != l.N
	switch had := had.(type) {
	case *limit.Rolling:
		return !l.Bucket && !l.Produced && l.Zone == "" && (sameTime || had.SetWindow(now, l.Per) == nil) &&
			(!changes || had.SetLimit(now, l.N) == nil)
	case *limit.Calendar:
		same := had.Zone() != nil && had.Zone().String() == l.Zone
		return same && (sameTime || had.SetWindow(now, l.Per) == nil) && (!changes || had.SetLimit(now, l.N) == nil)
	case *limit.Bucket:
		return l.Bucket && !l.Alone && (sameTime || had.SetWindow(now, l.Per) == nil) &&
			(!changes || had.SetLimit(now, l.N) == nil) && had.SetBurst(now, l.Most()) == nil
	}
	return false
}
