package throttle

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// listening is how few who drain a bucket hear whether anything comes: once, all send nothing for a while, and then one request each.
//
// They have to do so at one time. So they do as the level first passes an eighth of what the bucket holds, which all see at once. First
// they wait until what is under way has arrived, then they listen, for longer than their share takes to come, and then they wait until
// the slowest has listened, too. Where it would take long, nobody listens: that costs all more than it would gain the few whose quota does
// not come back.
type listening struct {
	stage  listeningStage
	next   mono.Time // when the next request goes
	tokens float64   // for how long it listens
	shares float64   // n, as it was then
}

type listeningStage uint8

const (
	notYet       listeningStage = iota
	awaitsSent                  // what is under way
	listens                     // to what comes
	awaitsOthers                // who still listen
	hasListened
)

const (
	listeningMark   = 1.0 / 8 // of what the bucket holds
	listeningFew    = 4.0     // the most who listen
	listeningMost   = 10 * time.Second
	listeningTrips  = 2    // how many round trips it takes until what is under way has arrived
	listeningShares = 1.5  // × n: for how long it listens, in tokens
	listeningOthers = 0.75 // × n: for how long others may listen on
	listeningTaken  = 1.5  // × n: what others take meanwhile, at most
)

// holds reports whether requests are held back.
func (l *listening) holds() bool { return l.stage > notYet && l.stage < hasListened }

// hearsNothing reports whether nothing came while it listened, given how long that was and what others took if nothing came.
func (l *listening) hearsNothing(tokens, others float64) bool {
	return l.stage == listens && tokens >= l.tokens && others <= listeningTaken*l.shares
}

// step goes on to the next stage, after an answer that was compared with the one before.
func (l *listening) step(f *Fair, s, before *sighting) {
	trip := f.last.Sub(s.at)
	switch l.stage {
	case notYet:
		l.shares = max(1, f.n)
		mark := listeningMark * f.bucket.capacity
		switch {
		case math.Floor(s.left/mark) >= math.Floor(before.left/mark):
			return
		case f.shares() > listeningFew || f.tokens(trip) > l.shares || Seconds((listeningShares+listeningOthers)*l.shares/f.rate) > listeningMost:
			l.stage = hasListened
			return
		}
		l.next = f.last.Add(listeningTrips * trip)
	case awaitsSent:
		l.tokens = listeningShares * l.shares
		l.next = f.last.Add(f.span(l.tokens))
	case listens:
		l.next = f.last.Add(f.span(listeningOthers * l.shares))
	case hasListened:
		return
	}
	l.stage++
}
