package batch

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
)

// judge says what an attempt proves. final: it ends the request, and its result is to be written before the journal's
// answer.
func (r *Run) judge(j *job) (ans dispatch.Answer, final bool) {
	res := &j.res
	ans.RTT = res.rtt
	j.unsure = false
	switch {
	case res.err != nil && !res.written:
		ans.Result, ans.Reason = limit.Unsent, res.err.Error()
		return ans, false
	case res.err != nil && res.status == 0:
		ans.Result, ans.Reason = limit.Unknown, "no answer: "+res.err.Error()
		j.doubt, j.unsure = true, true
		if r.c.HoldUnanswered {
			ans.Invalid, ans.Reason = true, ans.Reason+": it may have been served, and is held back (--unanswered hold)"
			return ans, true
		}
		return ans, false
	}
	// It was answered, if only by half: so it has arrived.
	ans.Result = limit.Failed
	status := statusText(res.status)
	if res.err == nil && !r.ban[res.status] {
		if ans, final, ok := r.c.Format.judge(r, j); ok {
			return ans, final
		}
	}
	switch s := res.status; {
	case res.err != nil:
		ans.Reason = status + ", broken off: " + res.err.Error()
		j.doubt, j.unsure = true, true
		return ans, false
	case r.ban[s]:
		if said := messageOf(res.body, r.sender.redact); said != "" {
			status += ": " + said
		}
		ans.Banned, ans.Reason = true, status
		r.bannedOnce(j.key, status)
		return ans, false
	case isRedirect(s) && j.hop.count < r.c.Redirects:
		next, err := j.hop.next(res)
		if err != nil {
			ans.Invalid, ans.Reason = true, status+": "+err.Error()
			return ans, true
		}
		// The next hop is a request like another: it waits for a permit of its own.
		j.hop, j.unsure = next, true
		ans.Returned, ans.Reason = true, status
		return ans, false
	case s < 400:
		ans.Result = limit.Accepted
		return ans, true
	case s == http.StatusTooManyRequests:
		ans.Result, ans.Reason = limit.Limited, status
		ans.RetryAfter = retryAfter(res.header, res.ended)
		return ans, false
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s >= 500:
		ans.Reason = status
		if ans.RetryAfter = retryAfter(res.header, res.ended); s == http.StatusServiceUnavailable && ans.RetryAfter > 0 {
			ans.Result = limit.Limited // overload is a limit too
		}
		return ans, false
	}
	ans.Invalid, ans.Reason = true, status
	return ans, true
}

// bannedOnce tells that a key is out of use.
func (r *Run) bannedOnce(key, status string) {
	r.mu.Lock()
	told := slices.Contains(r.banned, key)
	r.banned = append(r.banned, key)
	r.mu.Unlock()
	if !told {
		r.c.Notice(fmt.Sprintf("key %s is banned: %s; it is not used any more", key, status))
	}
}
