package run

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/limit"
)

// A limit of a model that the input does not have is told, with the models that it has, in the same order
// each time.
func TestModelsThatTheInputHas(t *testing.T) {
	m, err := meter.New(meter.Config{LimitsOf: "openai"})
	if err != nil {
		t.Fatal(err)
	}
	p := &planning{again: true, models: map[string]*PlanModel{}, c: &Config{Meter: m, Limits: []format.Rate{
		{N: 60, Unit: limit.Requests}, {N: 9, Unit: limit.Requests, Model: "gpt-4p"}, {N: 9, Unit: limit.Requests, Model: "o3"}}}}
	for _, name := range []string{"o3", "o1", "gpt-4o", "o4-mini", "gpt-4.1"} {
		p.models[name] = &PlanModel{Model: name}
	}
	var told []string
	to := telling.New(func(text string) { told = append(told, text) }, false, false)
	if err := p.tellModels(to); err != nil || len(told) != 1 || !strings.HasPrefix(told[0], "no request that is to be sent is for gpt-4p,") ||
		!strings.HasSuffix(told[0], " those are for gpt-4.1, gpt-4o, o1, o3, o4-mini") {
		t.Errorf("%q, %v", told, err)
	}
}
