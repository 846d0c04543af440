package llm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// Limits are the limits of one key for one model. At Anthropic, tokens read from a cache do not
// count as input.
type Limits struct {
	// Requests, Input, Output and Tokens (input + output) are the most per Window. If one of them
	// is zero, there is no such limit. If all are zero, they are the published limits that Config
	// names. If all are negative, there are no limits.
	Requests, Input, Output, Tokens int64
	// Window is the interval of these limits, a whole number of milliseconds. If zero, a minute.
	Window time.Duration
	// PerSecond applies each limit per second too, as OpenAI warns: 60,000 a minute as 1,000 a
	// second. The figure is rounded down to a whole number, but is at least 1. It is a bucket of a
	// second's share. A request of more tokens passes when the bucket is full. No request passes
	// then until its tokens are refilled. For OpenAI, and not with Rolling.
	PerSecond bool
	// RequestsPerDay and TokensPerDay are per 24 hours. If zero, there is no such limit.
	RequestsPerDay, TokensPerDay int64
}

// filled puts in the defaults.
func (l Limits) filled(p Provider) Limits {
	if l.Requests == 0 && l.Input == 0 && l.Output == 0 && l.Tokens == 0 {
		if p == Anthropic {
			l.Requests, l.Input, l.Output = 50, 30_000, 8_000
		} else {
			l.Requests, l.Tokens = 500, 30_000
		}
	}
	l.Window = cmp.Or(l.Window, time.Minute)
	return l
}

func (l Limits) check(name string) error {
	for field, n := range map[string]int64{"Requests": l.Requests, "Input": l.Input, "Output": l.Output,
		"Tokens":         l.Tokens,
		"RequestsPerDay": l.RequestsPerDay, "TokensPerDay": l.TokensPerDay} {
		if n > 1<<40 {
			return fmt.Errorf("ratetest: LLM: %s.%s %d is above %d", name, field, n, int64(1<<40))
		}
	}
	if l.PerSecond && l.Window < time.Second {
		return fmt.Errorf("ratetest: LLM: %s.PerSecond with a Window of %v, which is less than a second", name, l.Window)
	}
	if l.Window < time.Millisecond || l.Window%time.Millisecond != 0 || l.Window > 366*24*time.Hour {
		return fmt.Errorf("ratetest: LLM: %s.Window %v is not a whole number of milliseconds up to a year", name, l.Window)
	}
	return nil
}

// The families are the limits that a server may have.
const (
	requests = iota
	input
	output
	total
	requestsDay
	totalDay
	requestsSecond // these four are in the order of the first four
	inputSecond
	outputSecond
	totalSecond
	families
)

var familyNames = [families]string{"requests", "input_tokens", "output_tokens", "tokens", "requests_per_day",
	"tokens_per_day",
	"requests_per_second", "input_tokens_per_second", "output_tokens_per_second", "tokens_per_second"}

// words are the names of a family in messages, and OpenAI's abbreviation.
var words = [families]struct{ long, short string }{
	{"requests per min", "RPM"}, {"input tokens per min", "ITPM"}, {"output tokens per min", "OTPM"},
	{"tokens per min", "TPM"},
	{"requests per day", "RPD"}, {"tokens per day", "TPD"},
	{"requests per second", "RPS"}, {"input tokens per second", "ITPS"}, {"output tokens per second", "OTPS"},
	{"tokens per second", "TPS"},
}

const day = 24 * time.Hour

// of returns the limit and window of a family. limit is 0 if there is none.
func (l Limits) of(family int) (limit int64, window time.Duration) {
	if family >= requestsSecond {
		if limit, window = l.of(family - requestsSecond); !l.PerSecond || limit == 0 {
			return 0, time.Second
		}
		return max(limit*1000/window.Milliseconds(), 1), time.Second
	}
	limit = [requestsSecond]int64{l.Requests, l.Input, l.Output, l.Tokens, l.RequestsPerDay, l.TokensPerDay}[family]
	if window = l.Window; family >= requestsDay {
		window = day
	}
	return max(limit, 0), window
}

// asks returns the part of a cost that a limit must have. It is at most a full second of the limit,
// since a larger request is served alone.
func asks(family int, cost, limit int64) int64 {
	if family >= requestsSecond {
		return min(cost, limit)
	}
	return cost
}

