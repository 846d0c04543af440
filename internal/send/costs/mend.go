package costs

import (
	"fmt"
	"strings"

	"github.com/paceline-go/paceline/limit"
)

// Words says what requests cost, and which amounts are wrong. worth is what their charge says, and cost what
// was found.
func Words(worth, cost limit.Cost) (is, not string) {
	var all, wrong []string
	for u := range cost {
		unit := limit.Unit(u)
		if unit == limit.Requests {
			continue
		}
		if cost[u] > worth[u] {
			wrong = append(wrong, fmt.Sprintf("%d %v", worth[u], unit))
			worth[u] = cost[u]
		}
		if worth[u] > 0 {
			all = append(all, fmt.Sprintf("%d %v", worth[u], unit))
		}
	}
	return strings.Join(all, ", "), strings.Join(wrong, ", ")
}

// Mends returns the requests of the charge that mends a wrong one: the same, if that has conditions.
func (is Charged) Mends() string {
	if strings.Contains(is.On, "?") {
		return is.On
	}
	return is.Route
}
