package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// Policy is how attempts are judged. The zero value is ready.
type Policy struct {
	// Dialect reads all answers. If nil, the Evidence's Provider does. If that is nil too, the
	// format of each answer decides.
	Dialect provider.Dialect
	// MaxRetryAfter is the longest that a caller waits because a server asked to. A request with a
	// longer wait is not sent again. If zero, there is no such bound, which is right for a queue;
	// if negative, no caller waits.
	MaxRetryAfter time.Duration
	// MaxPause is the longest pause that a server asks for, if nothing vouches for it. Set it where
	// the limiters do not send one probe after a pause; those of a Pool and of a transport do. If
	// zero, as long as the server asks, which is provider.MaxWait at most.
	MaxPause time.Duration
	// Guess looks for refusals with status 200 of unknown servers too. Such a refusal is a short
	// body that is like a refusal of a provider that refuses so.
	Guess bool
	// Repeat makes every request count as idempotent: a request that may have been processed is
	// sent again.
	Repeat bool
	// RepeatPartly makes a request be sent again whose answer was served in part. Otherwise that is
	// only done if the request is idempotent.
	RepeatPartly bool
}

// Evidence is the facts about one attempt. The zero Evidence got no answer, for an unknown reason.
// From fills in most fields.
type Evidence struct {
	// Status, Header and Body are the answer's; Status 0: there is no answer. The first
	// provider.MaxBody bytes of the body are enough. Body is read only where Policy.NeedsBody
	// reports true.
	Status int
	Header http.Header
	Body   []byte
	// Err is why there is no answer, or no whole one.
	Err error
	// Wrote is whether any part of the request was written. If Unclear, Err decides, where
	// NeverSent can.
	Wrote Wrote
	// Link is what Err shows of the way to the server, if there is no answer.
	Link limit.Link
	// Now is when the answer was read, by the wall clock. It is for times that servers give as an
	// instant. If zero, the server's Date.
	Now time.Time
	// Took is the time from before anything of the request was written until Now. It bounds the
	// server's own statement of how long it worked on the request. If zero, that statement is
	// ignored.
	Took time.Duration
	// RTT becomes the RTT of the Outcome.
	RTT time.Duration

	// Provider is the dialect of the host, if that is known: see provider.ForHost. Shown is the
	// dialect that earlier answers of the host had: see Verdict.Shown. Provider always counts;
	// Shown gives way to the format of an answer.
	Provider, Shown provider.Dialect
	// Idempotent means that the request may be processed twice without harm. See the function
	// Idempotent.
	Idempotent bool
	// Model means that the request names a model, so that an overload may be that of the model.
	Model bool
	// Nonce means that the request carries a number that must rise. The text of a refusal may then
	// be about that number.
	Nonce bool
	// Refills has the units whose resets in this answer only say when a bucket is full again, so
	// that no request waits for them. Limiters that learn find it from the Outcome without this.
	Refills uint8
	// Upgrade means that the request asks for another protocol. Without it an answer 101 is no
	// success.
	Upgrade bool
	// Last means that no attempt is left; Once, that the request's body cannot be read again.
	// Patient means that the caller still has time to wait: a refusal by a limit, which passes, is
	// then never the last attempt.
	Last, Once, Patient bool
	// Refused means that the server refused the key last by a limit, and has served nothing with it since, as
	// stack.Stack.Refusals tells. A denial is then a ban that may end, and proves nothing of the request.
	Refused bool
	// Ended means that no caller waits for the request any more. Resends means that its client by
	// itself sends again after no answer.
	Ended, Resends bool
}

// Wrote is whether a request was written.
type Wrote uint8

const (
	Unclear   Wrote = iota
	Nothing         // not one byte of it
	Something       // at least one byte may have left this machine
)

