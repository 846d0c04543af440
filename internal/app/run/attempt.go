package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// job is a request on its way.
type job struct {
	r        *format.Request
	group    *group
	hop      sending.Hop
	size     int64
	repeat   bool             // it may have been served before
	doubt    bool             // an attempt may have been served
	unsure   bool             // the latest attempt may have been served, and has no answer that is a result
	held     bool             // it is not sent again for that reason
	number   int              // of the latest attempt
	parts    *provider.Parts  // of the latest answer, if it was served in part
	class    format.DeadClass // its class as a dead letter, by its latest attempt
	reason   string           // the same, in words
	failed   string           // why the latest attempt failed, in a word or two; empty: it did not fail
	astray   bool             // nothing came back from a host that only a redirect led to
	keyHost  bool             // a redirect was not followed, since a key would have gone with it
	first    bool             // it is the first request of its model
	noModel  bool             // there is no such model, as its answer says
	spared   bool             // its Pool counts an attempt that was not made, since its model or its address is wrong
	unpaid   bool             // the key has no credit, as its answer says
	keyOut   bool             // the key is out of use, as its answer says in words
	noQuota  bool             // the key may not use the model, since its limit is 0
	unlike   bool             // Config.Success refused its answer
	misfit   string           // why Config.Shape fails on its answer; empty: it does not
	room     chan struct{}    // in which it has room on its way to the results; nil: none
	key      string
	keyIndex int
	token    auth.Pass
	refused  int // generation of the token of the latest refusal
	refusals telling.Refusals
	n        int64 // number of its send in the journal; 0: the journal has its answer
	at       mono.Time
	seen     *costs.Seen
	waited   [2][]time.Duration // time waited for each cause, until it was submitted and until it was sent
	res      sending.Response
	row      *string // the row that Config.Shape made of the answer
	result   limit.Result
	usage    *tokens.Usage // that the latest answer of a language model states; nil: none
	cut      bool          // that answer was cut at the bound of its output
	cost     sending.Money // the cost of the latest attempt
	actual   *limit.Cost   // its use of the limits; nil: as much as was admitted
	hold     time.Time

	next  string            // the next page, as the results keep it; empty: there is none
	after *format.Request   // the request for that page
	stray *sending.Straying // why that page is not requested
	since mono.Time         // when this page could be sent, if it is not the first
	told  bool              // nothing more is written about it
}

// attempt is one attempt at a job, from the permit of its Pool to the steps after its answer.
type attempt struct {
	r     *Run
	g     *group
	j     *job
	a     pool.Attempt
	price sending.Money // reserved for it
	went  string        // the host to which it went, before a redirect
	ans   pool.Answer
	final bool // the request ends here, whatever other keys answer
}

// unsent is the answer of an attempt that was not made. Its request goes back to the queue.
var unsent = pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}

// gone is the answer of an attempt at a request that the backlog has taken back. It ends here, without a result.
var gone = pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Invalid: true, Reason: "it is back in the backlog"}

// send makes one attempt. It gets all that the attempt needs, sends the request, and takes the steps after its
// answer.
func (g *group) send(ctx context.Context, a pool.Attempt) pool.Answer {
	r := g.r
	at := attempt{r: r, g: g, j: a.Request.Value.(*job), a: a}
	land, ok := r.flights.TakeOff(ctx, a.Key)
	if !ok {
		return unsent
	}
	defer land()
	if at.isGone() {
		return gone
	}
	if at.isSpared() {
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Invalid: true, Reason: at.j.reason}
	}
	if !at.mayGo(ctx) {
		return unsent
	}
	j, key := at.j, r.c.Keys[a.Key]
	if j.doubt {
		j.repeat = true
	}
	j.key, j.keyIndex, j.at, j.number = key.Name, a.Key, a.At, a.Number
	j.waited[1] = g.waits.Until(time.Now())
	at.went = j.hop.Host
	if j.first {
		patience := time.AfterFunc(trialPatience, func() { r.trials.set(j.r.Estimate.Model, right) })
		defer patience.Stop()
	}
	if k := r.c.prices; (k.any || len(r.c.Limits) > 0) && j.hop.Count == 0 && !j.hop.Foreign {
		j.seen = k.notices.Began(j.r.URL.Host, key.Name, j.r.Cost, mostNoticed)
		defer k.notices.Ends(j.seen)
	}
	before := j.res // of the attempt before
	r.sender.Send(ctx, j.r, j.hop,
		&format.Values{Key: key.Secret, Token: j.token.Value, ID: j.r.ID, Nonce: a.Nonce, Attempt: a.Number, Cells: j.r.Cell},
		at.leave(), &j.res)
	if j.res.Lapsed {
		j.res = before
		return at.takeBack()
	}
	at.steps()
	return at.turn()
}

// isGone reports whether the backlog has taken the request back. Nothing more is told of it here then.
func (at *attempt) isGone() bool {
	r, j := at.r, at.j
	if r.c.Backlog == nil || r.c.Backlog.May(j.r.ID) {
		return false
	}
	j.told = true
	r.tally.Gone()
	if j.first {
		r.trials.set(j.r.Estimate.Model, untried)
	}
	return true
}

// isSpared reports whether a request was let in before an answer showed that its model or its address is wrong.
func (at *attempt) isSpared() bool {
	at.j.spared = at.r.trials.refuses(at.j)
	return at.j.spared
}

// mayGo gets all that an attempt needs beside its permit: room for its answer, money, a token, and
// a record in the journal. It returns false if the attempt does not go now.
func (at *attempt) mayGo(ctx context.Context) (ok bool) {
	r, j := at.r, at.j
	if !r.writer.enter(ctx, j) {
		return false
	}
	defer func() {
		if !ok {
			r.writer.release(j)
		}
	}()
	if r.course.isStopped() {
		return false
	}
	if at.price, ok = r.purse.reserve(ctx, j.r); !ok {
		return false
	}
	// The run may have stopped while the attempt waited for money, and its model have proved wrong.
	ok = !r.course.isStopped() && r.judge.takeToken(ctx, j) && !r.trials.isOver(j) && r.writer.sends(j, journal.Send{ID: j.r.ID,
		Attempt: at.a.Number, Key: at.g.name(at.a.Key), Nonce: at.a.Nonce, Cost: j.r.Cost, Price: int64(at.price)})
	if !ok {
		r.purse.giveBack(at.price)
	}
	return ok
}

// leave decides, right before an attempt is written, whether it may go. Nil: it may.
func (at *attempt) leave() sending.Fresh {
	g, c := at.g, &at.r.c
	if c.Share == nil && c.Backlog == nil {
		return nil
	}
	of := at.a // without a share and a backlog, the attempt then needs no place in memory
	return func() bool { return g.pool.Fresh(&of) && (c.Backlog == nil || c.Backlog.Fresh(of.Request.ID)) }
}

// takeBack returns a request to the queue. The leave for it had lapsed, and nothing was written.
func (at *attempt) takeBack() pool.Answer {
	r, j := at.r, at.j
	r.purse.giveBack(at.price)
	was := j.result
	j.result = limit.Unsent
	r.writer.answered(j)
	j.result = was
	r.writer.release(j)
	return unsent
}

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
