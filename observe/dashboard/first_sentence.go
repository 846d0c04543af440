package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe"
)

// States of a verdict. The page shows each by a colour and by a sign.
const (
	nothingYet = "nothing" // no request has come
	idle       = "idle"    // no request now
	free       = "free"    // no request waits
	full       = "full"    // some wait, and it goes as fast as the server allows
	waiting    = "waiting" // some wait, and the limit is not used up yet
	paused     = "paused"  // some wait, because of a pause
	down       = "down"    // some wait, because nothing reaches the host
)

// verdict says in one sentence whether it goes as fast as the server allows, and if not, why.
type verdict struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Until is when the next request may go; the zero Time: now, or unknown. The page counts down
	// to it.
	Until time.Time `json:"until,omitzero"`
}

// fast is the fraction of the ceiling from which on the limit counts as used.
const fast = 0.9

// judge makes the verdict on a Snapshot.
func judge(s *observe.Snapshot) verdict {
	if s.Waiting == 0 {
		return atOnce(s)
	}
	wait := count(s.Waiting, "waits", "wait")
	for _, p := range s.Paused {
		if p.Down {
			return verdict{down, fmt.Sprintf("Nothing arrives at %s (%s): %s", orAll(p.Whose), p.Why, wait), p.Next}
		}
	}
	l := binding(s.Limits)
	switch {
	case l == nil && len(s.Paused) > 0:
		p := s.Paused[0]
		return verdict{paused, fmt.Sprintf("Staying away from %s (%s): %s", orAll(p.Whose), p.Why, wait), p.Next}
	case l == nil:
		return verdict{Kind: waiting, Text: wait + " for a turn"}
	case l.PausedUntil.After(s.At):
		why := ""
		if l.Why != "" {
			why = " (" + l.Why + ")"
		}
		return verdict{paused, fmt.Sprintf("Staying away from %s%s: %s", orAll(l.Whose), why, wait), l.PausedUntil}
	case l.WaitingReserve == l.Waiting:
		return verdict{Kind: waiting,
			Text: fmt.Sprintf("Leaving a part of %s free for others, as the reserve of the client says: %s", titled(l), wait)}
	case l.NextUnknown:
		return verdict{Kind: full,
			Text: fmt.Sprintf("As much as is allowed is under way, %s of %s of %s: %s, until an answer comes",
				text.Thousands(l.Used), text.Thousands(l.Allowed), titled(l), wait)}
	case l.Share >= fast:
		return verdict{full, fmt.Sprintf("As fast as the server allows, %s of the ceiling of %s: %s", percent(l.Share),
			titled(l), wait), l.Next}
	default:
		return verdict{waiting,
			fmt.Sprintf("Waiting for %s, of whose ceiling %s was used lately: %s", titled(l), percent(l.Share), wait), l.Next}
	}
}

// atOnce is the verdict while no request waits.
func atOnce(s *observe.Snapshot) verdict {
	if s.Sent == 0 && s.Never+s.Late+s.Full+s.Cancelled == 0 {
		return verdict{Kind: nothingYet, Text: "Nothing yet: no request has come"}
	}
	used := ""
	if l := busiest(s.Limits); l != nil {
		used = fmt.Sprintf("; %s of the ceiling of %s is used", percent(l.Share), titled(l))
	}
	if s.InFlight == 0 {
		return verdict{Kind: idle, Text: "Nothing waits, and nothing is under way" + used}
	}
	return verdict{Kind: free, Text: "Nothing waits: what comes goes at once" + used}
}

// binding returns the limit for which most requests wait; of equal ones, the one that is used most.
func binding(list []observe.LimitState) (most *observe.LimitState) {
	for i := range list {
		if l := &list[i]; l.Waiting > 0 &&
			(most == nil || l.Waiting > most.Waiting || l.Waiting == most.Waiting && holdsUp(l, most)) {
			most = l
		}
	}
	return most
}

// holdsUp reports whether requests wait longer for l than for m. If both let one go at the same
// instant, it reports whether l is used more.
func holdsUp(l, m *observe.LimitState) bool {
	if l.NextUnknown != m.NextUnknown {
		return l.NextUnknown
	}
	if c := l.Next.Compare(m.Next); c != 0 {
		return c > 0
	}
	return l.Share > m.Share
}

// busiest returns the limit whose ceiling is used most. If requests wait for some limits, it is one
// of these.
func busiest(list []observe.LimitState) (most *observe.LimitState) {
	if l := binding(list); l != nil {
		return l
	}
	for i := range list {
		if l := &list[i]; l.Allowed > 0 && (most == nil || l.Share > most.Share) {
			most = l
		}
	}
	return most
}

// titled names a limit: "requests of api.example.com", "minute (requests) of key k1".
func titled(l *observe.LimitState) string {
	s := l.Name
	if l.Unit != "" && l.Unit != l.Name {
		s += " (" + l.Unit + ")"
	}
	if w := whom(l.Whose); w != "" {
		s += " of " + w
	}
	return s
}

func orAll(w observe.Whose) string {
	if s := whom(w); s != "" {
		return s
	}
	return "the server"
}

// percent rounds down, so that only a used-up limit is 100 %. It is at most 100 %, even after a
// full bucket.
func percent(share float64) string {
	return strconv.FormatFloat(math.Floor(min(share, 1)*100), 'f', -1, 64) + " %"
}

// count returns n with the noun for one or for many.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return text.Thousands(int64(n)) + " " + many
}
