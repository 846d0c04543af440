package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// listening is how a few who drain a bucket hear whether anything comes: once, all send nothing for a while but a few requests each.
//
// They have to do so at one time. So they do as the level first passes an eighth of what the bucket holds, which all see at once. First
// they wait until what is under way has arrived. Then each sends a request a round. So in each round every other has sent one, and if
// nothing comes, as much less remains after each: nobody has to know how many they are. If something comes, or somebody else takes
// something, it is not the same in all rounds, which are of different lengths. Only they have to keep their order. So who has seen less go,
// when the level passed, goes a little later in each.
//
// Where it would take long, or where their order is not sure, nobody listens: that costs all more than it would gain the few whose quota
// does not come back.
type listening struct {
	stage  listeningStage
	next   mono.Time     // when the next request goes
	trip   time.Duration // a round trip, smoothed
	jitter time.Duration // its mean deviation
	beat   time.Duration // what all times are counted in
	turn   time.Duration // how much later than the first of all it goes in a round
	round  int           // how many rounds are over
	others float64       // what others took in each of them, if nothing came
	heard  bool          // that was not the same in all, or it was late
}

type listeningStage uint8

const (
	notYet       listeningStage = iota
	awaitsSent                  // what is under way
	listens                     // in rounds
	awaitsOthers                // who still listen
	hasListened
)

const (
	listeningMark = 1.0 / 8 // of what the bucket holds
	listeningFew  = 13.0    // the most who listen
	listeningMost = 10 * time.Second

	// All must have the same beat, though their round trips differ. So it is a part of a token, doubled until a round trip is a few beats.
	listeningBeat = 1.0 / 50
	beatsTrip     = 12 // at most
	beatsSent     = 24 // until what is under way has arrived
	beatsTurns    = 12 // from the first to the last
	beatsShort    = 30 // of a round
	beatsLong     = 102
	roundsAll     = 5
	roundLong     = 1 // after one that is over
	beatsAll      = beatsSent + 2*beatsTurns + (roundsAll-1)*beatsShort + beatsLong
)

// holds reports whether requests are held back.
func (l *listening) holds() bool { return l.stage > notYet && l.stage < hasListened }

// hearsNothing reports whether nothing came in all rounds.
func (l *listening) hearsNothing() bool { return l.stage == awaitsOthers && !l.heard }

// step goes on to the next stage, after an answer that was compared with the one before: others took so much, if nothing came.
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
		f.rebase(s) // what was taken meanwhile says nothing of N
	}
}

// begin finds the beat and the turn, and reports whether it is worth to listen.
func (l *listening) begin(f *Fair, s *sighting, passed float64) bool {
	for l.beat = max(1, f.span(listeningBeat)); l.trip > beatsTrip*l.beat; l.beat *= 2 {
		if beatsAll*l.beat > listeningMost {
			return false
		}
	}
	apart := 1 // the fewer there are the farther; n is not a whole number, and all must have the same
	switch n := f.shares(); {
	case n < 1.5:
		apart = beatsTurns + 1
	case n < 2.5:
		apart = 5
	case f.book.Len() > 0 || n > listeningFew: // many threads have sent more than one until they see the mark
		return false
	case n < 6.5:
		apart = 2
	}
	l.turn = time.Duration(math.Mod(float64(apart)*math.Floor(passed-s.left), beatsTurns+1)) * l.beat
	l.next = s.mid.Add(beatsSent*l.beat + l.turn)
	return l.jitter <= time.Duration(apart)*l.beat && beatsAll*l.beat <= listeningMost
}
