package permit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/limit"
)

// unitWords are the words for the units of a cost, in the order of units. Money is in millionths of
// the limit's currency.
var (
	unitWords = []string{"requests", "weight", "orders", "input", "output", "tokens", "money"}
	units     = []limit.Unit{limit.Requests, limit.Weight, limit.Orders, limit.Input, limit.Output, limit.Tokens,
		limit.Money}
)

// CostForms is an example for ParseCost, for errors and help.
const CostForms = "tokens=900,weight=5"

// ParseCost reads amounts by unit: tokens=900,weight=5. Without requests it is one request. The empty
// text is one request, too.
func ParseCost(text string) (c limit.Cost, err error) {
	c = limit.One
	if text == "" {
		return c, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		word, amount, ok := strings.Cut(strings.TrimSpace(part), "=")
		i := slices.Index(unitWords, word)
		n, err := strconv.ParseInt(amount, 10, 64)
		switch {
		case !ok:
			return c, fmt.Errorf("%q is no cost, expected amounts by unit, such as %s", part, CostForms)
		case i < 0:
			return c, fmt.Errorf("%q is no unit of a cost, expected one of %s", word, strings.Join(unitWords, ", "))
		case seen[word]:
			return c, fmt.Errorf("%s is there twice, expected once", word)
		case err != nil || n < 0 || n > limit.MaxCost:
			return c, fmt.Errorf("%s=%s: expected a whole number from 0 to %d", word, amount, int64(limit.MaxCost))
		}
		seen[word], c[units[i]] = true, n
	}
	if c == (limit.Cost{}) {
		return c, fmt.Errorf("%q costs nothing, expected an amount above 0", text)
	}
	return c, nil
}

// costWords writes a cost as ParseCost reads it.
func costWords(c limit.Cost) string {
	var all []string
	for i, u := range units {
		if c[u] != 0 {
			all = append(all, fmt.Sprintf("%s=%d", unitWords[i], c[u]))
		}
	}
	return strings.Join(all, ",")
}
