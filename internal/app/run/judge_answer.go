package run

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// newPolicy returns the policy for judging attempts. No person waits for an answer, so a server may
// ask for a pause of any length, and the whole key keeps it. A request that may have been processed
// is sent again. Its result says that it may be a repeat.
func (c *Config) newPolicy() classify.Policy {
	p := classify.Policy{Dialect: c.Provider, Repeat: true, RepeatPartly: c.Partly == PartlyAgain, Guess: true}
	if p.Dialect == nil {
		p.Dialect = c.Format.Dialect()
	}
	return p
}

// judge decides what attempts prove, and how their requests go on. Safe for concurrent use.
type judge struct {
	c       *Config
	policy  classify.Policy
	secrets *format.Secrets
	sender  *sending.Sender
	tokens  *auth.Keeper // nil: requests carry no tokens
	tally   *tally.Tally
	hosts   *hosts
	denials *denials
	teller  *telling.Teller
	course  *course
	last    atomic.Pointer[knownHost]
	paged   atomic.Bool  // an answer, also of an earlier run, had something where Config.Next looks
	unpaged atomic.Int64 // answers that had nothing there
}

// verdict returns the evidence of a job's attempt, by the policy alone.
func (r *judge) verdict(j *job) classify.Verdict {
	res := &j.res
	try := classify.Evidence{
		Status: res.Status, Header: res.Header, Body: res.Body, Err: res.InWords(), Link: res.Sight,
		Wrote: classify.Nothing, RTT: res.RTT,
		Now: res.Ended, Nonce: r.c.nonces, Upgrade: !res.Switched,
	}
	if res.Written {
		try.Wrote = classify.Something
	}
	if j.hop.URL != nil {
		try.Provider = r.provider(j.hop.URL.Host)
	}
	v := r.policy.Of(&try)
	if v.Said.Partly && !v.Again && idempotent(j) {
		try.Idempotent = true
		v = r.policy.Of(&try)
	}
	return v
}

// knownHost is a host, and the dialect of the provider there; nil: the provider is not known.
type knownHost struct {
	name     string
	provider provider.Dialect
}

// provider returns the dialect of the provider at a host. It keeps the last one, since most
// requests go to the same host.
func (r *judge) provider(host string) provider.Dialect {
	last := r.last.Load()
	if last == nil || last.name != host {
		last = &knownHost{name: host}
		last.provider, _ = provider.ForHost(host)
		r.last.Store(last)
	}
	return last.provider
}

// judge decides what an attempt proves, and how its request goes on. final says that the request
// ends here, whatever other keys answer. Its result must then be written before the answer in the
// journal.
func (r *judge) of(j *job) (ans pool.Answer, final bool) {
	if w := j.res.Way; w != nil && r.isShut(w) {
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Implied}, Returned: true,
			Reason: w.Error()}, false
	}
	foreign := j.hop.Foreign
	ans = r.answer(j)
	if foreign {
		ans = aside(ans)
	}
	if j.astray = r.hosts.isAstray(j, &ans); j.astray {
		r.hosts.blame(j, &ans, r.secrets)
	}
	if ans.Banned && (j.unpaid || j.keyOut) && !r.isForAll(j) {
		ans.Banned, ans.Invalid, ans.Denied = false, true, true
	}
	if ans.Banned {
		if j.res.Status == http.StatusUnauthorized && !j.unpaid { // the server may never have known it
			ans.Out = observe.KeyDenied
		}
		r.teller.TellBan(j.key, outWords[ans.Out], ans.Reason)
	}
	if ans.Invalid && ans.Denied && r.deniedItself(j) {
		ans.Denied = false
	}
	return ans, ans.Invalid && !ans.Denied || ans.Result == limit.Accepted
}

// outWords say that a key is out of use, by pool.Answer.Out.
var outWords = map[string]string{"": "is banned", observe.KeyBanned: "is banned", observe.KeyNoCredit: "has no credit",
	observe.KeyDenied: "is denied"}

// answer is the part of judge that does not depend on the host of the answer.
func (r *judge) answer(j *job) (ans pool.Answer) {
	v := r.verdict(j)
	slow := false
	if j.seen.IsOpen() {
		slow = r.compares(j, &v)
		r.noticed(j, &v)
	}
	ans = r.judged(j, &v)
	ans.Slow = slow
	if ans.Result == v.Result {
		r.divide(j, &v, &ans)
	}
	return ans
}

