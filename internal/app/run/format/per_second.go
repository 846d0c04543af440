package format

import (
	"fmt"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
)

// Rate is a limit as flags and files give it.
type Rate = rate.Limit

// PerSecond returns the limit per second that corresponds to a limit per minute, as in
// provider.Policy. It returns false if there is none.
func PerSecond(l Rate) (Rate, bool) {
	p, ok := provider.Policy{Rule: provider.Bucket, Limit: l.N, Window: l.Per}.PerSecond()
	return Rate{N: p.Limit, Per: p.Window, Unit: l.Unit, Bucket: true, Alone: p.Alone, EachModel: l.EachModel,
		Model: l.Model, Text: fmt.Sprintf("%d/s %v", p.Limit, l.Unit)}, ok && l.Bucket && !l.Produced
}
