package rate

import (
	"fmt"
	"strconv"
	"strings"
)

// PartForms are the forms of a part, for help texts.
const PartForms = "75% or 0.75"

// ParsePart reads a part of a whole, from 0 to 1: 75%, 0.75.
func ParsePart(s string) (float64, error) {
	text, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) { // NaN, too
		return 0, fmt.Errorf("%q is no part of a whole, expected %s", s, PartForms)
	}
	return v, nil
}