// What counts against token limits: see Config.Count.
const (
	countReserved  = "reserved"
	countCorrected = "corrected"
	countTrue      = "true"
	countProduced  = "produced"
)

// amounts has an amount for each family.
type amounts [families]int64

func amountsOf(in, out, sum int64) amounts { return amounts{1, in, out, sum, 1, sum, 1, in, out, sum} }

// reserved returns the amounts that count when a request arrives.
func (c *Config) reserved(a *model.Ask, u Usage) amounts {
	switch {
	case c.Count == countTrue:
		return c.used(u)
	case c.Count == countProduced:
		first := min(1, a.Output())
		return amountsOf(a.Estimate, first, a.Estimate+first)
	case c.Count == countReserved && c.Provider == OpenAI:
		return amountsOf(a.Estimate, a.Output(), max(a.Estimate, a.Output()))
	}
	return amountsOf(a.Estimate, a.Output(), a.Estimate+a.Output())
}

// used returns the true usage as amounts.
func (c *Config) used(u Usage) amounts {
	in := u.Input
	if c.Provider == Anthropic {
		in -= u.Cached
	}
	return amountsOf(in, u.Output, in+u.Output)
}

// account is a key and a model, with the state of their limits.
type account struct {
	key    string
	meters [families]meter
}

// meter is the state of one limit.
type meter struct {
	rule  rule.Amendable // nil: there is no such limit
	limit int64
	left  int64 // at the last look
}

func (c *Config) newAccount(key string, l Limits) (*account, error) {
	a := &account{key: key}
	for f := range a.meters {
		limit, window := l.of(f)
		if limit == 0 {
			continue
		}
		m := meter{limit: limit, left: limit}
		var err error
		if c.Rolling {
			m.rule, err = rule.NewRolling(c.rolling(f, limit, window))
		} else {
			m.rule, err = rule.NewBucket(rule.BucketConfig{Limit: limit, Window: window})
		}
		if err != nil {
			return nil, err
		}
		a.meters[f] = m
	}
	return a, nil
}

func (c *Config) rolling(family int, limit int64, window time.Duration) rule.RollingConfig {
	return rule.RollingConfig{Limit: limit, Window: window, RefusedCount: c.RefusedCount &&
		(family == requests || family == requestsDay)}
}

// decision is the limits' decision about a request.
type decision struct {
	passed bool
	never  bool // the cost is more than a limit allows
	by     int  // the family with the longest wait
	limit  int64
	used   int64 // the used part of that limit, without this request
	asked  int64
	wait   time.Duration
}

// arrive decides about a request.
func (a *account) arrive(now mono.Time, cost amounts) decision {
	d := decision{passed: true}
	for f := range a.meters {
		m := &a.meters[f]
		if m.rule == nil || m.rule.Fits(now, asks(f, cost[f], m.limit)) {
			continue
		}
		at, ok := m.rule.Ready(now, asks(f, cost[f], m.limit))
		if wait := at.Sub(now); d.passed || !ok || !d.never && wait > d.wait {
			m.left = rule.Left(m.rule, now, m.limit, m.left)
			d = decision{by: f, never: !ok, limit: m.limit, used: m.limit - m.left, asked: cost[f], wait: wait}
		}
	}
	for f := range a.meters {
		if r := a.meters[f].rule; r != nil {
			r.Count(now, cost[f], d.passed)
		}
	}
	return d
}

// amend adds the difference between two amounts to the limits.
func (a *account) amend(now, passed mono.Time, by amounts) {
	for f := range a.meters {
		if r := a.meters[f].rule; r != nil && by[f] != 0 {
			r.Amend(now, passed, by[f])
		}
	}
}

// view has the facts about a limit for header fields.
type view struct {
	there       bool
	limit, left int64
	reset       time.Duration // until the limit is whole again
}

func (a *account) views(now mono.Time) (all [families]view) {
	for f := range a.meters {
		m := &a.meters[f]
		if m.rule == nil {
			continue
		}
		m.left = rule.Left(m.rule, now, m.limit, m.left)
		full, _ := m.rule.Ready(now, m.limit)
		all[f] = view{true, m.limit, m.left, full.Sub(now)}
	}
	return all
}

// scarcer returns the one of two limits on the same unit with the smaller fraction left. Header
// fields show that one.
func scarcer(a, b view) view {
	if !a.there || b.there && float64(b.left)/float64(b.limit) < float64(a.left)/float64(a.limit) {
		return b
	}
	return a
}
