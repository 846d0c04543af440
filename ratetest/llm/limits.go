package llm

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/rule"
)

// Limits are those of one key for one model. Tokens read from a cache do not count as input of Anthropic's.
type Limits struct {
	// Requests, Input, Output and Tokens (input + output) are the most per Window. If one is zero there is no such limit; if
	// all are, they are the published ones that Config names. If all are negative there are none.
	Requests, Input, Output, Tokens int64
	// Window is what they are per. If zero, a minute. A whole number of milliseconds.
	Window time.Duration
	// PerSecond: what holds per Window also holds per second, as OpenAI warns: 60,000 a minute as 1,000 a second, rounded down to a
	// whole number, but at least 1. That is a bucket of a second's share. A request of more tokens passes when it is full, and
	// nothing else until what it took is refilled. For OpenAI and without Rolling.
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
	if l.Window == 0 {
		l.Window = time.Minute
	}
	return l
}

func (l Limits) check(name string) error {
	for field, n := range map[string]int64{"Requests": l.Requests, "Input": l.Input, "Output": l.Output, "Tokens": l.Tokens,
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
	requestsSecond // these four in the order of the first four
	inputSecond
	outputSecond
	totalSecond
	families
)

var familyNames = [families]string{"requests", "input_tokens", "output_tokens", "tokens", "requests_per_day", "tokens_per_day",
	"requests_per_second", "input_tokens_per_second", "output_tokens_per_second", "tokens_per_second"}

// words is how messages call a family, with what OpenAI abbreviates it to.
var words = [families]struct{ long, short string }{
	{"requests per min", "RPM"}, {"input tokens per min", "ITPM"}, {"output tokens per min", "OTPM"}, {"tokens per min", "TPM"},
	{"requests per day", "RPD"}, {"tokens per day", "TPD"},
	{"requests per second", "RPS"}, {"input tokens per second", "ITPS"}, {"output tokens per second", "OTPS"}, {"tokens per second", "TPS"},
}

const day = 24 * time.Hour

// of returns the limit of a family, 0 if there is none, and what it is per.
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

// asks is what a cost asks of a limit: no more than a full second, where more is served alone.
func asks(family int, cost, limit int64) int64 {
	if family >= requestsSecond {
		return min(cost, limit)
	}
	return cost
}

// Counting says what of a request counts against the limits of tokens, and when.
type Counting uint8

const (
	// CountDocumented is CountReserved for OpenAI and CountProduced for Anthropic.
	CountDocumented Counting = iota
	// CountReserved counts, when a request arrives, the estimate of its input and the output that it allows itself (as
	// tokens of OpenAI's, the larger of the two), whatever it uses in the end.
	CountReserved
	// CountCorrected reserves as much, their sum as tokens, and puts the true usage in its place when the answer ends.
	CountCorrected
	// CountTrue counts, when a request arrives, what it will use: a server that knows the future, to test a client without
	// the doubt about sizes.
	CountTrue
	// CountProduced counts the estimate of the input when a request arrives, and the output as it is produced: the first token
	// with the arrival, and so a request is refused when not one is left. What is under way goes on and may overdraw the limit.
	// What the output may come to has no part. When the answer ends the true input takes the place of the estimate.
	CountProduced
)

// amounts is how much of each family.
type amounts [families]int64

func amountsOf(in, out, sum int64) amounts { return amounts{1, in, out, sum, 1, sum, 1, in, out, sum} }

// reserved is what counts when the request arrives.
func (c *Config) reserved(a *Ask, u Usage) amounts {
	switch {
	case c.Count == CountTrue:
		return c.used(u)
	case c.Count == CountProduced:
		first := min(1, a.output())
		return amountsOf(a.Estimate, first, a.Estimate+first)
	case c.Count == CountReserved && c.Provider == OpenAI:
		return amountsOf(a.Estimate, a.output(), max(a.Estimate, a.output()))
	}
	return amountsOf(a.Estimate, a.output(), a.Estimate+a.output())
}

// used is what was used in truth.
func (c *Config) used(u Usage) amounts {
	in := u.Input
	if c.Provider == Anthropic {
		in -= u.Cached
	}
	return amountsOf(in, u.Output, in+u.Output)
}

// account is a key and a model, with what is left.
type account struct {
	key    string
	meters [families]meter
}

// meter is one limit at work.
type meter struct {
	rule  rule.Amendable // nil: there is no such limit
	limit int64
	left  int64 // as last looked at
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
	return rule.RollingConfig{Limit: limit, Window: window, RefusedCount: c.RefusedCount && (family == requests || family == requestsDay)}
}

// decision is what the limits say about a request.
type decision struct {
	passed bool
	never  bool // it costs more than a limit
	by     int  // the family that keeps it waiting longest
	limit  int64
	used   int64 // of that limit, without it
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

// amend puts one amount in the place of another.
func (a *account) amend(now, passed mono.Time, by amounts) {
	for f := range a.meters {
		if r := a.meters[f].rule; r != nil && by[f] != 0 {
			r.Amend(now, passed, by[f])
		}
	}
}

// view is what header fields say of a limit.
type view struct {
	there       bool
	limit, left int64
	reset       time.Duration // until everything is there again
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

// scarcer returns the one of two limits on the same thing of which less is left, in proportion: what the fields show.
func scarcer(a, b view) view {
	if !a.there || b.there && float64(b.left)/float64(b.limit) < float64(a.left)/float64(a.limit) {
		return b
	}
	return a
}
