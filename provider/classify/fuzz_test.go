package classify_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/bits"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

var errDial = &net.OpError{Op: "dial", Err: errors.New("refused")}

// attempt makes one of the bits of flags, with its Policy.
func attempt(status int, fields string, body []byte, flags uint32) (classify.Policy, classify.Evidence) {
	bit := func(i int) bool { return flags>>i&1 == 1 }
	h := http.Header{}
	for line := range strings.SplitSeq(fields, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	p := classify.Policy{Repeat: bit(0), MaxRetryAfter: []time.Duration{0, -1, time.Second, 5 * time.Minute}[flags>>1&3], MaxPause: []time.Duration{0, -1, time.Second, 5 * time.Minute}[flags>>3&3]}
	a := classify.Evidence{
		Status: status, Header: h, Body: body, Now: noon, Took: time.Duration(flags>>5&3) * time.Second,
		Idempotent: bit(7), Model: bit(8), Nonce: bit(9), Last: bit(10), Once: bit(11), Ended: bit(12), Resends: bit(13),
		Wrote: classify.Wrote(flags >> 14 & 3 % 3), Err: []error{nil, io.ErrUnexpectedEOF, errDial, context.Canceled}[flags>>16&3],
	}
	if bit(18) {
		a.Provider = dialect(provider.Names()[int(flags>>19)%len(provider.Names())])
	}
	return p, a
}

func FuzzOf(f *testing.F) {
	for i, name := range provider.Names() {
		for j, s := range corpus.Load(f, "../testdata", name) {
			var b strings.Builder
			for k, vs := range s.Response.Header {
				for _, v := range vs {
					b.WriteString(k + ": " + v + "\n")
				}
			}
			f.Add(s.Response.Status, b.String(), s.Response.Body, uint32(1<<18|i<<19|j*977&(1<<18-1)))
			f.Add(s.Response.Status, b.String(), s.Response.Body, uint32(j*977&(1<<18-1)))
		}
	}
	f.Fuzz(judged)
}

// eighth reports whether flags are among an eighth of all, in which any seven of the bits that TestCombinations sets
// have all their values: each sum of these masks has eight bits or more.
func eighth(flags uint32) bool {
	return !slices.ContainsFunc([]uint32{0x1ab15, 0x2cd86, 0xf198}, func(mask uint32) bool {
		return bits.OnesCount32(flags&mask)%2 == 1
	})
}

// Combinations of all that is known of a request, each with one of the statuses that differ.
func TestCombinations(t *testing.T) {
	race.Without(t) // one call after another
	every := need.Fewer(false, true)
	for flags := range uint32(1 << 18) {
		if flags>>5&3 > 0 || !every && !eighth(flags) { // Took has tests of its own
			continue
		}
		statuses := []int{[]int{0, 200, 400, 408, 409, 425, 429, 500, 501, 503, 529}[flags%11], 0}
		if every {
			statuses = statuses[:1] // the flags have each status, and no answer, so often
		}
		for _, status := range statuses {
			if judged(t, status, "Retry-After: 9\n", []byte("bad nonce"), flags); t.Failed() {
				t.FailNow()
			}
		}
	}
}

// judged holds a verdict against the laws and the model.
func judged(t *testing.T, status int, fields string, body []byte, flags uint32) {
	p, a := attempt(status, fields[:min(len(fields), 8<<10)], body, flags)
	v := p.Of(&a)
	laws(t, &p, &a, v)
	if again := p.Of(&a); !reflect.DeepEqual(v, again) {
		t.Errorf("another time it is %+v\nand not %+v", again, v)
	}
	result, goes, wait := model(&p, &a, v.Said)
	if v.Result != result || v.Again != goes || v.RetryAfter != wait {
		t.Errorf("%+v\n%+v\n%v, again %v, after %v; the model has %v, %v, %v", p, a, v.Result, v.Again, v.RetryAfter, result, goes, wait)
	}
}

// FuzzOfStranger reads answers by a dialect of another package, with results that no dialect of
// package provider has.
func FuzzOfStranger(f *testing.F) {
	for _, why := range append(provider.Refusals(), "", "because") {
		f.Add(200, uint32(0), string(why), int64(-1), int64(1), int64(-5), "planet", "x")
		f.Add(429, uint32(1<<7), string(why), int64(1)<<62, int64(1)<<62, int64(1)<<62, "key", "okx")
	}
	f.Fuzz(func(t *testing.T, status int, flags uint32, why string, retryAfter, remaining, reset int64, scope, name string) {
		p, a := attempt(status, "", nil, flags)
		p.Dialect = stranger{provider.Observation{
			Dialect: name, Refusal: provider.Refusal(why), RetryAfter: time.Duration(retryAfter), Worked: time.Duration(reset), RefusedBy: []string{scope, name},
			Limits:   []provider.ServiceLimit{{Policy: name, Unit: provider.Requests, Scope: provider.Scope(scope), Remaining: provider.Count{N: remaining, OK: true}, Reset: noon.Add(time.Duration(reset))}, {Unit: provider.Requests, Remaining: provider.Count{N: -remaining, OK: true}}},
			Policies: []provider.Policy{{Name: name, Unit: provider.Requests, Scope: provider.Scope(scope), Rule: provider.Bucket, Limit: remaining, Burst: reset}},
		}}
		laws(t, &p, &a, p.Of(&a))
	})
}

// vouched reports whether a wait is vouched for: by the dialect, or by a window as long, stated or
// documented. No other wait of the answer may be longer than that.
func vouched(said provider.Observation, wait time.Duration) bool {
	longest := max(wait, said.RetryAfter)
	for _, l := range said.Limits {
		if !l.Reset.IsZero() {
			longest = max(longest, l.Reset.Sub(noon))
		}
	}
	for _, p := range said.Policies {
		if longest > time.Hour && p.WindowSource != provider.Inferred && p.Window >= longest {
			return true
		}
	}
	return said.Sure && longest > 0
}

type stranger struct{ says provider.Observation }

func (stranger) Name() string                                             { return "stranger" }
func (s stranger) Read(time.Time, provider.Response) provider.Observation { return s.says }

// laws is what holds for the verdict on anything.
func laws(t *testing.T, p *classify.Policy, a *classify.Evidence, v classify.Verdict) {
	t.Helper()
	bound := p.MaxPause
	if bound <= 0 || vouched(v.Said, v.Asked) {
		bound = provider.MaxWait
	}
	scopes := []provider.Scope{"", provider.Route, provider.Model, provider.Key, provider.IP, provider.All}
	ans := v.Answer()
	for _, law := range []struct {
		broken bool
		says   string
	}{
		{v.Result == limit.Accepted && (a.Status >= 400 || a.Status <= 0 || a.Err != nil), "what failed is not accepted"},
		{v.RetryAfter < 0 || v.RetryAfter > bound || v.RetryAfter > v.Asked && !(v.Said.Partly && v.RetryAfter <= time.Second), "one stays away for no longer than the settings or the server say"},
		{v.Asked < 0 || v.Asked > provider.MaxWait, "no server is heeded for longer than MaxWait"},
		{v.Result == limit.Limited && (ans.Returned || ans.Result == limit.Unsent), "a refused attempt counts"},
		{v.Result == limit.Unsent && (a.Status > 0 || a.Wrote == classify.Something), "what was written was sent"},
		{a.Status > 0 && (v.Result == limit.Unsent || v.Result == limit.Unknown), "what was answered has arrived"},
		{!slices.Contains(scopes, v.Scope), "the scope is one of the table"},
		{v.Result == limit.Limited && v.Scope == "", "a limit is somebody's"},
		{v.Result == limit.Accepted && v.Scope != "" && !v.Said.Partly, "who is served is not refused"},
		{v.Again && (v.Why != "" || v.Invalid || v.Banned || v.Result == limit.Accepted && !v.Said.Partly || a.Last || a.Once), "nothing stands in the way of what is sent again"},
		{!v.Again && v.Why == "" && !v.Invalid && v.Result != limit.Accepted, "it is said why it is not sent again"},
		{v.Again && !a.Idempotent && !p.Repeat && (v.Result == limit.Unknown || v.Result == limit.Failed && a.Status != 425 && v.Said.Refusal != provider.Conflict), "what may have been processed is not sent twice"},
		{v.Again && v.Said.Partly && !a.Idempotent && !p.RepeatPartly, "what was served in part is not sent again"},
		{v.Result == limit.Accepted && v.Said.Partly && (v.RetryAfter == 0 || !v.Doubt || v.Banned || v.Invalid), "what was served in part counts, and its pause is kept"},
		{v.Invalid && v.Banned, "either the request or the key is to blame"},
		{v.Misordered && v.Result != limit.Failed, "a bad nonce is no limit"},
		{v.ArrivedAgo < 0 || v.ArrivedAgo > 0 && v.ArrivedAgo >= a.Took, "it arrived after it was sent"},
		{ans.Outcome != v.Outcome, "a Pool hears what limiters hear"},
		{v.Result != limit.Accepted && ans.Reason == "", "a dead letter has a reason"},
	} {
		if law.broken {
			t.Errorf("%s: %+v\n%+v\n%+v", law.says, *p, *a, v)
		}
	}
	for u := range v.Remaining {
		known := v.Known>>u&1 == 1
		if v.Remaining[u] < 0 || v.Remaining[u] > limit.MaxCost || v.Reset[u] < 0 || v.Reset[u] > provider.MaxWait || !known && (v.Remaining[u] != 0 || v.Reset[u] != 0) {
			t.Errorf("%d %v remain until %v, known %v", v.Remaining[u], limit.Unit(u), v.Reset[u], known)
		}
	}
	all, none := v.For(func(provider.Scope) bool { return true }), v.For(func(provider.Scope) bool { return false })
	if v.Result != limit.Limited {
		all.RetryAfter = v.RetryAfter
	}
	if all != v.Outcome || none.Known != 0 || none.RetryAfter != 0 || none.Result != v.Result {
		t.Errorf("for all %+v\nfor none %+v\nof %+v", all, none, v)
	}
	_, capacity := v.Policies(func(provider.Scope) bool { return true })
	for u, n := range capacity {
		if n < 0 || n > limit.MaxCost {
			t.Errorf("a bucket holds %d %v", n, limit.Unit(u))
		}
	}
}

// model decides by lists, where Of decides by order. It finds the kind of an answer by sets of
// words and statuses. It decides about another attempt by collecting all that stands in the way.
func model(p *classify.Policy, a *classify.Evidence, o provider.Observation) (result limit.Result, again bool, wait time.Duration) {
	in := func(v string, set ...provider.Refusal) bool { return slices.Contains(set, provider.Refusal(v)) }
	why := string(o.Refusal)
	asked := o.RetryAfter
	unsure := !a.Idempotent && !p.Repeat
	var against []bool
	if a.Status <= 0 {
		result = limit.Unknown
		if a.Wrote == classify.Nothing || a.Wrote == classify.Unclear && a.Err == errDial {
			result, unsure = limit.Unsent, false
		}
		against = []bool{a.Ended, a.Err == context.Canceled, a.Resends, unsure, a.Last, a.Once}
		return result, !slices.Contains(against, true), 0
	}
	refused := in(why, "rate limited", "quota exhausted", "banned", "concurrency") || why == "overloaded" && asked > 0
	served := why == "" && a.Status < 400 && a.Err == nil && a.Status != 101
	longest := func(asked time.Duration) time.Duration {
		if bound := p.MaxPause; bound > 0 && !vouched(o, asked) {
			return min(asked, bound)
		}
		return asked
	}
	switch {
	case served:
		return limit.Accepted, false, 0
	case o.Partly && a.Err == nil:
		if at, ok := o.ComeBack(a.Now); ok {
			asked = at.Sub(a.Now)
		}
		against = []bool{
			!a.Idempotent, !refused && why != "overloaded", why == "banned", p.MaxRetryAfter < 0 || p.MaxRetryAfter > 0 && asked > p.MaxRetryAfter, a.Last, a.Once,
			a.Header.Get("X-Should-Retry") == "false", a.Header.Get("Stripe-Should-Retry") == "false",
		}
		return limit.Accepted, !slices.Contains(against, true), longest(cmp.Or(min(max(asked, 0), provider.MaxWait), time.Second))
	case refused:
		result = limit.Limited
		latest := func(spent bool) (d time.Duration) {
			for _, l := range o.Limits {
				if at := cmp.Or(l.Next, l.Reset); l.Remaining.N == 0 && l.Remaining.OK == spent && !at.IsZero() {
					d = max(d, at.Sub(a.Now))
				}
			}
			return d
		}
		if asked == 0 {
			asked = latest(true)
		}
		if asked == 0 { // nothing that is used up says when there is more
			asked = latest(false)
		}
	default:
		result = limit.Failed
	}
	passes := refused || in(why, "overloaded", "conflict") || a.Status < 400 && a.Err != nil || a.Status == 408 || a.Status == 425 ||
		a.Status >= 500 && a.Status != 501 && a.Status != 505
	passes = passes && a.Status != 101 && !in(why, "insufficient quota", "request too large", "misordered")
	if !passes {
		return result, false, 0
	}
	for i, longest := range []time.Duration{provider.MaxWait, provider.MaxWait, p.MaxPause, p.MaxPause} {
		if vouched(o, asked) {
			longest = provider.MaxWait
		}
		if []time.Duration{0, -1, time.Second, 5 * time.Minute}[i] == p.MaxPause {
			wait = min(asked, longest)
		}
	}
	untouched := refused || why == "conflict" || a.Status == 425
	impatient := p.MaxRetryAfter < 0 && (refused || asked > 0) || p.MaxRetryAfter > 0 && asked > p.MaxRetryAfter
	against = []bool{
		why == "banned", impatient, unsure && !untouched, a.Last, a.Once,
		a.Header.Get("X-Should-Retry") == "false", a.Header.Get("Stripe-Should-Retry") == "false",
	}
	return result, !slices.Contains(against, true), wait
}
