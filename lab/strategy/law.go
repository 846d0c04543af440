package strategy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Answer is the information that a client gets from one request.
type Answer struct {
	Limited    bool          // refused by the quota
	Known      bool          // Remaining holds
	Remaining  float64       // how many requests are left, by the server's answer
	Reset      time.Duration // how long until there is more, by the server's answer; 0: unknown
	RetryAfter time.Duration // 0: the answer has none
	Sent       mono.Time     // when the request went out
}

// Thread is one thread of a client: one request at a time, retried until it is served. It is not
// safe for concurrent use, like its Process. The driver calls the threads of one process one after
// another.
type Thread interface {
	// Send returns when the present request may be sent, now or later. The driver calls it once per
	// try: for a new call, and again after a limited answer. It sends at that instant, without
	// another call.
	Send(now mono.Time) mono.Time
	// Answer passes in the answer to the latest try, which arrived at now.
	Answer(now mono.Time, a Answer)
	// Sleep returns the present sleep of the thread before a request, without jitter. It is for
	// charts and logs.
	Sleep() time.Duration
}

// Process is a client process. Its threads share its knowledge, and processes share nothing. It is
// not safe for concurrent use, and a call of its threads counts as a use of it.
type Process interface {
	// Thread returns another thread. rng is the process' source of random numbers. The driver owns
	// it, and the threads share it.
	Thread(rng *rand.Rand) Thread
}

// Strategy makes processes. It has a name and a constructor, for tables and scenario files.
type Strategy struct {
	// Name is unique: lower case, words joined by hyphens.
	Name string
	// Text describes the strategy in one line.
	Text string
	// Baseline marks a published strategy for comparison.
	Baseline bool
	// GivesUp means that a limited answer ends the call. The strategy itself does not try again,
	// though its caller may.
	GivesUp bool
	// New returns a process that has sent nothing. It is nil if NewLimiter is set. The error names
	// the parameter at fault.
	New func(p Params) (Process, error)
	// NewLimiter returns the limiter of a process that has sent nothing, for all its threads. It is
	// driven as by a Gate: first come first served, asked again after each Settle. It draws its
	// random numbers from rng in Admit and Settle. Charts show the Sleep of its Sleeper, if it has
	// one.
	NewLimiter func(p Params, rng *rand.Rand) (limit.Limiter, error)
}

// Sleeper reports how much a limiter throttles at present. Sleep is the planned time between two
// requests of the process, without jitter. It is for charts and logs.
type Sleeper interface {
	Sleep() time.Duration
}

// Sharing is how the threads of a process share their sleep, in the strategies of the gem.
type Sharing uint8

const (
	// Racing is as published. Each thread reads the sleep when a call begins and writes it when the
	// call ends. So the writes of other threads in between are lost.
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

// Params are a client's knowledge of the quota, and the constants of its strategy. A strategy
// ignores those that it does not use. Only Rate and Burst must be set.
type Params struct {
	// Rate is the quota's refill in requests per second, and Burst its capacity in requests. All
	// clients know both. Where Unit is set, both are in that unit.
	Rate  float64
	Burst float64
	// Window is the time in which Rate lets Burst requests pass, if the quota is of windows. If
	// zero, unknown.
	Window time.Duration
	// Kind is how the server counts. If zero, unknown: Fair finds out, other strategies assume a
	// bucket.
	Kind fairshare.Kind
	// Unit is the component of a limit.Cost that the quota counts. If zero, requests.
	Unit limit.Unit
	// MeanCost is the mean cost of a request. All clients know it. If zero, 1.
	MeanCost float64

	// Start is the first sleep, at most a year. If zero, as published: no sleep for the gem's
	// strategies, MinSleep for the demo's, 1/Rate for AIMD, and none before the first limit for
	// CUBIC.
	Start time.Duration
	// MinSleep is the gem's min_sleep. It is the sleep of a fixed backoff, and ten times the demo's
	// least sleep. If zero, 1/Rate.
	MinSleep time.Duration
	// Multiplier is the factor of the sleep after a limit. If zero, 1.2 for the gem's strategies, 2
	// for the demo's.
	Multiplier float64
	// Jitter is the largest fraction of the sleep that is added to it. If zero, 0.1; negative:
	// none.
	Jitter float64
	// Divisor is the divisor of proportional decreases of the sleep. If zero, Burst.
	Divisor float64
	// Sharing is how threads share their sleep, in the gem's strategies. If zero, Racing, as
	// published.
	Sharing Sharing

	// Increase is how much AIMD's rate grows each second, in requests per second. If zero,
	// Rate/1000.
	Increase float64
	// Decrease is the factor of the rate of AIMD and CUBIC at a limit. If zero, 0.5 for AIMD and
	// 0.7 for CUBIC.
	Decrease float64
	// MinRate is the least rate of AIMD and CUBIC, in requests per second. If zero, Rate/Burst for
	// AIMD and 0.5 for CUBIC.
	MinRate float64
	// Scale is CUBIC's scale constant. If zero, 0.4.
	Scale float64
	// Smooth is the weight of the newest half second in CUBIC's measured rate. If zero, 0.8.
	Smooth float64

	// Weight is the number of shares that a process claims, in the strategies fair and auto. If
	// zero, 1.
	Weight float64
	// Sharers is the number of clients of the quota. Each is entitled to its part. If zero,
	// unknown.
	Sharers float64
	// MaxWait is the longest wait of fair and auto, whatever the server's answers say. If zero, the
	// default of FairConfig and AutoConfig.
	MaxWait time.Duration
}

// Check refuses an impossible Rate or Burst. The error begins with the name of the strategy, like
// the errors of a strategy about its own constants.
func (p Params) Check(strategy string) error {
	if !(p.Rate > 0) || p.Rate > 1e9 {
		return fmt.Errorf("fairshare: %s: Rate %v is not above 0 and at most 1e9", strategy, p.Rate)
	}
	if !(p.Burst >= 1) || p.Burst > 1e12 {
		return fmt.Errorf("fairshare: %s: Burst %v is not from 1 to 1e12", strategy, p.Burst)
	}
	return nil
}
