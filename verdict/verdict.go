// Package verdict says what one attempt at a request proves: how it ended, whom a refusal concerns, what its server says is
// left, whether to send it again, and how long to stay away.
//
//	Attempt    what is known of one try: status, header, body, or an error; and of its request
//	Policy     who reads the answer, and how long is waited for
//	Verdict    what follows: the Outcome for limiters, the Scope, Again or Why not
//
// It is for whoever sends requests under a limit: Verdict.Answer is what the Send of a paceline.Pool returns, and
// Verdict.Outcome what the Permit of a paceline.Gate is settled with. What the words of a server mean is package quota's;
// when the next request may go is package limit's.
//
// It owns no clock, lock or goroutine, reads no body by itself, and keeps no state: equal attempts have equal verdicts. All
// of it is safe for concurrent use. No answer, however odd, is an error.
package verdict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/sight"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// Policy is how attempts are judged. The zero value is ready.
type Policy struct {
	// Dialect reads all answers. If nil, the Attempt's Provider, if there is one; else each is read as it looks.
	Dialect quota.Dialect
	// MaxRetryAfter is the longest that a caller waits because a server asked to: what is to wait for longer is not sent
	// again. If zero, there is no such bound, which is right for a queue; negative: nobody waits.
	MaxRetryAfter time.Duration
	// MaxPause is the longest that anybody stays away, whatever the server asks for and nobody vouches for, where the limiters do
	// not see to it that one request goes first: those of a Pool and of a transport do. If zero, as long as the server asks, which
	// is quota.MaxWait at most.
	MaxPause time.Duration
	// Guess has a refusal with status 200 be found where nobody knows the server, too, by a short body that is one of a provider
	// that refuses so.
	Guess bool
	// Repeat has everything count as idempotent: what may have been processed is sent again.
	Repeat bool
}

// Attempt is what is known of one try at sending a request. The zero Attempt had no answer, and nobody knows why. From fills
// in most of it.
type Attempt struct {
	// Status, Header and Body are the answer's; Status 0: there is none. Of Body the beginning is enough, quota.MaxBody of it;
	// it is looked at only where Policy.NeedsBody says so.
	Status int
	Header http.Header
	Body   []byte
	// Err is why there is no answer, or no whole one.
	Err error
	// Wrote says whether any of the request was written. Unclear: Err says it, where NeverSent knows it.
	Wrote Wrote
	// Sight is what Err has shown of the way to the server, where there is no answer.
	Sight limit.Sight
	// Now is when the answer was read, on the wall clock, for what servers say as an instant. If zero, the server's Date.
	Now time.Time
	// Took is from before anything of the request was written to Now. It bounds what a server is believed of how long it
	// worked on the request. If zero, that is not believed.
	Took time.Duration
	// RTT becomes that of the Outcome.
	RTT time.Duration

	// Provider is the dialect of the host, if that is known: see quota.ForHost. Shown is what earlier answers of the host
	// have shown it to be: see Verdict.Shown. Of both, Provider is believed; Shown gives way to what an answer looks like.
	Provider, Shown quota.Dialect
	// Idempotent: to be processed twice does no harm. See Idempotent, the function.
	Idempotent bool
	// Model: the request names a model, so that an overload may be that model's.
	Model bool
	// Nonce: the request carries a number that must rise. Then a refusal may be read as being about that by its text.
	Nonce bool
	// Last: there is no attempt left. Once: its body cannot be read again.
	Last, Once bool
	// Ended: nobody waits for it any more. Resends: its client sends again by itself what got no answer.
	Ended, Resends bool
}

// Wrote says whether a request was written.
type Wrote uint8

const (
	Unclear   Wrote = iota
	Nothing         // not a byte of it
	Something       // a byte at least may have left this machine
)

// Verdict is what an attempt proves. Its Outcome is for a limiter that all the server's limits concern; For makes those of
// limiters that only some concern.
type Verdict struct {
	// Outcome has the Result; what is left of each unit that the answer speaks of, with a Reset of 0 where it was not said;
	// and RetryAfter, how long to stay away, Policy.MaxPause at most: with the Result limit.Limited all that Scope says, with
	// limit.Failed this request. If that is less than Asked, one request should go first when it is over.
	limit.Outcome
	// Scope is whose requests a refusal concerns. Empty: this one alone, or it was none.
	Scope quota.Scope
	// Asked is how long the server asks to stay away, by a Retry-After or by the resets of what is used up: 0 …
	// quota.MaxWait. 0: it does not say.
	Asked time.Duration
	// Again: send it again, not before RetryAfter. Why says, in words, what stands in the way where it failed or was refused
	// and is not.
	Again bool
	Why   string
	// Theirs: only its caller can tell whether to send it again does harm, or can make its body again.
	Theirs bool
	// Invalid: no later attempt may be made, with the same or another key: the same would come of it, it may have been
	// processed, or the server forbids it.
	Invalid bool
	// Banned: the key was refused for good; another may do better.
	Banned bool

	// Status and Err are the Attempt's.
	Status int
	Err    error
	// Said is what the answer says of limits. The zero Observation: nothing was looked for.
	Said quota.Observation
	// Shown is who the server is, by a header that only one provider sends: the Attempt.Shown of its next answers. Nil: no
	// news.
	Shown quota.Dialect

	now time.Time
}