// Verdict is the judgement on an attempt. Its Outcome is for a limiter that all limits of the
// server concern. Use For to make the Outcome of a limiter that only some of them concern.
type Verdict struct {
	// Outcome has the Result. For each unit in the answer it has what is left, with a Reset of 0 if
	// none was stated. RetryAfter is how long to stay away, at most Policy.MaxPause. If the Result
	// is limit.Limited, RetryAfter is for all requests in Scope; if it is limit.Failed, for this
	// one. If it is less than Asked, one request should go first when it is over.
	limit.Outcome
	// Scope is the scope of a refusal. If empty, only this request is concerned, or there was no
	// refusal.
	Scope provider.Scope
	// Asked is how long the server asks to stay away, by a Retry-After or by the resets of used-up
	// limits: 0 … provider.MaxWait. 0: not stated.
	Asked time.Duration
	// Again means to send the request again, not before RetryAfter is over. If the attempt failed,
	// was refused or served in part, and Again is false, Why is the reason in words.
	Why   string
	Again bool
	// Theirs means that the caller has to decide whether to send it again. Only the caller knows
	// whether that does harm, or can make the body again.
	Theirs bool
	// Invalid means that no later attempt may be made, with this or another key. The result would
	// be the same, the request may have been processed, or the server forbids it.
	Invalid bool
	// Banned means that the key was refused for good; another key may do better. Out is its state.
	Banned bool
	// Doubt means that the server may have processed the request, though no whole answer shows it.
	// Another attempt may be a repeat. The verdict says so whatever the request is: see Again.
	Doubt bool

	// Status and Err are those of the Evidence.
	Status int
	Err    error
	// Out is the state of a Banned key, a constant of package observe: a ban may end, a key without credit needs
	// money, and one that is denied has to be replaced.
	Out string
	// Said is what the answer states about limits. The zero Observation: the answer was not read.
	Said provider.Observation
	// Shown is the server's dialect, by a header that only one provider sends. Put it into
	// Evidence.Shown for the server's next answers. Nil: nothing new is known.
	Shown provider.Dialect

	now time.Time
}

// The values of Out, as in package observe.
const (
	banned   = "banned"
	noCredit = "no credit"
	denied   = "denied"
)