// judged is answer before it is divided.
func (r *judge) judged(j *job, v *classify.Verdict) (ans pool.Answer) {
	res := &j.res
	again := r.token(j)
	ans = v.Answer()
	j.unsure, j.held, j.unlike, j.parts, j.usage, j.cut = v.Doubt, false, false, nil, nil, false
	if v.Said.Partly {
		parts := v.Said.Parts // or all of the verdict would be kept
		j.parts = &parts
	}
	ans.Reason = statusText(res.Status)
	j.unpaid, j.noQuota = v.Said.Refusal == provider.Unpaid, v.Said.Refusal == provider.NoQuota
	j.keyOut = v.Banned && v.Said.Refusal == provider.None
	switch s := res.Status; {
	case v.Result == limit.Unsent:
		ans.Reason, ans.Returned = res.Err.Error(), r.c.Base != nil // the way to the host is the Base's affair
	case s == 0:
		ans.Reason = "no answer: " + res.Err.Error()
	case res.Err != nil:
		ans.Reason += ", broken off: " + res.Err.Error()
	case again:
		ans = r.renewed(j, ans)
	case slices.Contains(r.c.BanStatus, s):
		ans.Reason = said(ans.Reason, res.Body, r.secrets.Of(j.r))
		ans.Result, ans.Banned, ans.Invalid = limit.Failed, true, false
	case sending.IsRedirect(s) && j.hop.Count < r.c.Redirects:
		next, err := r.sender.Follow(j.r, j.hop, res)
		if err != nil {
			_, j.keyHost = errors.AsType[sending.KeyStays](err)
			ans.Result, ans.Invalid, ans.Reason = limit.Failed, true, ans.Reason+": "+err.Error()
			break
		}
		// The next hop is sent like a request of its own: it waits for its own permit.
		j.hop, j.unsure = next, true
		ans.Result, ans.Returned = limit.Failed, true
		return ans
	case r.c.nonces && ans.Result == limit.Failed && slices.Contains(r.c.NonceStatus, s):
		ans.Misordered, ans.Invalid, ans.Denied, j.unsure = true, false, false, false
		ans.Reason = said(ans.Reason, res.Body, r.secrets.Of(j.r))
	case ans.Result == limit.Failed && !ans.Banned && slices.Contains(r.c.OKStatus, s):
		ans = pool.Answer{Outcome: ans.Outcome, Reason: ans.Reason}
		ans.Result, j.unsure = limit.Accepted, false
		r.read(j, v, &ans)
	default:
		r.read(j, v, &ans)
	}
	r.doubts(j, &ans)
	return ans
}

// read judges what a whole answer says: its body decides, too.
func (r *judge) read(j *job, v *classify.Verdict, ans *pool.Answer) {
	res := &j.res
	bare := ans.Reason
	if r.c.Meter != nil {
		r.prompt(j, ans)
	}
	if ans.Reason == bare && (ans.Banned || ans.Result == limit.Limited || res.Status >= http.StatusBadRequest) {
		ans.Reason = said(bare, res.Body, r.secrets.Of(j.r))
	}
	if j.noQuota {
		r.excluded(j, ans)
	}
	if res.TooLong && ans.Result == limit.Accepted {
		ans.Result, ans.Invalid, ans.Reason = limit.Failed, true,
			fmt.Sprintf("%s, with a body of more than %d bytes (--max-file)", ans.Reason, r.c.MaxFile)
	}
	if j.parts != nil && ans.Result == limit.Accepted {
		r.partly(j, v, ans)
	}
	if j.r != nil && j.r.Charge != nil {
		r.states(j, ans)
	}
	err := r.succeeds(res, ans)
	if err == nil && endsWell(ans) {
		err = r.findNext(j)
	}
	if err != nil && j.cut { // another answer would be cut at the same place, and cost as much
		ans.Invalid, err = true, fmt.Errorf("cut at the most tokens that the request allows (--max-tokens): %w", err)
	}
	j.cut = j.cut && (r.c.Success == nil || err != nil) // what has all that was asked for is not asked for again
	if err != nil {
		j.unlike = true
		ans.Result, ans.Reason = limit.Failed, said(ans.Reason+", "+err.Error(), res.Body, r.secrets.Of(j.r))
	} else if ans.Result == limit.Limited && res.Status < http.StatusMultipleChoices {
		ans.Reason = said(ans.Reason+", a refusal", res.Body, r.secrets.Of(j.r))
	}
	if ans.Result != limit.Accepted && v.Why != "" {
		ans.Reason += "; " + v.Why
	}
}

