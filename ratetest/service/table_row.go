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
	return slices.Concat(plains(), webs(), businesses(), opens(), llms(), exchanges(), terse())
})

// tableRow is a provider: its limits, and the form of its answers. A new row follows the provider's
// documentation. Nothing here uses package provider's reading of it.
type tableRow struct {
	name, about string
	// limits are the published sets, the default first. extra are limits that every set has. The
	// numbers are copied from the documentation. Package provider is another reading of it, and a
	// test compares both.
	limits []limitSet
	extra  []provider.Policy
	// assumed explains the parts that the documentation leaves out: the way a limit counts, or its
	// size.
	assumed string
	// midnight is the beginning of the provider's day, after midnight UTC.
	midnight time.Duration
	// refusedCount counts refused requests in windows of the clock too.
	refusedCount bool
	// cost returns the cost of a request for a limit. It is 0 if the request does not count, and
	// looks if the answer shows the limit nevertheless. Nil: 1.
	cost func(a *asked, p *provider.Policy) int64
	// route returns the route for limits of a route, besides the key. Nil: method and path.
	route func(a *asked) string
	// resource returns the part of the key's quota in which a request counts, for limits of a
	// resource. After ofAddress it is a part of the address's. Nil: each such limit is of one.
	resource func(a *asked) string
	ban      *banRule
	// api returns the answer of the provider's endpoint at the request's path. It is nil if the path
	// is none of those, and such a request is answered with status OK. Nil: there are no endpoints.
	api func(a *asked) *answer
	// speak writes an answer. Status and body are set for a request that passed, and the status for
	// one that did not.
	speak func(a *reply)
}

const looks = -1

// ofAddress is before a resource that all keys of an address share.
const ofAddress = "address "

type limitSet struct {
	name     string
	policies []provider.Policy
}

// sets returns copies of the row's sets of limits.
func (r *tableRow) sets() []limitSet {
	all := make([]limitSet, 0, len(r.limits))
	for _, s := range r.limits {
		all = append(all, limitSet{s.name, slices.Concat(s.policies, r.extra)})
	}
	return all
}

// Short names, for the rows.
const (
	requests, weight, orders           = provider.Requests, provider.Weight, provider.Orders
	allTokens, inputTokens, concurrent = provider.Tokens, provider.Input, provider.Concurrent

	rolling, calendar, anchored, inBucket, atOnce = provider.Rolling, provider.Calendar, provider.Anchored,
		provider.Bucket, provider.Concurrency

	perKey, perIP, perModel, perRoute, perResource = provider.Key, provider.IP, provider.Model, provider.Route,
		provider.Resource
)

// classes are limits of endpoints, each of which has a class: "20/2s" is 20 requests in each window.
func classes(window time.Duration, rule provider.Rule, names ...string) (all []provider.Policy) {
	for _, name := range names {
		n, _, _ := strings.Cut(name, "/")
		limit, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			panic("service: no number in " + name)
		}
		all = append(all, policy(name, limit, requests, window, rule, perResource))
	}
	return all
}

// set is a published set of limits.
func set(name string, policies ...provider.Policy) limitSet { return limitSet{name, policies} }

func policy(name string, n int64, unit provider.Unit, window time.Duration, rule provider.Rule,
	scope provider.Scope) provider.Policy {
	return provider.Policy{Name: name, Unit: unit, Scope: scope, Rule: rule, Limit: n, Window: window}
}

// bucket is a bucket whose capacity differs from its inflow per window.
func bucket(burst, n int64, unit provider.Unit, window time.Duration, scope provider.Scope) provider.Policy {
	p := policy(string(unit), n, unit, window, provider.Bucket, scope)
	p.Burst = burst
	return p
}

// named gives a limit another name than that of its unit.
func named(name string, p provider.Policy) provider.Policy {
	p.Name = name
	return p
}

type object = map[string]any

func (a *reply) set(name string, v any) { a.header.Set(name, fmt.Sprint(v)) }

// limit returns a limit in which the request counts, nil if it does not count there.
func (a *reply) limit(name string) *standing {
	for i := range a.limits {
		if a.limits[i].Name == name {
			return &a.limits[i]
		}
	}
	return nil
}

// tightest returns the limit that refused, or else the one with the least left. It is nil if the
// request counts in none.
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

// fields writes limit, remaining and reset, in fields with the same prefix.
func (a *reply) fields(prefix string, l *standing, reset any) {
	a.set(prefix+"Limit", l.Limit)
	a.set(prefix+"Remaining", l.Left)
	a.set(prefix+"Reset", reset)
}

// in returns the seconds until an instant, rounded up.
func (a *reply) in(t time.Time) int64 { return wholeSeconds(t.Sub(a.now)) }

func wholeSeconds(d time.Duration) int64 {
	return int64(host.RoundUp(max(d, 0), time.Second) / time.Second)
}

// secondOf returns an instant in seconds since 1970, rounded up.
func secondOf(t time.Time) int64 { return atSecond(t).Unix() }

func atSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

func milliOf(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// retryAfter writes the wait of a refused client, in seconds, rounded up. It writes none for a
// request that can never pass.
func (a *reply) retryAfter() {
	if a.wait > 0 {
		a.set("Retry-After", wholeSeconds(a.wait))
	}
}

// refused writes the body if the reply is a refusal, and reports whether it is one.
func (a *reply) refused(body any) bool {
	if a.by == nil {
		return false
	}
	a.body = body
	return true
}

// tokensToo returns the cost in limits of tokens: their estimate.
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

// structured writes the fields of the IETF draft since version -08.
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
