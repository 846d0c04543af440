package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// listening is how a few sharers that drain a bucket see whether anything comes: once, all send
// nothing for a while but a few requests each.
//
// They have to do so at one time. So they begin when the level first passes a multiple of an
// eighth of the capacity, which all see at once. First they wait until all requests under way
// have arrived. Then each sends a request a round. So in each round every other sharer has sent
// one. If nothing comes, the remainder falls by the same amount after each round, and nobody has to
// know their number.
//
// If something comes, or somebody else takes something, the amount differs between rounds, which
// have different lengths. The sharers only have to keep their order. So a sharer that saw less go
// when the level passed sends a little later in each round.
//
// Where it would take long, or where the order is not sure, nobody listens. That would cost all
// sharers more than it would gain the few whose quota does not come back.
type listening struct {
	stage  listeningStage
	next   mono.Time     // when the next request goes
	trip   time.Duration // a round trip, smoothed
	jitter time.Duration // its mean deviation
	beat   time.Duration // the unit of all times here
	turn   time.Duration // how much later than the first sharer this one sends in a round
	round  int           // how many rounds are over
	others float64       // the amount that others took in each of them, if nothing came
	heard  bool          // that amount was not the same in all, or this process was late
}

type listeningStage uint8

const (
	notYet       listeningStage = iota
	awaitsSent                  // waits until requests under way have arrived
	listens                     // sends in rounds
	awaitsOthers                // waits for others that still listen
	hasListened
)

const (
	listeningMark = 1.0 / 8 // of the capacity
	listeningFew  = 13.0    // the most sharers that listen
	listeningMost = 10 * time.Second

	// All must have the same beat, though their round trips differ. So it is a part of a token,
	// doubled until a round trip is a few beats.
	listeningBeat = 1.0 / 50
	beatsTrip     = 12 // at most
	beatsSent     = 24 // until requests under way have arrived
	beatsTurns    = 12 // from the first sharer to the last
	beatsShort    = 30 // of a round
	beatsLong     = 102
	roundsAll     = 5
	roundLong     = 1 // comes after a round that is over
	beatsAll      = beatsSent + 2*beatsTurns + (roundsAll-1)*beatsShort + beatsLong
)

// holds reports whether requests are held back.
func (l *listening) holds() bool { return l.stage > notYet && l.stage < hasListened }

// hearsNothing reports whether nothing came in all rounds.
func (l *listening) hearsNothing() bool { return l.stage == awaitsOthers && !l.heard }

// step goes on to the next stage, after an answer that was compared with the one before. others is
// the amount that others took, if nothing came.
func (l *listening) step(f *Fair, s, before *sighting, others float64) {
	off := f.last.Sub(s.at) - l.trip
	l.trip += off / 8
	l.jitter += (max(off, -off) - l.jitter) / 8
	l.heard = l.heard || l.holds() && s.at.Sub(l.next) > l.beat
	switch l.stage {
	case notYet:
		mark := listeningMark * f.bucket.capacity
		passed := math.Floor(before.left/mark) * mark
		if s.left >= passed {
			return
		}
		if l.stage = awaitsSent; s.idle-before.idle > l.trip || !l.begin(f, s, passed) {
			l.stage = hasListened
		}
	case awaitsSent:
		l.stage = listens
		l.next = s.at.Add(beatsShort * l.beat)
	case listens:
		half := 0.5 / f.config.MeanCost
		if l.round == 0 {
			l.others = others
		}
		l.heard = l.heard || others < -half || math.Abs(others-l.others) > half
		switch l.round++; l.round {
		case roundsAll:
			l.stage = awaitsOthers
			l.next = s.at.Add(l.trip + 2*l.jitter + (beatsTurns+2)*l.beat - l.turn)
		case roundLong:
			l.next = s.at.Add(beatsLong * l.beat)
		default:
			l.next = s.at.Add(beatsShort * l.beat)
		}
	case awaitsOthers:
		l.stage = hasListened
		f.rebase(s) // consumption meanwhile says nothing of N
	}
}

// begin finds the beat and the turn, and reports whether it is worth to listen.
func (l *listening) begin(f *Fair, s *sighting, passed float64) bool {
	for l.beat = max(1, f.span(listeningBeat)); l.trip > beatsTrip*l.beat; l.beat *= 2 {
		if beatsAll*l.beat > listeningMost {
			return false
		}
	}
	apart := 1 // the fewer sharers the farther apart; n is not a whole number, and all must have the same
	switch n := f.shares(); {
	case n < 1.5:
		apart = beatsTurns + 1
	case n < 2.5:
		apart = 5
	// Many threads have sent more than one until they see the mark.
	case f.book.Len() > 0 || n > listeningFew:
		return false
	case n < 6.5:
		apart = 2
	}
	l.turn = time.Duration(math.Mod(float64(apart)*math.Floor(passed-s.left), beatsTurns+1)) * l.beat
	l.next = s.mid.Add(beatsSent*l.beat + l.turn)
	return l.jitter <= time.Duration(apart)*l.beat && beatsAll*l.beat <= listeningMost
}
