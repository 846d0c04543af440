package limit_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// probe is a Limiter that has all that a Limiter can have, and says of everything something that nobody else says.
type probe struct {
	*limit.Rolling
	heard []string
}

func (p *probe) note(s string)                                      { p.heard = append(p.heard, s) }
func (p *probe) Senses() bool                                       { return true }
func (p *probe) State(mono.Time, []limit.Stated)                    { p.note("State") }
func (p *probe) Refills(limit.Outcome) uint8                        { return 4 }
func (p *probe) Supply(func(), func() int, func(kind, text string)) { p.note("Supply") }
func (p *probe) Fresh(limit.Lease) bool                             { p.note("Fresh"); return false }
func (p *probe) Trust(mono.Time)                                    { p.note("Trust") }
func (p *probe) Retreats(mono.Time) []limit.Retreat                 { return []limit.Retreat{{Option: "probe"}} }

// Whoever wraps a Limiter passes on all that can be asked of it: Wraps fails for what was forgotten.
func TestWrappers(t *testing.T) {
	for name, wrap := range map[string]func(limit.Limiter) limit.Limiter{
		"All":     func(l limit.Limiter) limit.Limiter { return limit.NewAll(l, limit.MustRolling(1000, time.Second)) },
		"Varying": func(l limit.Limiter) limit.Limiter { return limit.NewVarying(l) },
		"Named":   func(l limit.Limiter) limit.Limiter { return limit.Named("name", l) },
		"Fitted":  func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
		"deep": func(l limit.Limiter) limit.Limiter {
			return limit.NewFitted(limit.Named("a", limit.NewAll(limit.Named("b", l))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{Rolling: limit.MustRolling(20, time.Second)}
			w := wrap(p)
			lease := w.Admit(0, limit.One)
			limit.State(w, 0, nil)
			limit.Supply(w, nil, nil, nil)
			limit.Trust(w, 0)
			fresh := limit.Fresh(w, lease)
			_, rated := limit.Rates(w)
			n, _ := limit.Unsettled(w)
			got := []any{limit.Senses(w), limit.Lapses(w), limit.Refills(w, limit.Outcome{}), fresh, rated, limit.Foresees(w), limit.Retreats(w, 0)[0].Option, n, len(limit.AppendUsage(nil, w, 0)) > 0, limit.Keeps(w) == nil}
			want := []any{true, true, uint8(4), false, true, true, "probe", 1, true, true}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("it says %v, want %v", got, want)
			}
			if !reflect.DeepEqual(p.heard, []string{"State", "Supply", "Trust", "Fresh"}) {
				t.Errorf("it heard %v", p.heard)
			}
		})
	}
}