// Words of Why.
const (
	whyEnded    = "the context ended"
	whyResends  = "its client tries again by itself"
	whyDoubt    = "it may have been processed, and is neither idempotent nor has an Idempotency-Key"
	whyUnpaid   = "there is no credit: waiting does not help"
	whyTooLarge = "it is larger than the limit: it never fits"
	whyNonce    = "its nonce is used up"
	whyBanned   = "it is banned"
	whyForbids  = "the server asks not to try again"
	whyLast     = "that was the last attempt"
	whyOnce     = "its body cannot be read again: the request has no GetBody"
)

// Of judges an attempt.
func (p *Policy) Of(a *Attempt) (v Verdict) {
	v.RTT, v.Status, v.Err = a.RTT, a.Status, a.Err
	if a.Status <= 0 {
		p.unanswered(a, &v)
		return v
	}
	v.Sight = sight.OfStatus(a.Status)
	p.read(a, &v)
	why := v.Said.Refusal
	switch {
	case why == quota.None && a.Status < 400 && a.Err == nil:
		v.Result = limit.Accepted
	case limits(&v.Said):
		v.Result = limit.Limited
	default:
		v.Result = limit.Failed
	}
	if why != quota.None {
		v.Scope = scopeOf(&v.Said, a.Model)
		v.Misordered = why == quota.Misordered
		v.Overloaded = why == quota.Overloaded || why == quota.TooMany
	}
	switch v.Result {
	case limit.Limited:
		p.refused(a, &v)
		return v
	case limit.Failed:
		p.failed(a, &v)
	}
	v.ArrivedAgo = worked(v.Said.Worked, a.Took)
	return v
}

// unanswered judges an attempt without an answer.
func (p *Policy) unanswered(a *Attempt, v *Verdict) {
	v.Status, v.Sight = 0, a.Sight
	v.Result = limit.Unknown
	if a.Wrote == Nothing || a.Wrote == Unclear && NeverSent(a.Err) {
		v.Result = limit.Unsent
	}
	doubt := v.Result == limit.Unknown && !a.Idempotent && !p.Repeat
	v.Invalid = doubt
	switch {
	case a.Ended || errors.Is(a.Err, context.Canceled):
		v.Why = whyEnded
	case a.Resends:
		v.Why = whyResends
	case doubt:
		v.Why, v.Theirs = whyDoubt, true
	default:
		v.resend(a)
	}
}

// refused judges an attempt that a limit refused. It was not processed, so whatever it is it may go again.
func (p *Policy) refused(a *Attempt, v *Verdict) {
	v.Asked = asked(v.now, &v.Said)
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case v.Said.Refusal == quota.Banned:
		v.Why, v.Banned = whyBanned, v.Asked == 0
	case p.MaxRetryAfter < 0 || v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	case forbids(a.Header):
		v.Why, v.Invalid = whyForbids, true
	default:
		v.resend(a)
	}
}

// failed judges an answer that no limit refused.
func (p *Policy) failed(a *Attempt, v *Verdict) {
	why := v.Said.Refusal
	switch {
	case why == quota.Unpaid:
		v.Why, v.Banned = whyUnpaid, true
		return
	case why == quota.TooLarge:
		v.Why, v.Invalid = whyTooLarge, true
		return
	case why == quota.Misordered: // the same again is in vain, with a new nonce it is not
		v.Why = whyNonce
		return
	case !mayPass(a, why):
		v.Invalid = true
		return
	}
	v.Asked = min(max(v.Said.RetryAfter, 0), quota.MaxWait)
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case forbids(a.Header):
		v.Why, v.Invalid = whyForbids, true
	case why != quota.Conflict && a.Status != http.StatusTooEarly && !a.Idempotent && !p.Repeat:
		v.Why, v.Theirs, v.Invalid = whyDoubt, true, true
	case v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	default:
		v.resend(a)
	}
}

