// Package classify says what one attempt at a request proves: how it ended, whom a refusal concerns, what the server says is left, whether
// to send it again, and how long to stay away.
//
//	Evidence    what is known of one try: status, header, body, or an error; and of its request
//	Policy     who reads the answer, and how long is waited for
//	Verdict    what follows: the Outcome for limiters, the Scope, Again or Why not
//
// It is for code that sends requests under a limit: the Send of a pool.Pool returns Verdict.Answer, and the Permit of a paceline.Gate
// is settled with Verdict.Outcome. What the words of a server mean is the matter of package provider; when the next request may go, that of
// package limit.
//
// It owns no clock, lock or goroutine, reads no body by itself, and keeps no state: equal attempts have equal verdicts. All of it is safe
// for concurrent use. No answer, however odd, is an error.
package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/internal/send/neterr"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/provider"
)

// Policy is how attempts are judged. The zero value is ready.
type Policy struct {
	// Dialect reads all answers. If nil, the Evidence's Provider does; if that is nil, too, each answer is read as what it looks like.
	Dialect provider.Dialect
	// MaxRetryAfter is the longest that a caller waits because a server asked to: a request that would have to wait longer is not sent
	// again. If zero, there is no such bound, which is right for a queue; if negative, nobody waits.
	MaxRetryAfter time.Duration
	// MaxPause is the longest that anybody stays away because a server asked to and nothing vouches for it. Set it where the limiters do
	// not send one request first after a pause, as those of a Pool and of a transport do. If zero, as long as the server asks, which is
	// provider.MaxWait at most.
	MaxPause time.Duration
	// Guess says to look for refusals with status 200 of unknown servers, too: a short body that is like a refusal of a provider that
	// refuses so.
	Guess bool
	// Repeat says that every request counts as idempotent: what may have been processed is sent again.
	Repeat bool
}

// Evidence is what is known of one try at sending a request. The zero Evidence got no answer, for an unknown reason. From fills in most
// fields.
type Evidence struct {
	// Status, Header and Body are the answer's; Status 0: there is no answer. The first provider.MaxBody bytes of the body are enough. Body
	// is looked at only where Policy.NeedsBody says so.
	Status int
	Header http.Header
	Body   []byte
	// Err is why there is no answer, or not a whole one.
	Err error
	// Wrote says whether any part of the request was written. If Unclear, Err tells, where NeverSent can.
	Wrote Wrote
	// Link is what Err shows of the way to the server, if there is no answer.
	Link limit.Link
	// Now is when the answer was read, by the wall clock. It is for times that servers give as an instant. If zero, the server's Date.
	Now time.Time
	// Took is the time from before anything of the request was written until Now. A server that says how long it worked on the request is
	// believed up to that. If zero, it is not believed.
	Took time.Duration
	// RTT becomes the RTT of the Outcome.
	RTT time.Duration

	// Provider is the dialect of the host, if that is known: see provider.ForHost. Shown is what earlier answers of the host have shown it
	// to be: see Verdict.Shown. Provider is believed in any case; Shown gives way to what an answer looks like.
	Provider, Shown provider.Dialect
	// Idempotent says that it does no harm if the request is processed twice. See the function Idempotent.
	Idempotent bool
	// Model says that the request names a model, so that an overload may be that of the model.
	Model bool
	// Nonce says that the request carries a number that must rise. A refusal may then be read, by its text, as being about that.
	Nonce bool
	// Refills has the units whose resets in this answer are only when a bucket is full again, which nobody has to wait for: limit.Refills says
	// which these are, of the Outcome as it is without this.
	Refills uint8
	// Last says that there is no attempt left; Once, that the request's body cannot be read again.
	Last, Once bool
	// Ended says that nobody waits for the request any more; Resends, that its client by itself sends again what got no answer.
	Ended, Resends bool
}

// Wrote says whether a request was written.
type Wrote uint8

