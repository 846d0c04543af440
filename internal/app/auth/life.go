package auth

import (
	"cmp"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Token is a text that identifies the sender of a request.
type Token struct {
	Value string
	Lasts time.Duration // its life from the instant of asking; 0: not known
}

// LifeConfig describes the lives of tokens.
type LifeConfig struct {
	// Every is the interval between two tokens, whatever their end. If zero, a new token is asked
	// for shortly before the end of the present one.
	Every time.Duration
	// Patience is the longest time without a new token. After it the run gives up. If zero, ten
	// minutes.
	Patience time.Duration
}

const (
	// A new token is asked for a fourth of the life before its end, but at most a minute. The old
	// token is no longer sent a twentieth of its life before its end, but at most a second.
	earlyPart, earlyMost = 4, time.Minute
	edgePart, edgeMost   = 20, time.Second
	// trial is how long the first request with a token goes alone, unless its answer comes earlier.
	trial = 5 * time.Second
	// fewRefused and manyRefused are the numbers of refused new tokens in a row after which the run
	// gives up. fewRefused holds if no token has ever served, manyRefused if one has.
	fewRefused, manyRefused = 2, 3

	defaultPatience = 10 * time.Minute
)

var again = backoff.Policy{Base: time.Second}

// life is the life of the tokens of one run, one after the other. It is arithmetic on a now that the
// caller supplies, without clock or lock. newLife makes it. It is not safe for concurrent use.
type life struct {
	c     LifeConfig
	token Token
	// generation numbers the tokens; 0: there is none yet.
	generation int
	renew, end mono.Time // when another token is asked for, and when this one is no longer sent

	refused bool      // the token was refused, and is no longer sent
	proven  bool      // the token has served
	alone   bool      // one request goes first with the token
	trying  mono.Time // the end of the trial, while the others wait; 0: the first request has not gone

	asked    mono.Time // when the awaited token was asked for
	asking   bool      // a token is awaited
	next     mono.Time // the earliest instant to ask for a token
	failures int       // requests for a token that failed, in a row
	since    mono.Time // the first of these failures

	served bool // some token has served
	futile int  // new tokens refused in a row, none of which served
}

// newLife returns a life without a token.
func newLife(c LifeConfig) *life {
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	return &life{c: c}
}

// Pass is the token of one request.
type Pass struct {
	Value      string
	Generation int
	first      bool // the request goes alone
}

// Ready reports whether a request may go now, and whether the caller must ask for a token now. If
// the request may not go, wake is the instant of the next call, unless another method with news is
// called before. wake is limit.AfterSettle if only such a call helps.
func (l *life) Ready(now mono.Time) (ready, ask bool, wake mono.Time) {
	wake = limit.AfterSettle
	has := !l.without(now)
	if wants := !has || now >= l.renew; wants && !l.asking {
		if ask = now >= l.next; !ask {
			wake = l.next
		}
	}
	if has && l.alone && l.trying > now {
		return false, ask, min(wake, l.trying)
	}
	return has, ask, wake
}

// Take gives the token to a request. Ready has said that it may go.
func (l *life) Take(now mono.Time) Pass {
	if l.trying != 0 { // the first request has had its time
		l.alone = false
	}
	p := Pass{Value: l.token.Value, Generation: l.generation, first: l.alone}
	if l.alone {
		l.trying = now.Add(trial)
	}
	return p
}

// Asks notes that the caller asks for a token now.
func (l *life) Asks(now mono.Time) { l.asking, l.asked = true, now }

// complaint is a fault of a new token, or empty.
type complaint string

const (
	fine    complaint = ""
	same    complaint = "it is the token that was refused"
	expired complaint = "the token has expired already, or the clock of this machine is wrong"
)

// Issued takes a new token. If it returns a complaint, it has not taken the token, and the caller
// must call Failed.
func (l *life) Issued(now mono.Time, t Token) complaint {
	renew, end := limit.Never, limit.Never
	switch {
	case l.c.Every > 0:
		renew = l.asked.Add(l.c.Every)
	case t.Lasts != 0:
		renew = l.asked.Add(t.Lasts - min(t.Lasts/earlyPart, earlyMost))
		end = l.asked.Add(t.Lasts - min(t.Lasts/edgePart, edgeMost))
	}
	switch {
	case l.refused && t.Value == l.token.Value:
		return same
	case end <= now:
		return expired
	}
	suspect := l.generation == 0 || l.refused
	l.token, l.renew, l.end = t, renew, end
	l.generation++
	l.asking, l.failures = false, 0
	l.refused, l.proven, l.alone, l.trying = false, false, suspect, 0
	return fine
}

// Failed notes that the issuer gave no token. It returns the instant for the next try. over means
// that no try makes sense. Either there never was a token, or the last one has ended and none has
// come for Patience.
func (l *life) Failed(now mono.Time) (next mono.Time, over bool) {
	l.asking = false
	if l.failures++; l.failures == 1 {
		l.since = now
	}
	l.next = now.Add(again.Delay(l.failures, nil))
	return l.next, l.generation == 0 || l.without(now) && now.Sub(l.since) >= l.c.Patience
}

// Lacks returns the instant since when the issuer gives no token, if no token may be sent. It
// returns false if one may be sent, or if no try has failed so far.
func (l *life) Lacks(now mono.Time) (since mono.Time, lacks bool) {
	return l.since, l.failures > 0 && l.without(now)
}

// without reports whether no token may be sent; end is 0 before the first token.
func (l *life) without(now mono.Time) bool { return l.refused || now >= l.end }

// Verdict is the fate of a request whose token was refused.
type Verdict uint8

const (
	// Again: the request goes again, with another token.
	Again Verdict = iota
	// Own: the request was refused with several tokens, while other requests were served. The
	// request itself may be at fault.
	OwnFault
	// Over: the server refuses new tokens, too, so that more of them do not help.
	Over
)

// Refused notes that the server refused a request for its token. before means that the request had
// been refused with another token, too.
func (l *life) Refused(now mono.Time, p Pass, before bool) Verdict {
	if p.Generation != l.generation || l.refused {
		return Again
	}
	l.trying = 0
	if l.proven { // the token served before
		l.refused, l.next = true, now
		return Again
	}
	l.futile++
	switch {
	case l.futile >= manyRefused, !l.served && l.futile >= fewRefused:
		l.refused, l.next = true, limit.Never
		return Over
	case before && l.served:
		l.alone = true // the next request shows where the fault is
		return OwnFault
	}
	l.refused, l.next = true, now
	if l.futile > 1 {
		l.next = now.Add(again.Base)
	}
	return Again
}

// Answered notes an answer that does not refuse the token. It reports whether other requests have
// waited for it.
func (l *life) Answered(p Pass) (news bool) {
	l.served, l.futile = true, 0
	if p.Generation == l.generation {
		news = l.alone
		l.proven, l.alone = true, false
	}
	return news
}

// Unanswered notes the end of a request without an answer. It reports whether another request may
// try the token now.
func (l *life) Unanswered(p Pass) (news bool) {
	news = p.first && p.Generation == l.generation && l.alone
	if news {
		l.trying = 0
	}
	return news
}

// Any reports whether there ever was a token.
func (l *life) Any() bool { return l.generation > 0 }