// doubts notes that another attempt may be a repeat: by classify's law, or since Config.Success
// refused an answer. What has no whole answer is held back, if the user wants that.
func (r *judge) doubts(j *job, ans *pool.Answer) {
	j.doubt = j.doubt || j.unsure || j.unlike
	if j.held = j.unsure && j.parts == nil && r.c.HoldUnanswered && ans.Result != limit.Accepted; j.held {
		ans.Invalid, ans.Denied = true, false
		ans.Reason += ": it may have been served, and is held back (--unanswered hold)"
	}
}

// aside returns the evidence of an answer from a host that did not receive the key. It is about the
// request, and not about the key.
func aside(ans pool.Answer) pool.Answer {
	return pool.Answer{
		Outcome: limit.Outcome{Result: ans.Result, Link: ans.Link, ArrivedAgo: min(ans.ArrivedAgo, 0),
			Elsewhere: ans.Result == limit.Limited},
		Invalid: ans.Invalid || ans.Banned, Reason: ans.Reason,
		Returned: ans.Returned && ans.Result != limit.Limited, // a limited request would go again at once
	}
}

// succeeds returns an error if an answer with a status of success is no success by Config.Success.
func (r *judge) succeeds(res *sending.Response, ans *pool.Answer) error {
	if r.c.Success == nil || !endsWell(ans) || res.Status/100 != 2 {
		return nil
	}
	if res.Cut {
		return errors.New("of which the end is missing (--max-response)")
	}
	return r.c.Success(res.Body)
}

func statusText(status int) string {
	if status == http.StatusOK {
		return "answered 200 OK"
	}
	return fmt.Sprintf("answered %d %s", status, http.StatusText(status))
}

// classOf is the class that a request would have as a dead letter, by its latest attempt.
func classOf(j *job, ans *pool.Answer) format.DeadClass {
	switch res := &j.res; {
	case j.held:
		return format.DeadHeld
	case j.parts != nil && ans.Invalid:
		return format.DeadPartly
	case j.astray:
		return format.DeadRedirected
	case j.noModel:
		return format.DeadNoModel
	case res.Err != nil:
		return format.DeadOutage
	case ans.Misordered:
		return format.DeadMisnumbered
	case ans.Result == limit.Limited && !ans.Invalid:
		return format.DeadLimited
	case res.Cut, ans.Result == limit.Limited: // its answer, or the request itself, is too large
		return format.DeadInvalid
	}
	switch {
	case j.unlike && j.cut:
		return format.DeadLength
	case j.unlike:
		return format.DeadInvalid
	}
	return format.DeadClassOfStatus(j.res.Status)
}

// deadOf is the class of a dead letter.
func deadOf(j *job, e *pool.Ended) format.DeadClass {
	if e.Reason != j.reason { // the queue gave the reason: a deadline
		return format.DeadExpired
	}
	return j.class
}

// prompt judges the answer to a request to a language model. If a refusal states when to come back, the
// prompt is not at fault. Its request is then sent again, however often that happens.
func (r *judge) prompt(j *job, ans *pool.Answer) {
	_, isBatch := r.c.Format.(*format.LLM)
	switch res := &j.res; {
	case res.Status >= http.StatusBadRequest || ans.Result == limit.Limited:
		ans.Reason = said(ans.Reason, res.Body, r.secrets)
		if j.noModel = format.SaysNoModel(res.Status, res.Body); j.noModel {
			ans.Result, ans.Invalid, ans.Denied = limit.Failed, true, false
		}
		ans.Returned = ans.Result == limit.Limited && ans.RetryAfter > 0
	case res.Status >= http.StatusMultipleChoices:
		// A redirect is no answer to a prompt: the address is wrong.
		ans.Result, ans.Invalid = limit.Failed, true
		if to := res.Header.Get("Location"); to != "" {
			flags := "--redirects"
			if isBatch {
				flags = "--base-url, --redirects"
			}
			to, _ = r.secrets.HideIn(to)
			ans.Reason += " to " + to + " (" + flags + ")"
		}
	case res.Cut && r.c.OutDir == "":
		ans.Result, ans.Invalid = limit.Failed, true
		ans.Reason = fmt.Sprintf("the answer is longer than %d bytes (--max-response)", r.c.MaxResponse)
	case res.Cut, res.Coded && !isBatch: // its usage is not read: the admitted cost stays
	default:
		r.served(j, ans)
	}
}