// The values of Why.
const (
	whyEnded    = "the context ended"
	whyResends  = "its client tries again by itself"
	whyDoubt    = "it may have been processed, and is neither idempotent nor has an Idempotency-Key"
	whyUnpaid   = "there is no credit: waiting does not help"
	whyKeyOut   = "waiting does not help"
	whyTooLarge = "it is larger than the limit: it never fits"
	whyNonce    = "its nonce is used up"
	whyBanned   = "it is banned"
	whyForbids  = "the server asks not to try again"
	whyPartly   = "a part of it was served"
	whySwitched = "the server switched to another protocol, which was not asked for"
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
	v.Link = linkOfStatus(a.Status)
	p.read(a, &v)
	why := v.Said.Refusal
	switch {
	case (why == provider.None && a.Status < 400 || v.Said.Partly) && a.Err == nil && !switched(a):
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
	switch {
	case v.Result == limit.Limited:
		p.refused(a, &v)
		return v
	case a.Refused && saysWhy(a.Status) && v.Result == limit.Failed && why != provider.Unpaid && !keyOut(a, why):
		p.banned(a, &v)
		return v
	case v.Result == limit.Failed:
		p.failed(a, &v)
	case v.Result == limit.Accepted:
		if v.Said.Partly {
			p.partly(a, &v)
		}
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
	v.Doubt = mayHaveServed(a, v)
	doubt := v.Doubt && !a.Idempotent && !p.Repeat
	v.Invalid = doubt
	switch {
	case a.Ended || errors.Is(a.Err, context.Canceled):
		v.Why = whyEnded
	case a.Resends:
		v.Why = whyResends
	case doubt:
		v.Why, v.Theirs = whyDoubt, true
	default:
		v.resend(a, a.Last)
	}
}

// refused judges an attempt that a limit refused. It was not processed, so any request may be sent
// again.
func (p *Policy) refused(a *Evidence, v *Verdict) {
	o := v.Outcome
	o.RetryAfter = asked(v.now, &v.Said)
	o.Refilled(a.Refills)
	v.Asked = o.RetryAfter
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case v.Said.Refusal == provider.Banned:
		if v.Why, v.Banned = whyBanned, v.Asked == 0; v.Banned {
			v.Out = banned
		}
	case p.MaxRetryAfter < 0 || v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	case forbids(a.Header):
		v.Why, v.Invalid = whyForbids, true
	default:
		v.resend(a, a.Last && !a.Patient)
	}
}

// banned judges a denial after refusals. It is no evidence of the limit. The request may be at fault all the same, so
// patience does not give it further attempts.
func (p *Policy) banned(a *Evidence, v *Verdict) {
	v.Result, v.Said.Refusal, v.Scope, v.Overloaded = limit.Limited, provider.Banned, provider.Key, true
	v.Asked = min(max(v.Said.RetryAfter, 0), provider.MaxWait)
	v.RetryAfter = p.bounded(v.Asked, v.Sure)
	switch {
	case p.MaxRetryAfter < 0 || v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	case forbids(a.Header):
		v.Why, v.Invalid = whyForbids, true
	default:
		v.resend(a, a.Last)
	}
}

// blindPause is how long to stay away after an answer that was served in part and names no time.
const blindPause = time.Second

// partly judges an answer that was served in part. It counts as served, and in full; those whom its
// refusal concerns stay away. The whole request is sent again only if that does no harm.
func (p *Policy) partly(a *Evidence, v *Verdict) {
	v.Doubt = mayHaveServed(a, v)
	o := v.Outcome
	o.RetryAfter = asked(v.now, &v.Said)
	o.Refilled(a.Refills)
	v.Asked = o.RetryAfter
	v.RetryAfter = p.bounded(cmp.Or(v.Asked, blindPause), v.Sure)
	switch {
	case !a.Idempotent && !p.RepeatPartly, v.Said.Refusal == provider.Banned, !limits(&v.Said) && v.Said.Refusal != provider.Overloaded:
		v.Why = whyPartly
	case p.MaxRetryAfter < 0 || v.Asked > p.patience():
		v.Why = p.tooLong(v.Asked)
	case forbids(a.Header):
		v.Why = whyForbids
	default:
		v.resend(a, a.Last)
	}
}

// failed judges an answer that is no refusal by a limit.
func (p *Policy) failed(a *Evidence, v *Verdict) {
	why := v.Said.Refusal
	v.Doubt = mayHaveServed(a, v)
	switch {
	case why == provider.Unpaid:
		v.Why, v.Banned, v.Out = whyUnpaid, true, noCredit
		return
	case keyOut(a, why):
		v.Why, v.Banned, v.Out = whyKeyOut, true, denied
		if provider.SaysBanned(provider.Message(a.Body)) {
			v.Out = banned
		}
		return
	case why == provider.TooLarge:
		v.Why, v.Invalid = whyTooLarge, true
		return
	case why == provider.Misordered: // the same nonce would be in vain, a new one would not
		v.Why = whyNonce
		return
	case switched(a):
		v.Why, v.Invalid = whySwitched, true
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
	case v.Doubt && !a.Idempotent && !p.Repeat:
		v.Why, v.Theirs, v.Invalid = whyDoubt, true, true
	case v.Asked > p.patience():
		v.Why, v.Invalid = p.tooLong(v.Asked), true
	default:
		v.resend(a, a.Last)
	}
}

// resend decides whether a request that may be sent again can be.
func (v *Verdict) resend(a *Evidence, last bool) {
	switch {
	case last:
		v.Why = whyLast
	case a.Once:
		v.Why, v.Theirs = whyOnce, true
	default:
		v.Again = true
	}
}

// mayHaveServed is the one law of what the server may have processed although no whole answer shows
// it. Every door sends such a request again only with a reason, and names the repeat. docs/repeats.md
// has it as a table.
//
//   - Without an answer: all that may have been written.
//   - After an answer: what failed in a way that may pass, as 408, 500, 502, 504 and a success that
//     was broken off do. A gateway fails so while the server behind it works on.
//   - Never what a limit, a lock or a used-up nonce refused, nor 425: the server says that it did
//     not begin. A failure that does not pass, as 400 or 501, is an answer, too.
//   - What was served in part, for sure: see provider.Observation.Partly.
//   - After a 101 that was not asked for: the answer may be in the other protocol.
func mayHaveServed(a *Evidence, v *Verdict) bool {
	switch why := v.Said.Refusal; {
	case a.Status <= 0:
		return v.Result == limit.Unknown
	case v.Said.Partly:
		return true
	case v.Result != limit.Failed, why == provider.Conflict, why == provider.Misordered, why == provider.Unpaid, why == provider.TooLarge,
		a.Status == http.StatusTooEarly:
		return false
	default:
		return mayPass(a, why) || switched(a)
	}
}

// keyOut reports whether a denial says in words that the key is out of use, without an end. Another one may be served.
func keyOut(a *Evidence, why provider.Refusal) bool {
	return why == provider.None && saysWhy(a.Status) && provider.SaysKeyOut(provider.Message(a.Body))
}

// saysWhy reports whether a status is that of a denial, of which the body may tell what became of the key.
func saysWhy(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// switched reports whether the server changed the protocol though the request did not ask for it.
func switched(a *Evidence) bool { return a.Status == http.StatusSwitchingProtocols && !a.Upgrade }

// mayPass reports whether a failure may pass by itself.
func mayPass(a *Evidence, why provider.Refusal) bool {
	switch {
	case why == provider.Overloaded || why == provider.Conflict:
		return true
	case a.Status < 400:
		return a.Err != nil && !switched(a) // the answer was broken off
	case a.Status == http.StatusRequestTimeout || a.Status == http.StatusTooEarly:
		return true
	}
	return a.Status >= 500 && a.Status != http.StatusNotImplemented && a.Status != http.StatusHTTPVersionNotSupported
}

// forbids reports whether a server forbids another attempt, whatever the status.
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

// bounded returns how long to stay away if the server asks for d.
func (p *Policy) bounded(d time.Duration, sure bool) time.Duration {
	if p.MaxPause <= 0 || sure {
		return d
	}
	return min(d, p.MaxPause)
}

// InTime clears Again if the wait is longer than left, the time until the request's deadline. wait
// is RetryAfter, or that with the sender's own delay added.
func (v *Verdict) InTime(wait, left time.Duration) {
	if v.Again && left < wait {
		v.Again = false
		v.Why = fmt.Sprintf("it would have to wait for %v, and its deadline comes first", wait)
	}
}

// Answer is the result for the Send of a pool.Pool. The Pool itself counts the attempts, and gives
// each its own nonce, so Last, Once and a used-up nonce do not end a request there. Unlike callers
// of package transport, a Pool waits for a ban of known end, and tries another key after a 401 or
// 403.
func (v Verdict) Answer() dispatch.Answer {
	policies, capacity := v.Policies(everybody)
	return dispatch.Answer{Outcome: v.Outcome, Capacity: capacity, Stated: Stated(policies), Invalid: v.Invalid,
		Banned: v.Banned, Out: v.Out, Denied: v.denied(), Reason: v.reason()}
}

// denied reports whether the key, or the way to the server, may be at fault and not the request.
func (v *Verdict) denied() bool {
	switch {
	case v.Result != limit.Failed:
		return false
	case v.Status == http.StatusUnauthorized, v.Status == http.StatusForbidden, v.Status == http.StatusProxyAuthRequired:
		return true
	}
	return v.Said.Denied
}

// reason returns the text for a dead letter.
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

// worked returns how long before its answer a request had surely arrived, from the server's
// statement of how long it worked on it. The server may have rounded, and its clock may be fast by
// 0.01 %. A time that is not less than the round trip is ignored.
func worked(said, took time.Duration) time.Duration {
	if said -= time.Millisecond + said/10_000; said >= took {
		return 0
	}
	return max(said, 0)
}

// From fills in the facts of a request and its outcome. The caller may add Body, Wrote, Now, Took
// and RTT. resp is nil if err is not.
func From(req *http.Request, resp *http.Response, err error) Evidence {
	a := Evidence{Err: err, Link: LinkOf(req.Context(), err), Idempotent: Idempotent(req), Ended: req.Context().Err() != nil}
	a.Upgrade = Upgrades(req.Header)
	a.Once = req.Body != nil && req.Body != http.NoBody && req.GetBody == nil
	if req.URL != nil {
		a.Provider, _ = provider.ForHost(req.URL.Host)
	}
	if resp != nil {
		a.Status, a.Header = resp.StatusCode, resp.Header
	}
	return a
}

// Upgrades reports whether the header of a request asks for another protocol, so that an answer 101
// is a success.
func Upgrades(h http.Header) bool { return len(h["Upgrade"]) > 0 }

// Idempotent reports whether a request may be processed twice: by its method, or because its server
// recognizes a repetition. As in net/http, an Idempotency-Key is enough for that.
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
