package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/paceline-go/paceline/internal/app/auth/bearer"
	"github.com/paceline-go/paceline/internal/app/auth/issuer"
	"github.com/paceline-go/paceline/internal/app/run/hide"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// Bearer is the source of the {token} of a run, and says how often there is a new token.
type Bearer struct {
	Issuer issuer.Issuer
	bearer.Config
}

// newBearer prepares the run to get tokens, if its templates use any.
func (r *Run) newBearer() {
	if r.c.Bearer == nil {
		return
	}
	h := hide.WithTokens(r.c.secretKeys())
	r.secrets.Finder = h
	r.tokens = issuer.New(issuer.Config{
		Issuer: r.c.Bearer.Issuer, Life: r.c.Bearer.Config, Notice: func(s string) { r.c.Notice(s) },
		New: func(token string) {
			h.Learn(token)
			if slices.Contains(h.Weak(), "token") && r.IsFirst("weak token") {
				r.Say("where an answer repeats the token it is not hidden: it is too short, or too easy to guess, to be told " +
					"from other text")
			}
		},
		Over: r.noTokens,
	})
}

// noTokens ends the run, since it has no token to send.
func (r *Run) noTokens(err error) {
	text, _ := r.secrets.HideIn(err.Error())
	why := error(exhausted(text))
	if errors.Is(err, issuer.ErrNone) {
		why = unauthorized(text)
	}
	r.course.goesWrong(why)
}

// unauthorized says that nothing was sent, because the issuer gave no token. It is an ErrConfig.
type unauthorized string

func (e unauthorized) Error() string   { return fmt.Sprintf("%s; %v", string(e), ErrUnsent) }
func (e unauthorized) Unwrap() []error { return []error{ErrConfig, ErrUnsent} }

// pass gets a token for an attempt. It returns false if the attempt had to wait for the token: its
// permit is then old.
func (r *Run) pass(ctx context.Context, j *job) bool {
	if r.tokens == nil {
		return true
	}
	p, ok := r.tokens.Take(ctx)
	j.token = p
	return ok
}

// tokenJudged takes in what an attempt proves about its token. It reports whether the request goes
// again with another token, which does not count as an attempt.
func (r *judge) token(j *job) (again bool) {
	if r.tokens == nil || j.hop.Foreign || j.token.Generation == 0 {
		return false
	}
	switch {
	case j.res.Status == 0:
		r.tokens.Unanswered(j.token)
	case j.res.Status != http.StatusUnauthorized:
		r.tokens.Answered(j.token)
	default:
		before := j.refused != 0 && j.refused != j.token.Generation
		j.refused = j.token.Generation
		return r.tokens.Refused(j.token, before, said(statusText(j.res.Status), j.res.Body, r.secrets.Of(j.r))) != bearer.Own
	}
	return false
}

// renewed returns the answer for a request that goes again with another token.
func (r *judge) renewed(j *job, ans pool.Answer) pool.Answer {
	ans.Reason = said(ans.Reason, j.res.Body, r.secrets.Of(j.r))
	ans.Result, ans.Returned = limit.Failed, true
	ans.Invalid, ans.Denied, ans.Banned = false, false, false
	return ans
}
