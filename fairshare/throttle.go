// Package fairshare has laws by which clients share a quota fairly, even with strangers, by feedback alone: each client knows the
// published rate and capacity of the quota. Of the others it sees only what the answers to its own requests say: served or limited, and
// how much remains.
//
// Fair is the one to use: for token buckets, fixed and rolling windows, and servers that only say served or limited. It is a
// limit.Limiter for one process, however many requests the process has in flight, so it goes under a Gate, a Pool or a transport like any
// other. It needs what the server publishes, so much per window; the Kind of the quota, where answers tell no reset; and a source of
// random numbers of its own. A process that is to get twice what another gets says so by its Weight. All sharers follow the same law and
// know the same quota; where some may not, set Sharers of the FairConfig to how many there are.
//
// Hints goes beside limits that are known, in a limit.All. It shares nothing: it keeps to what servers say is left until a reset.
//
// A Strategy is any such law, also one of your own, in the form in which a simulator compares it with others: it makes limiters, or a
// Process whose Threads decide for themselves. Package lab/sim/scenario knows the published ones by name, and lab/sim/compare compares yours with
// them.
//
// A quota that is one's own alone is better kept by package limit, which needs no answers and is never refused.
//
// Nothing here owns a clock, lock or goroutine, nothing is safe for concurrent use, and random numbers come from the
// source that the driver hands in.
package fairshare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Answer is what a client learns from one request.
type Answer struct {
	Limited    bool          // refused by the quota
	Known      bool          // whether Remaining holds
	Remaining  float64       // how many requests are left, as the server says
	Reset      time.Duration // how long until there is more, as the server says; 0: it does not say
	RetryAfter time.Duration // 0: the server did not say
	Sent       mono.Time     // when the request went out
}

// Thread is one thread of a client: one request at a time, retried until it is served. Like its Process it is not safe for concurrent use: the
// driver calls all threads of one process one after another.
type Thread interface {
	// Send returns when the request at hand may be sent, now or later. It is called once per try: for a new call, and again after a
	// limited answer. The driver sends at that instant, without asking again.
	Send(now mono.Time) mono.Time
	// Answer tells how the try that was sent last was answered, at now.
	Answer(now mono.Time, a Answer)
	// Sleep returns how long the thread sleeps before a request at present, without jitter, for charts and logs.
	Sleep() time.Duration
}

// Process is a client process: its threads share what it knows, and nothing is shared between processes. It is not safe for concurrent use, and
// its threads count as using it.
type Process interface {
	// Thread returns another thread. rng is the process' source of random numbers, owned by the driver and shared by its
	// threads.
	Thread(rng *rand.Rand) Thread
}

// Strategy makes processes. It has a name and a constructor, for tables and scenario files.
type Strategy struct {
	// Name is unique: lower case, words joined by hyphens.
	Name string
	// Text says in one line what it does.
	Text string
	// Baseline says that it is a published strategy, to compare others with.
	Baseline bool
	// GivesUp says that a limited answer ends the call: the strategy itself does not try again, though its caller may.
	GivesUp bool
	// New returns a process that has sent nothing. It is nil if NewLimiter is set. The error names the parameter at fault.
	New func(p Params) (Process, error)
	// NewLimiter returns the limiter of a process that has sent nothing, for all its threads. It is driven as a Gate drives one: first
	// come first served, asked again after each Settle. It draws its random numbers from rng in Admit and Settle. Charts show what its
	// Sleeper says, if it has one.
	NewLimiter func(p Params, rng *rand.Rand) (limit.Limiter, error)
}

// Sleeper tells how long a limiter throttles at present: the time that it plans between two requests of the process, without jitter. It
// is for charts and logs.
type Sleeper interface {
	Sleep() time.Duration
}

// Sharing is how the threads of a process share their sleep, in the strategies of the gem.
type Sharing uint8

const (
	// Racing is as published: each thread reads the sleep when a call begins and writes it when the call ends, so that what others wrote
	// in between is lost.
	Racing Sharing = iota
	// Shared loses nothing: each step reads and writes the one value.
	Shared
	// Local gives each thread a value of its own.
	Local
)

var sharings = [...]string{"racing", "shared", "local"}

