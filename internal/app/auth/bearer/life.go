// Package bearer decides over the life of a token that is renewed while requests go: from when and until when it may be sent, which request
// tries a new one, what a refusal says of it, and when to ask for another. reply.go reads a token out of the reply of whoever issues it.
//
// It is arithmetic on a now that the caller supplies: no clock, no lock. internal/app/auth/issuer, an edge, gets tokens when it says so, and package
// batch sends them.
package bearer

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Token is a text that says who is asking.
type Token struct {
	Value string
	Lasts time.Duration // how long it lasts from when it was asked for; 0: nobody knows
}

// Config describes a Life.
type Config struct {
	// Every is how often a new token is asked for, whenever the present one may end. If zero, one is asked for shortly before that end.
	Every time.Duration
	// Patience is for how long no token may be given before the run gives up. If zero, ten minutes.
	Patience time.Duration
}

const (
	// A token is renewed, while it is still in use, a fourth of its time before its end, but at most a minute. It is no longer sent a
	// twentieth of its time before its end, but at most a second.
	earlyPart, earlyMost = 4, time.Minute
	edgePart, edgeMost   = 20, time.Second
	// trial is how long the first request with a token goes alone, unless it is answered before.
	trial = 5 * time.Second
	// fewRefused and manyRefused are how many new tokens in a row have to be refused before the run gives up: fewRefused if no token has
	// ever served, manyRefused if one has.
	fewRefused, manyRefused = 2, 3

	defaultPatience = 10 * time.Minute
)

var again = backoff.Policy{Base: time.Second, Max: 30 * time.Second}

// Life is the life of the tokens of one run, one after the other. Made by New. Not safe for concurrent use.
type Life struct {
	c     Config
	token Token
	// generation numbers the tokens; 0: there is none yet.
	generation int
	renew, end mono.Time // from when another token is asked for, and from when this one is no longer sent

	refused bool      // the token was refused, and is no longer sent
	proven  bool      // the token has served
	alone   bool      // one request goes first with the token
	trying  mono.Time // until when the others wait for that one; 0: it has not gone

	asked    mono.Time // when the token was asked for that is awaited
	asking   bool      // a token is awaited
	next     mono.Time // no token is asked for before
	failures int       // how often in a row no token was given
	since    mono.Time // the first of these failures

	served bool // some token has served
	futile int  // how many new tokens in a row were refused without having served
}

// New returns a Life without a token.
func New(c Config) *Life {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	return &Life{c: c}
}

// Pass is what a request goes with.
type Pass struct {
	Value      string
	Generation int
	first      bool // the request goes alone
}

// Ready says whether a request may go now, and whether a token has to be asked for now. If the request may not go, wake is when to call
// again, unless a method that tells something new is called before. It is limit.AfterSettle if only such a call helps.
func (l *Life) Ready(now mono.Time) (ready, ask bool, wake mono.Time) {
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
func (l *Life) Take(now mono.Time) Pass {
	if l.trying != 0 { // the first request was waited for long enough
		l.alone = false
	}
	p := Pass{Value: l.token.Value, Generation: l.generation, first: l.alone}
	if l.alone {
		l.trying = now.Add(trial)
	}
	return p
}

// Asks notes that a token is asked for now.
func (l *Life) Asks(now mono.Time) { l.asking, l.asked = true, now }

// Complaint is what is wrong with a token that was given. It is empty if nothing is.
type Complaint string

const (
	Fine    Complaint = ""
	Same    Complaint = "it is the token that was refused"
	Expired Complaint = "the token has expired already, or the clock of this machine is wrong"
)

// Issued takes in a token that was asked for. If it returns a Complaint, the token was not taken, and the caller has to call Failed.
func (l *Life) Issued(now mono.Time, t Token) Complaint {
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
		return Same
	case end <= now:
		return Expired
	}
	suspect := l.generation == 0 || l.refused
	l.token, l.renew, l.end = t, renew, end
	l.generation++
	l.asking, l.failures = false, 0
	l.refused, l.proven, l.alone, l.trying = false, false, suspect, 0
	return Fine
}

// Failed notes that no token was given. It returns when the next one will be asked for. over says that there is no sense in that: there
// never was a token, or there is none left and none was given for Patience.
func (l *Life) Failed(now mono.Time) (next mono.Time, over bool) {
	l.asking = false
	if l.failures++; l.failures == 1 {
		l.since = now
	}
	l.next = now.Add(again.Delay(l.failures, nil))
	return l.next, l.generation == 0 || l.without(now) && now.Sub(l.since) >= l.c.Patience
}

// Lacks says since when no token is given, if there is none that may be sent. It returns false if there is one, or if the first attempt to
// get one has not failed.
func (l *Life) Lacks(now mono.Time) (since mono.Time, lacks bool) {
	return l.since, l.failures > 0 && l.without(now)
}

// without tells whether there is no token that may be sent: end is 0 until there is one.
func (l *Life) without(now mono.Time) bool { return l.refused || now >= l.end }

// Verdict is what becomes of a request that was refused for its token.
type Verdict uint8

const (
	// Again says that the request goes again with another token.
	Again Verdict = iota
	// Own says that the request was refused with several tokens, while other requests were served. It may be its own fault.
	Own
	// Over says that the server refuses new tokens, too, and there is no sense in getting more.
	Over
)

// Refused takes in that a request was refused for its token. before says that it had been refused with another token, too.
func (l *Life) Refused(now mono.Time, p Pass, before bool) Verdict {
	if p.Generation != l.generation || l.refused {
		return Again
	}
	l.trying = 0
	if l.proven { // the token served, and no longer does
		l.refused, l.next = true, now
		return Again
	}
	l.futile++
	switch {
	case l.futile >= manyRefused, !l.served && l.futile >= fewRefused:
		l.refused, l.next = true, limit.Never
		return Over
	case before && l.served:
		l.alone = true // the next request finds out whose fault it is
		return Own
	}
	l.refused, l.next = true, now
	if l.futile > 1 {
		l.next = now.Add(again.Base)
	}
	return Again
}

// Answered takes in that a request got an answer that does not refuse its token, and says whether others have waited for that.
func (l *Life) Answered(p Pass) (news bool) {
	l.served, l.futile = true, 0
	if p.Generation == l.generation {
		news = l.alone
		l.proven, l.alone = true, false
	}
	return news
}

// Unanswered takes in that a request ended without an answer, and says whether another one may try the token now.
func (l *Life) Unanswered(p Pass) (news bool) {
	news = p.first && p.Generation == l.generation && l.alone
	if news {
		l.trying = 0
	}
	return news
}

// Any says whether there ever was a token.
func (l *Life) Any() bool { return l.generation > 0 }
