package node

// Fault is a fault that can be planted in a node.
type Fault uint8

const (
	NoFault         Fault = iota
	KeepsGrants           // grants are used after their end, and after the node was given up
	NotFresh              // nobody asks whether a request may still be written
	ToldTwice             // what was told in a turn of unknown outcome is told again although it was put
	ForgetsAnswers        // what was told in a turn of unknown outcome is taken for put
	BoundsSwapped         // the clock's bounds are used the wrong way round
	ShiftAhead            // a clock that was set is corrected to the latest that it can be
	NoSlack               // what the ledger was set behind is not taken off what others know
	NoQuiet               // a store that forgot grants at once
	TrustsClock           // newcomers believe the store's clock
	EraKept               // a newcomer believes it without a new era, and may set the ledger's time back
	GivesUpEarly          // units of a node that is silent are given up at the end of its grants
	QuickAnswers          // requests count as arrived when they were sent
	GrantsAtOnce          // what is granted ahead is used at once
	SplitsEarly           // a node goes on with its part once grants have ended, while what was granted still counts
	SplitsUnknown         // a node that was stopped, or has just come, takes a part, too
	SplitEndsAtOnce       // what went by parts is forgotten as soon as the store is back
	SplitUnseen           // whoever comes first when the store is back does not see that others may send by their parts
	SplitsStopped         // a node that was stopped goes on with its part
	MostUnseen            // a node holds more before the others have seen that it may
	UnseenAlike           // those whom not all have seen are not bounded together
	TellsAhead            // it is told that a request will have arrived
	RecallsLate           // who was away for long says what the store had
	RecallsOpen           // and what each held then, not what it may
	RecallsUntold         // and not what was told since
	RecallsSeen           // and not what those hold who came since
	RecallsUnsure         // and takes its last turn that was surely put for the last
	RecallsLeft           // and says what the store had although it may have left
	ReturnsUnseen         // who was away for so long that it was not waited for holds what it held
	ReturnsUnwarned       // who was away for somewhat less is taken for absent where the store forgot lately, and holds what it held
	AbsentSoon            // who was away for a short while is taken for one who would be bounded as a newcomer
	GathersOlder          // who comes to a store that forgot and knows what was later keeps it to itself
	GathersFew            // what was told is taken for bounded however few have come
	TellsMore             // a node tells more than it may hold while few others have turns
	TellsUnseen           // and whom not all have seen tells something, too
	LapsedFresh           // a request whose leave lapsed is written once the node is back
	faults
)

var faultNames = [faults]string{"none", "grants kept after their end", "Fresh not asked", "told twice", "answers forgotten", "clock bounds swapped",
	"shift ahead", "slack not taken off", "quiet time left out", "newcomers trust the clock", "no new era", "given up early",
	"arrived when sent", "granted ahead and used at once",
	"part taken early", "part taken unknown", "parts forgotten", "parts unseen",
	"part kept after a stop",
	"more held than others saw", "newcomers not bounded", "told ahead", "recalled late", "recalled what was open", "told since left out", "newcomers left out",
	"unsure turn left out", "recalled by who has left",
	"returned and not bounded", "returned and not warned", "absent too soon",
	"older book gathered", "few gathered", "more told", "told unseen", "lapsed and fresh again"}

func (f Fault) String() string { return faultNames[f] }

// Faults returns all faults.
func Faults() (all []Fault) {
	for f := NoFault + 1; f < faults; f++ {
		all = append(all, f)
	}
	return all
}
