package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// Bearer is the source of the {token} of a run, and says how often there is a new token.
type Bearer struct {
	Issuer auth.Issuer
	auth.LifeConfig
}

// newTokens returns what gets the tokens of a run, and has secrets find them; nil: its templates use none.
func (c *Config) newTokens(secrets *format.Secrets, teller *telling.Teller, course *course) *auth.Keeper {
	if c.Bearer == nil {
		return nil
	}
	h := format.WithTokens(c.secretKeys())
	secrets.Finder = h
	return auth.New(auth.Config{
		Issuer: c.Bearer.Issuer, Life: c.Bearer.LifeConfig, Notice: func(s string) { c.Notice(s) },
		New: func(token string) {
			h.Learn(token)
			if slices.Contains(h.Weak(), "token") && teller.IsFirst("weak token") {
				teller.Say("where an answer repeats the token it is not hidden: it is too short, or too easy to guess, to be told " +
					"from other text")
			}
		},
		Over: func(err error) { // the run has no token to send
			text, _ := secrets.HideIn(err.Error())
			if errors.Is(err, auth.ErrNone) {
				course.goesWrong(unauthorized(text))
				return
			}
			course.goesWrong(exhausted(text))
		},
	})
}

// unauthorized says that nothing was sent, because the issuer gave no token. It is an ErrConfig.
type unauthorized string

func (e unauthorized) Error() string   { return fmt.Sprintf("%s; %v", string(e), ErrUnsent) }
func (e unauthorized) Unwrap() []error { return []error{ErrConfig, ErrUnsent} }

// takeToken gets a token for an attempt. It returns false if the attempt had to wait for the token: its
// permit is then old.
func (r *judge) takeToken(ctx context.Context, j *job) (ok bool) {
	if r.tokens == nil {
		return true
	}
	j.token, ok = r.tokens.Take(ctx)
	return ok
}

// token takes in what an attempt proves about its token. It reports whether the request goes
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
		return r.tokens.Refused(j.token, before, said(statusText(j.res.Status), j.res.Body, r.secrets.Of(j.r))) != auth.OwnFault
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