const (
	Unclear   Wrote = iota
	Nothing         // not one byte of it
	Something       // at least one byte may have left this machine
)

// Verdict is what an attempt proves. Its Outcome is for a limiter that is concerned by all limits of the server; use For to make the
// Outcome of a limiter that only some of them concern.
type Verdict struct {
	// Outcome has the Result; for each unit that the answer speaks of what is left, with a Reset of 0 if it did not say; and RetryAfter,
	// how long to stay away, at most Policy.MaxPause. If the Result is limit.Limited, RetryAfter is for all requests that Scope names; if
	// it is limit.Failed, for this one. If it is less than Asked, one request should go first when it is over.
	limit.Outcome
	// Scope says whose requests a refusal concerns. If empty, only this one, or it was no refusal.
	Scope provider.Scope
	// Asked is how long the server asks to stay away, by a Retry-After or by the resets of what is used up: 0 … provider.MaxWait. 0: it does
	// not say.
	Asked time.Duration
	// Again says to send the request again, not before RetryAfter is over. If it failed or was refused and Again is false, Why says in
	// words what stands in the way.
	Again bool
	Why   string
	// Theirs says that the caller has to decide whether to send it again: only the caller can tell whether that does harm, or can make the
	// body again.
	Theirs bool
	// Invalid says that no later attempt may be made, with this or another key: the result would be the same, or the request may have
	// been processed, or the server forbids it.
	Invalid bool
	// Banned says that the key was refused for good; another may do better.
	Banned bool

	// Status and Err are those of the Evidence.
	Status int
	Err    error
	// Said is what the answer says of limits. The zero Observation: it was not looked at.
	Said provider.Observation
	// Shown is who the server is, by a header that only one provider sends. Put it into Evidence.Shown for its next answers. Nil: nothing
	// new is known.
	Shown provider.Dialect

	now time.Time
}

