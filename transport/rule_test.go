package transport_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/transport"
)

// What a Gate is given keeps the promise of the limit in it, whatever the answers say.
var ruleSpec = limittest.Spec{
	New:        func() limit.Limiter { return transport.NewRule(limit.MustRolling(5, time.Second)) },
	Promise:    limittest.Rolling(5, time.Second, limit.Requests),
	ClosedLoop: true,
	Burst:      1 << 20, // what was never sent may be sent again; the promise bounds the rest
}

// Without one it is a throttle.
var ruleAloneSpec = limittest.Spec{
	New:        func() limit.Limiter { return transport.NewRule(nil) },
	ClosedLoop: true,
	Burst:      1 << 20,
}

func TestRuleLaws(t *testing.T) {
	limittest.Laws(t, ruleSpec)
	limittest.Laws(t, ruleAloneSpec)
}

func FuzzRule(f *testing.F) { limittest.Fuzz(f, ruleSpec) }
