package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// taught keeps the stated limits that it reads.
type taught struct {
	limit.Limiter
	at  mono.Time
	all []limit.Rule
}

func (l *taught) State(now mono.Time, all []limit.Rule) { l.at, l.all = now, all }
func (l *taught) Refills(*limit.Outcome) uint8          { return 0 }
func (l *taught) Resume(mono.Time, []limit.Past)        {}

// A stated limit reaches the configured limiter. A limiter without other knowledge learns from it.
func TestStatedReachesTheLimit(t *testing.T) {
	l := &taught{Limiter: limit.MustRolling(10, time.Second)}
	ability.State(plain(stack.Config{Limiter: l}), at(time.Minute), []limit.Rule{{Burst: 3}})
	if l.at != at(time.Minute) || len(l.all) != 1 || l.all[0].Burst != 3 {
		t.Errorf("at %v it was told %v", l.at, l.all)
	}
}