// served reads the usage that the answer of a language model reports.
func (r *judge) served(j *job, ans *pool.Answer) {
	a := meter.Read(j.r.Estimate.API, j.res.Header, j.res.Body)
	j.cut = a.Cut
	switch {
	case a.Broken != nil:
		j.unsure = true
		ans.Result, ans.Reason = limit.Failed, ans.Reason+", and "+a.Broken.Error()
	case j.parts == nil && a.Failed:
		j.unsure = true
		ans.Result, ans.Reason = limit.Failed, said(ans.Reason, j.res.Body, r.secrets)
	case a.Stated:
		s := r.c.Meter.Settle(j.r.Estimate, j.r.Cost, a.Usage)
		j.usage = &a.Usage
		r.tally.Used(j.r.Estimate.Model, a.Usage, s.Overrun)
		if s.Counts { // otherwise the server counts its own estimate, whatever the usage
			ans.Metered, ans.Actual = true, s.Cost
		}
	}
}

// said adds to a reason the message of an error of any server, on one line.
func said(reason string, body []byte, secrets format.Finder) string {
	const most = 200
	message, _ := secrets.HideIn(provider.Message(body)) // first: half a secret is not found
	switch {
	case message == "":
		return reason
	case len(message) > most:
		message = strings.ToValidUTF8(message[:most], "") + "…"
	}
	return reason + ": " + message
}

// failedOf returns in a word or two why an attempt failed; empty: it did not fail.
func failedOf(j *job, ans *pool.Answer) string {
	res := &j.res
	switch {
	case ans.Result == limit.Accepted && !ans.Invalid, ans.Returned &&
		ans.Result != limit.Limited: // it was redirected, or not sent
		return ""
	case res.Err != nil && res.Status != 0:
		return strconv.Itoa(res.Status) + ", broken off"
	case res.Err != nil:
		return res.Unanswered()
	case j.parts != nil:
		return strconv.Itoa(res.Status) + ", served in part"
	case res.Status/100 == 2 && j.unlike:
		return strconv.Itoa(res.Status) + ", no success"
	case res.Status/100 == 2:
		return strconv.Itoa(res.Status) + ", a refusal"
	}
	return strconv.Itoa(res.Status)
}

// Partly is how a run goes on after an answer of which a limit refused some parts.
type Partly uint8

const (
	// PartlyDone makes it the result of its request, which says so. A request that only reads goes
	// again, with the attempts that it has left.
	PartlyDone Partly = iota
	// PartlyAgain sends every such request again, as a possible repeat.
	PartlyAgain
	// PartlyHold makes a dead letter of every such request.
	PartlyHold
)

// PartlyNames are the names of the ways, in their order.
var PartlyNames = []string{"done", "again", "hold"}

// idempotent reports whether all that a request asks for may be done twice.
func idempotent(j *job) bool {
	if j.r == nil {
		return false
	}
	return classify.Idempotent(&http.Request{Method: j.hop.Method, Header: j.r.Header}) ||
		provider.Reads(j.r.Header, j.r.Body)
}

// partly decides about an answer that was served in part. It counts in full, so whatever becomes of
// its request, the limits learn of an answer and of a pause.
func (r *judge) partly(j *job, v *classify.Verdict, ans *pool.Answer) {
	ans.Reason += fmt.Sprintf(", served in part (%v)", *j.parts)
	switch {
	case v.Again && j.number < r.c.Attempts && r.c.Partly != PartlyHold:
		ans.Result = limit.Failed // it counts as one that was served
	case r.c.Partly == PartlyHold:
		ans.Invalid, ans.Reason = true, ans.Reason+": it is held back (--partly hold)"
	default:
		j.unsure = false // its answer is its result
	}
}

// endsWell reports whether an answer ends its request and is its result.
func endsWell(ans *pool.Answer) bool {
	return ans.Result == limit.Accepted && !ans.Returned && !ans.Banned && !ans.Invalid
}
