package provider_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// A second's share is whole, rounded down, and at least one; limits of other windows have none.
func TestPerSecond(t *testing.T) {
	for _, c := range []struct {
		p    provider.Policy
		want int64 // 0: none
	}{
		{provider.Policy{Rule: provider.Bucket, Limit: 60_000, Window: time.Minute}, 1000},
		{provider.Policy{Rule: provider.Bucket, Limit: 500, Window: time.Minute}, 8},
		{provider.Policy{Rule: provider.Bucket, Limit: 3, Window: time.Minute, Burst: 5}, 1},
		{provider.Policy{Rule: provider.Bucket, Limit: 10_000, Window: 24 * time.Hour}, 0},
		{provider.Policy{Rule: provider.Rolling, Limit: 60_000, Window: time.Minute}, 0},
	} {
		p, ok := c.p.PerSecond()
		if ok != (c.want > 0) || ok && (p.Limit != c.want || p.Burst != 0 || p.Window != time.Second || !p.Alone) {
			t.Errorf("%+v: %+v %t, want %d", c.p, p, ok, c.want)
		}
	}
	for name, want := range map[string]bool{"openai:tier1": true, "anthropic:start": false, "nobody": false} {
		before, _ := provider.LookupPreset(name)
		after, ok := before.PerSecond()
		if again, _ := provider.LookupPreset(name); ok != want || ok && len(after.Policies) != 4 || len(again.Policies) != len(before.Policies) {
			t.Errorf("%s: %t %+v", name, ok, after.Policies)
		}
	}
}