// These are what Why may say.
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
func (p *Policy) Of(a *Evidence) (v Verdict) {
	v.RTT, v.Status, v.Err = a.RTT, a.Status, a.Err
	if a.Status <= 0 {
		p.unanswered(a, &v)
		return v
	}
	v.Link = neterr.OfStatus(a.Status)
	p.read(a, &v)
	why := v.Said.Refusal
	switch {
	case why == provider.None && a.Status < 400 && a.Err == nil:
		v.Result = limit.Accepted
	case limits(&v.Said):
		v.Result = limit.Limited
	default:
		v.Result = limit.Failed
	}
	if why != provider.None {
		v.Scope = scopeOf(&v.Said, a.Model)
		v.Misordered = why == provider.Misordered
		v.Overloaded = why == provider.Overloaded || why == provider.TooMany
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
func (p *Policy) unanswered(a *Evidence, v *Verdict) {
	v.Status, v.Link = 0, a.Link
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

// refused judges an attempt that a limit refused. It was not processed, so it may be sent again whatever it is.
func (p *Policy) refused(a *Evidence, v *Verdict) {
	o := v.Outcome
	o.RetryAfter = asked(v.now, &v.Said)
	o.Refilled(a.Refills)
	v.Asked = o.RetryAfter
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case v.Said.Refusal == provider.Banned:
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
func (p *Policy) failed(a *Evidence, v *Verdict) {
	why := v.Said.Refusal
	switch {
	case why == provider.Unpaid:
		v.Why, v.Banned = whyUnpaid, true
		return
	case why == provider.TooLarge:
		v.Why, v.Invalid = whyTooLarge, true
		return
	case why == provider.Misordered: // the same again would be in vain, but not with a new nonce
		v.Why = whyNonce
		return
	case !mayPass(a, why):
		v.Invalid = true
		return
	}
	v.Asked = min(max(v.Said.RetryAfter, 0), provider.MaxWait)
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case forbids(a.Header):
		v.Why, v.Invalid = whyForbids, true
	case why != provider.Conflict && a.Status != http.StatusTooEarly && !a.Idempotent && !p.Repeat:
		v.Why, v.Theirs, v.Invalid = whyDoubt, true, true
	case v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	default:
		v.resend(a)
	}
}

// resend decides whether a request that may be sent again can be.
func (v *Verdict) resend(a *Evidence) {
	switch {
	case a.Last:
		v.Why = whyLast
	case a.Once:
		v.Why, v.Theirs = whyOnce, true
	default:
		v.Again = true
	}
}

// mayPass reports whether a failure may go away by itself.
func mayPass(a *Evidence, why provider.Refusal) bool {
	switch {
	case why == provider.Overloaded || why == provider.Conflict:
		return true
	case a.Status < 400:
		return a.Err != nil // the answer was broken off
	case a.Status == http.StatusRequestTimeout || a.Status == http.StatusTooEarly:
		return true
	}
	return a.Status >= 500 && a.Status != http.StatusNotImplemented && a.Status != http.StatusHTTPVersionNotSupported
}

// forbids reports whether a server asks not to try again, whatever the status.
func forbids(h http.Header) bool {
	return h.Get("X-Should-Retry") == "false" || h.Get("Stripe-Should-Retry") == "false"
}

// patience returns the longest that a caller waits.
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

// InTime clears Again if the request would have to wait longer than is left until its deadline. wait is RetryAfter, or that and what the
// sender adds to it.
func (v *Verdict) InTime(wait, left time.Duration) {
	if v.Again && left < wait {
		v.Again = false
		v.Why = fmt.Sprintf("it would have to wait for %v, and its deadline comes first", wait)
	}
}

// Answer is what the Send of a pool.Pool returns. The Pool itself counts the attempts, and gives each a nonce of its own, so Last,
// Once and a used-up nonce do not end a request there. Unlike the callers of package transport, a Pool waits for a ban whose end is
// known, and asks another key after a 401 or 403.
func (v Verdict) Answer() dispatch.Answer {
	policies, capacity := v.Policies(everybody)
	denied := v.Result == limit.Failed && (v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden)
	return dispatch.Answer{Outcome: v.Outcome, Capacity: capacity, Stated: Stated(policies), Invalid: v.Invalid, Banned: v.Banned, Denied: denied, Reason: v.reason()}
}

// reason returns what a dead letter says.
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
	if why := v.Said.Refusal; why != provider.None {
		s += ": " + string(why)
	}
	if v.Invalid && v.Why != "" {
		s += "; " + v.Why
	}
	return s
}

// statusText returns a status for people: "503 Service Unavailable".
func statusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return fmt.Sprintf("%d %s", status, t)
	}
	return fmt.Sprintf("status %d", status)
}

// worked returns how long before its answer a request had surely arrived, if the server says that it worked on it for so long. The server
// may have rounded, and its clock may be fast by 0.01 %. A time that is not less than the round trip is not believed.
func worked(said, took time.Duration) time.Duration {
	if said -= time.Millisecond + said/10_000; said >= took {
		return 0
	}
	return max(said, 0)
}

// From fills in what a request and its outcome tell; Body, Wrote, Now, Took and RTT may be left to fill in. resp is nil if err is not.
func From(req *http.Request, resp *http.Response, err error) Evidence {
	a := Evidence{Err: err, Link: neterr.OfError(req.Context(), err), Idempotent: Idempotent(req), Ended: req.Context().Err() != nil}
	a.Once = req.Body != nil && req.Body != http.NoBody && req.GetBody == nil
	if req.URL != nil {
		a.Provider, _ = provider.ForHost(req.URL.Host)
	}
	if resp != nil {
		a.Status, a.Header = resp.StatusCode, resp.Header
	}
	return a
}

// Idempotent reports whether a request may be processed twice: because of its method, or because its server can tell that it has had it.
// As in net/http, an Idempotency-Key is enough for that.
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
