package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

const day = 24 * time.Hour

// table has the rows of the files table_KIND.go.
var table = sync.OnceValue(func() []*tableRow {
	return slices.Concat(plains(), webs(), businesses(), opens(), llms(), exchanges())
})

// tableRow is a provider: what it limits, and how it says so. To add one, write what its documentation says; nothing here
// knows how package provider reads it.
type tableRow struct {
	name, about string
	// limits are the sets that it publishes, the default first, extra such as are in each of the sets. The numbers are written
	// here, from the documentation: what quota knows of them is another reading of it, and a test compares both.
	limits []limitSet
	extra  []provider.Policy
	// assumed says what the documentation does not: how a limit counts, or how much it is.
	assumed string
	// midnight is when the provider's days begin, after midnight UTC.
	midnight time.Duration
	// refusedCount: what is refused counts in windows of the clock as well.
	refusedCount bool
	// cost is what a request takes of a limit, 0 if it does not count in it, looks if it is told of it all the same. Nil: 1.
	cost func(a *asked, p *provider.Policy) int64
	// route is what limits of a route are of, besides a key. Nil: method and path.
	route func(a *asked) string
	ban   *banRule
	// speak writes an answer: status and body are set for one that was served, status for one that was not.
	speak func(a *reply)
}

const looks = -1

type limitSet struct {
	name     string
	policies []provider.Policy
}

// sets returns copies of its sets of limits.
func (r *tableRow) sets() []limitSet {
	all := make([]limitSet, 0, len(r.limits))
	for _, s := range r.limits {
		all = append(all, limitSet{s.name, slices.Concat(s.policies, r.extra)})
	}
	return all
}

func policy(name string, n int64, unit provider.Unit, window time.Duration, rule provider.Rule, scope provider.Scope) provider.Policy {
	return provider.Policy{Name: name, Unit: unit, Scope: scope, Rule: rule, Limit: n, Window: window}
}

// bucket holds another amount than flows in per window.
func bucket(burst, n int64, unit provider.Unit, window time.Duration, scope provider.Scope) provider.Policy {
	p := policy(string(unit), n, unit, window, provider.Bucket, scope)
	p.Burst = burst
	return p
}

type object = map[string]any

func (a *reply) set(name string, v any) { a.header.Set(name, fmt.Sprint(v)) }

// limit returns a limit that the request counts in, nil if it does not.
func (a *reply) limit(name string) *standing {
	for i := range a.limits {
		if a.limits[i].Name == name {
			return &a.limits[i]
		}
	}
	return nil
}

// tightest returns the limit that refused, or of which least is left; nil if the request counts in none.
func (a *reply) tightest() *standing {
	if a.by != nil {
		return a.by
	}
	var t *standing
	for i := range a.limits {
		if l := &a.limits[i]; t == nil || l.Left < t.Left {
			t = l
		}
	}
	return t
}

// fields writes limit, remaining and reset under names that begin alike.
func (a *reply) fields(prefix string, l *standing, reset any) {
	a.set(prefix+"Limit", l.Limit)
	a.set(prefix+"Remaining", l.Left)
	a.set(prefix+"Reset", reset)
}

// in returns whole seconds until an instant, up.
func (a *reply) in(t time.Time) int64 { return wholeSeconds(t.Sub(a.now)) }

func wholeSeconds(d time.Duration) int64 {
	return int64(host.RoundUp(max(d, 0), time.Second) / time.Second)
}

// secondOf is an instant in whole seconds since 1970, up.
func secondOf(t time.Time) int64 { return atSecond(t).Unix() }

func atSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

func milliOf(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// retryAfter asks a refused client to wait, in whole seconds, up. One that can never pass is not asked to.
func (a *reply) retryAfter() {
	if a.wait > 0 {
		a.set("Retry-After", wholeSeconds(a.wait))
	}
}

// refused writes the body of a refusal and reports whether it is one.
func (a *reply) refused(body any) bool {
	if a.by == nil {
		return false
	}
	a.body = body
	return true
}

// tokensToo is the cost where tokens count: their estimate.
func tokensToo(a *asked, p *provider.Policy) int64 {
	switch p.Unit {
	case provider.Tokens:
		return a.Tokens + a.Output
	case provider.Input:
		return a.Tokens
	case provider.Output:
		return a.Output
	}
	return 1
}

// structured is the IETF draft as it is since -08.
func (a *reply) structured(name func(*standing) string) {
	var policies, limits []string
	for i := range a.limits {
		l := &a.limits[i]
		if l.Whole.IsZero() {
			continue
		}
		n := strconv.Quote(name(l))
		policies = append(policies, fmt.Sprintf("%s;q=%d;w=%d", n, l.Limit, wholeSeconds(l.Window)))
		limits = append(limits, fmt.Sprintf("%s;r=%d;t=%d", n, l.Left, a.in(l.Whole)))
	}
	if policies != nil {
		a.set("RateLimit-Policy", strings.Join(policies, ", "))
		a.set("RateLimit", strings.Join(limits, ", "))
	}
}

func ownName(l *standing) string { return l.Name }

func (a *reply) violated() []string {
	names := []string{}
	for _, l := range a.limits {
		if l.Over {
			names = append(names, l.Name)
		}
	}
	return names
}

// seconds writes a duration in seconds, without zeros at the end.
func seconds(d time.Duration) string {
	s := strings.TrimRight(fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second), "0")
	return strings.TrimSuffix(s, ".")
}
