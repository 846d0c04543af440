package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// ServerClock turns the time stamps that a server puts into its answers (serverTime, a Date header with fractions) into
// Outcome.ArrivedAgo: on a path of 0–50 ms each way 97.2 instead of 95.2 requests/s. It knows no offset between the clocks:
// a stamp was made before its answer was read, so the server's clock is behind ours by no more than the least (read − stamp)
// seen in the last 5 to 15 s.
//
// The risk: a server clock that is set back by less than the latency makes arrivals look earlier than they were, for up to
// 15 s, and the limit is broken by as much. A stamp that cannot be (arrived before it was sent) is noticed, and
// everything learned is forgotten.
//
// The zero ServerClock is for stamps in milliseconds. One serves all keys of a server. Not safe for concurrent use.
type ServerClock struct {
	// Tick is the unit of the stamps. If zero, 1 ms.
	Tick time.Duration

	behind [2]time.Duration // the least (read − stamp): of this turn, and of the one before
	known  [2]bool
	turn   mono.Time // when this turn ends
}

const (
	serverClockTurn  = 5 * time.Second
	serverClockDrift = 10000 // one in so many, of one clock against the other
)

// ArrivedAgo returns how long before now, when the answer had been read, the request had arrived for sure. stamp is when
// the server says it was, on the scale of sent and now: mono.Of(epoch, stamp). It returns 0, no word, where nothing is to be
// gained.
func (c *ServerClock) ArrivedAgo(sent, now, stamp mono.Time) time.Duration {
	tick := c.Tick
	if tick <= 0 {
		tick = time.Millisecond
	}
	back := now < c.turn.Add(-serverClockTurn) // the first time, or our clock was set back
	if back || now >= c.turn {
		c.behind[1], c.known[1] = c.behind[0], c.known[0] && !back && now < c.turn.Add(serverClockTurn)
		c.known[0] = false
		c.turn = now.Add(serverClockTurn)
	}
	if d := now.Sub(stamp); !c.known[0] || d < c.behind[0] {
		c.behind[0], c.known[0] = d, true
	}
	behind := c.behind[0]
	if c.known[1] {
		behind = min(behind, c.behind[1])
	}
	drift := 3 * serverClockTurn / serverClockDrift // the oldest difference is that old
	arrived := stamp.Add(behind).Add(tick + drift)
	if arrived < sent {
		c.known = [2]bool{}
		return 0
	}
	return max(now.Sub(arrived), 0)
}