func (s Sharing) String() string {
	if int(s) < len(sharings) {
		return sharings[s]
	}
	return fmt.Sprintf("sharing %d", uint8(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s Sharing) MarshalText() ([]byte, error) {
	if int(s) >= len(sharings) {
		return nil, fmt.Errorf("fairshare: Sharing %d is none of %s", uint8(s), strings.Join(sharings[:], ", "))
	}
	return []byte(sharings[s]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sharing) UnmarshalText(b []byte) error {
	i := slices.Index(sharings[:], string(b))
	if i < 0 {
		return fmt.Errorf("fairshare: Sharing %q is none of %s", b, strings.Join(sharings[:], ", "))
	}
	*s = Sharing(i)
	return nil
}

// Params are what a client knows of the quota, and the constants of its strategy. A strategy ignores those that it has no use for. Only
// Rate and Burst must be set.
type Params struct {
	// Rate is the quota's refill in requests per second, and Burst its capacity in requests: known to all clients. Where Unit is set,
	// both are in that unit.
	Rate  float64
	Burst float64
	// Window is the time in which Rate lets Burst requests pass, if the quota is of windows. If zero, unknown.
	Window time.Duration
	// Kind is how the server counts. If zero, unknown: Fair finds out, other strategies take it for a bucket.
	Kind Kind
	// Unit is the component of a limit.Cost that the quota counts. If zero, requests.
	Unit limit.Unit
	// MeanCost is what a request takes of the quota on average, known to all clients. If zero, 1.
	MeanCost float64

	// Start is the sleep to begin with, at most a year. If zero, as published: no sleep for the gem's strategies, MinSleep for the
	// demo's, 1/Rate for AIMD, and none before the first limit for CUBIC.
	Start time.Duration
	// MinSleep is the gem's min_sleep; a fixed backoff sleeps it; the demo's least sleep is a tenth of it. If zero, 1/Rate.
	MinSleep time.Duration
	// Multiplier is the factor of the sleep after a limit. If zero, 1.2 for the gem's strategies, 2 for the demo's.
	Multiplier float64
	// Jitter is the largest share of the sleep that is added to it. If zero, 0.1; negative: none.
	Jitter float64
	// Divisor is the divisor by which proportional decreases lower the sleep. If zero, Burst.
	Divisor float64
	// Sharing is how threads share their sleep, in the gem's strategies. If zero, Racing, as published.
	Sharing Sharing

	// Increase is how much AIMD's rate grows each second, in requests per second. If zero, Rate/1000.
	Increase float64
	// Decrease is the factor of the rate of AIMD and CUBIC at a limit. If zero, 0.5 for AIMD and 0.7 for CUBIC.
	Decrease float64
	// MinRate is the least rate of AIMD and CUBIC, in requests per second. If zero, Rate/Burst for AIMD and 0.5 for CUBIC.
	MinRate float64
	// Scale is CUBIC's scale constant. If zero, 0.4.
	Scale float64
	// Smooth is the weight of the newest half second in CUBIC's measured rate. If zero, 0.8.
	Smooth float64

	// Weight is how many shares a process claims, in strategies that know weights: fair and auto. If zero, 1.
	Weight float64
	// Sharers is how many clients the quota is meant for, each entitled to its part. If zero, unknown.
	Sharers float64
	// MaxWait is the longest wait of fair and auto, whatever the server says. If zero, they have that of FairConfig and AutoConfig.
	MaxWait time.Duration
}

// Check refuses a Rate and a Burst that no quota has. The error begins with the name of the strategy, as do those about constants that a
// strategy checks itself.
func (p Params) Check(strategy string) error {
	if !(p.Rate > 0) || p.Rate > 1e9 {
		return fmt.Errorf("fairshare: %s: Rate %v is not above 0 and at most 1e9", strategy, p.Rate)
	}
	if !(p.Burst >= 1) || p.Burst > 1e12 {
		return fmt.Errorf("fairshare: %s: Burst %v is not from 1 to 1e12", strategy, p.Burst)
	}
	return nil
}

// Seconds returns a number of seconds as a duration. It rounds up, since a wait that decides when to send must not be too short. The
// result is at least 0 and at most the longest duration.
func Seconds(s float64) time.Duration {
	d := math.Ceil(s * 1e9)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(d, 0))
}