// resend decides whether what may be sent again can be.
func (v *Verdict) resend(a *Attempt) {
	switch {
	case a.Last:
		v.Why = whyLast
	case a.Once:
		v.Why, v.Theirs = whyOnce, true
	default:
		v.Again = true
	}
}

// mayPass tells whether a failure may pass by itself.
func mayPass(a *Attempt, why quota.Refusal) bool {
	switch {
	case why == quota.Overloaded || why == quota.Conflict:
		return true
	case a.Status < 400:
		return a.Err != nil // it was broken off
	case a.Status == http.StatusRequestTimeout || a.Status == http.StatusTooEarly:
		return true
	}
	return a.Status >= 500 && a.Status != http.StatusNotImplemented && a.Status != http.StatusHTTPVersionNotSupported
}

// forbids tells of a server that asks not to try again, whatever the status.
func forbids(h http.Header) bool {
	return h.Get("X-Should-Retry") == "false" || h.Get("Stripe-Should-Retry") == "false"
}

// patience is the longest that a caller waits.
func (p *Policy) patience() time.Duration {
	if p.MaxRetryAfter == 0 {
		return math.MaxInt64
	}
	return max(p.MaxRetryAfter, 0)
}

func (p *Policy) tooLong(asked time.Duration) string {
	if asked == 0 {
		return "it would have to wait, and nobody is to wait for a server"
	}
	return fmt.Sprintf("the server asks to stay away for %v, which is longer than %v", asked, p.patience())
}

// bounded returns for how long to stay away where the server asks for d.
func (p *Policy) bounded(d time.Duration, sure bool) time.Duration {
	if p.MaxPause <= 0 || sure {
		return d
	}
	return min(d, p.MaxPause)
}

// InTime takes back that the request is sent again, if it would have to wait for so long and less is left until its
// deadline. The wait is RetryAfter, or what its sender adds to it.
func (v *Verdict) InTime(wait, left time.Duration) {
	if v.Again && left < wait {
		v.Again = false
		v.Why = fmt.Sprintf("it would have to wait for %v, and its deadline comes first", wait)
	}
}

// Answer is what the Send of a paceline.Pool returns. How often to try is the Pool's to count, and each of its attempts has a
// nonce of its own, so Last, Once and a used-up nonce do not end a request there. Unlike transport's callers, a Pool waits
// for a ban whose end is known, and asks another key about a 401 or 403.
func (v Verdict) Answer() dispatch.Answer {
	_, capacity := v.Policies(everybody)
	denied := v.Result == limit.Failed && (v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden)
	return dispatch.Answer{Outcome: v.Outcome, Capacity: capacity, Invalid: v.Invalid, Banned: v.Banned, Denied: denied, Reason: v.reason()}
}

// reason is what a dead letter says.
func (v *Verdict) reason() string {
	if v.Result == limit.Accepted {
		return ""
	}
	s := statusText(v.Status)
	if v.Status == 0 {
		s = "no answer"
	}
	if v.Err != nil {
		s += ": " + v.Err.Error()
	}
	if why := v.Said.Refusal; why != quota.None {
		s += ": " + string(why)
	}
	if v.Invalid && v.Why != "" {
		s += "; " + v.Why
	}
	return s
}

// statusText is a status for people: "503 Service Unavailable".
func statusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return fmt.Sprintf("%d %s", status, t)
	}
	return fmt.Sprintf("status %d", status)
}

// worked returns how long before its answer a request had arrived, for sure, that the server says it worked on for so long.
// It may have rounded, and by a clock that is fast by 0.01 %. What is no less than the round trip took is no truth.
func worked(said, took time.Duration) time.Duration {
	if said -= time.Millisecond + said/10_000; said >= took {
		return 0
	}
	return max(said, 0)
}

// From fills in what a request and what came of it tell: at most what needs Body, Wrote, Now, Took and RTT is left. resp is
// nil if err is not.
func From(req *http.Request, resp *http.Response, err error) Attempt {
	a := Attempt{Err: err, Sight: sight.OfError(req.Context(), err), Idempotent: Idempotent(req), Ended: req.Context().Err() != nil}
	a.Once = req.Body != nil && req.Body != http.NoBody && req.GetBody == nil
	if req.URL != nil {
		a.Provider, _ = quota.ForHost(req.URL.Host)
	}
	if resp != nil {
		a.Status, a.Header = resp.StatusCode, resp.Header
	}
	return a
}

// Idempotent reports whether a request may be processed twice: by its method, or because its server can tell that it has
// had it. As net/http has it, the presence of an Idempotency-Key is enough.
func Idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	if _, ok := r.Header["Idempotency-Key"]; ok {
		return true
	}
	_, ok := r.Header["X-Idempotency-Key"]
	return ok
}
