package paceline

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Source is what can be looked at: a Gate, a Junction, a Pool, a transport.Transport. Pages and metrics are made of Sources.
// It is safe for concurrent use.
type Source interface {
	// Snapshot is safe for concurrent use, and cheap enough to be called every second.
	Snapshot() Snapshot
}

// NameSource returns s with Snapshots of that name, where several are looked at together.
func NameSource(name string, s Source) Source { return namedSource{s, name} }

type namedSource struct {
	Source
	name string
}

func (n namedSource) Snapshot() Snapshot {
	s := n.Source.Snapshot()
	s.Name = n.name
	return s
}

// Snapshot is what can be looked at of a Source as of one instant; of a Transport with very many partitions, of one instant for each
// part of them. It is a copy: nothing in it changes later, and no credential is in it. In JSON, durations are nanoseconds and end in _ns;
// fields are only ever added. Instants that nobody knows, or that are past, are the zero Time and left out.
type Snapshot struct {
	// Name tells the Snapshots of several Sources apart: see NameSource.
	Name string `json:"name,omitempty"`
	// At is the instant, Since when counting began.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Waiting is how many are in line, InFlight how many have gone and are not settled.
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
	// LongestWait is for how long the one has waited who waits for longest now.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Counts
	// Pauses counts those that refusals began, Resent the attempts that were not the first of their request.
	Pauses int64 `json:"pauses"`
	Resent int64 `json:"resent"`

	Limits  []LimitState  `json:"limits"`
	Clients []ClientState `json:"clients"`
	Keys    []KeyState    `json:"keys"`
	Paused  []PauseState  `json:"paused"`
	// Waits are how long waits lasted, by limit and client; Upstream how long answers took, by host. Their classes end at Bounds.
	Waits    []WaitTimes     `json:"waits"`
	Upstream []UpstreamTimes `json:"upstream"`
	Bounds   []time.Duration `json:"bounds_ns"`
	// Events are the latest, oldest first. What came before the first of them was forgotten.
	Events []Event `json:"events"`
}

// Whose says whom something concerns. Fields that make no difference are empty. Key stands for a credential and never contains it.
type Whose struct {
	Host   string `json:"host,omitempty"`
	Key    string `json:"key,omitempty"`
	Model  string `json:"model,omitempty"`
	Route  string `json:"route,omitempty"`
	Client string `json:"client,omitempty"`
}

// Counts says what became of requests. One that is sent again counts once for each attempt.
type Counts struct {
	// Sent is how many went. Each of them is in flight, or counted in one of the next five fields, by how it was settled. See
	// limit.Result.
	Sent     int64 `json:"sent"`
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"` // refused by a limit of the server
	Failed   int64 `json:"failed"`
	Unknown  int64 `json:"unknown"`
	Unsent   int64 `json:"unsent"`
	// These never went: the cost never fits, the deadline comes first, too many wait, whoever waited gave up.
	Never     int64 `json:"never"`
	Late      int64 `json:"late"`
	Full      int64 `json:"full"`
	Cancelled int64 `json:"cancelled"`
	// Used is how much was used, as answers said: tokens, money, weight.
	Used Amounts `json:"used"`
}

// Amounts is a limit.Cost by name. Money is in millionths of whatever the limit is in.
type Amounts struct {
	Requests int64 `json:"requests,omitempty"`
	Weight   int64 `json:"weight,omitempty"`
	Orders   int64 `json:"orders,omitempty"`
	Input    int64 `json:"input_tokens,omitempty"`
	Output   int64 `json:"output_tokens,omitempty"`
	Tokens   int64 `json:"tokens,omitempty"`
	Money    int64 `json:"money,omitempty"`
	Other    int64 `json:"other,omitempty"`
}

// AmountsOf names the components of a cost.
func AmountsOf(c limit.Cost) Amounts {
	return Amounts{
		Requests: c[limit.Requests], Weight: c[limit.Weight], Orders: c[limit.Orders], Input: c[limit.Input], Output: c[limit.Output],
		Tokens: c[limit.Tokens], Money: c[limit.Money], Other: c[limit.Other],
	}
}

// Cost is the way back from AmountsOf.
func (a Amounts) Cost() (c limit.Cost) {
	c[limit.Requests], c[limit.Weight], c[limit.Orders], c[limit.Input], c[limit.Output] = a.Requests, a.Weight, a.Orders, a.Input, a.Output
	c[limit.Tokens], c[limit.Money], c[limit.Other] = a.Tokens, a.Money, a.Other
	return c
}

// LimitState is one limit. A limiter that is made of several has one for each that counts something.
type LimitState struct {
	Whose
	// Name is that of limit.Bound: as given to limit.Named, or what the limit counts.
	Name string `json:"limit"`
	// Unit is what it counts, as package limit names it: "requests", "input tokens", "in flight".
	Unit string `json:"unit"`
	// Used counts now, Allowed is the most that may. Of a bucket, Used is what is missing from it and Allowed what the full one holds. What
	// was sent and not answered is in Used, and in Open.
	Used    int64 `json:"used"`
	Open    int64 `json:"open"`
	Allowed int64 `json:"allowed"`
	// Window is the time in which PerWindow may go in the long run. Both are 0 where time does not matter, as of requests in flight.
	Window    time.Duration `json:"window_ns"`
	PerWindow int64         `json:"per_window"`
	// Total is what was ever counted. Recent is what of that was counted in the last Window, or since the beginning if that was later.
	Total  int64 `json:"total"`
	Recent int64 `json:"recent"`
	// Fits is what was found to be allowed per Window, where that is less than PerWindow: see limit.Fitted. 0: it is as configured.
	Fits int64 `json:"fits,omitempty"`
	// Share is what of the ceiling is used: what was counted in the last Window of PerWindow; without a Window, Used of Allowed. It is 0 to 1,
	// which is all: also where a bucket that was full has let through more (see Recent), or the limit was lowered.
	Share float64 `json:"share"`
	// Next is when one more, of cost 1 in Unit, may go: the zero Time if now. NextUnknown: only an answer can tell.
	Next        time.Time `json:"next,omitzero"`
	NextUnknown bool      `json:"next_unknown,omitempty"`
	// PausedUntil is until when whoever it belongs to stays away, and Why in words what for.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	Why         string    `json:"why,omitempty"`
	// Waiting is how many wait in line where the first waits for this limit, or for others of the same Limiter.
	Waiting int `json:"waiting"`
}

// ClientState is one client: of a Gate or a Pool all of it, of a Junction the lanes of one LaneConfig.Client.
type ClientState struct {
	Name     string `json:"client"`
	Waiting  int    `json:"waiting"`
	InFlight int    `json:"in_flight"`
	// LongestWait is for how long its first in line has waited.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Weight      float64       `json:"weight"`
	Counts
	// Share is which part of what was served was this client's, by Accepted: 0 to 1.
	Share float64 `json:"share"`
	// LastGoes is about when the last goes that waits now, if nobody leaves and nobody else comes; of a Pool, if all that wait cost as much
	// as the first. The zero Time: nobody waits, or nobody knows; it is guessed for 64 lanes in which somebody waits.
	LastGoes time.Time `json:"last_goes,omitzero"`
}

// States of a key.
const (
	KeyOK       = "ok"
	KeyPaused   = "paused"    // refused, or told to stay away until Until
	KeyBanned   = "banned"    // refused for good, or until Until
	KeyNoCredit = "no credit" // nothing is left that could be paid with
	KeyDenied   = "denied"    // it may not do what it was used for
)

// KeyState is one credential of ours.
type KeyState struct {
	Host string `json:"host,omitempty"`
	Name string `json:"key"`
	// State is one of the constants that begin with Key; Until its end if that is known, Why in words where it comes from.
	State    string    `json:"state"`
	Until    time.Time `json:"until,omitzero"`
	Why      string    `json:"why,omitempty"`
	InFlight int       `json:"in_flight"`
	Counts
}

// PauseState is a pause that keeps requests away now.
type PauseState struct {
	Whose
	Since time.Time `json:"since,omitzero"`
	// Until is its end, Next when a request may go: Until, or before that to see whether it still holds. A host that is down has no Until.
	Until time.Time `json:"until,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	Down  bool      `json:"down,omitempty"`
	Why   string    `json:"why"`
}

// WaitTimes are how long requests were in line, of one client and for one limit: that which took most of the wait. Requests that went
// at once are of the limit "". Those that gave up are in it, too.
type WaitTimes struct {
	Limit  string `json:"limit"`
	Client string `json:"client"`
	Times
}

// UpstreamTimes are how long answers of a host took, from when a request was written to the header of its answer.
type UpstreamTimes struct {
	Host string        `json:"host"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	Max  time.Duration `json:"max_ns"`
	Times
}

// Times are durations that were counted. Upto[i] is how many were at most Snapshot.Bounds[i]; Count is all.
type Times struct {
	Count int64         `json:"count"`
	Sum   time.Duration `json:"sum_ns"`
	Upto  []int64       `json:"upto"`
}

// Kinds of Events.
const (
	EventRefused = "refused" // the server refused requests because of a limit
	EventPaused  = "paused"  // somebody stays away because of that
	EventBanned  = "banned"  // a key, or an address, was refused for good or for long
	EventDown    = "down"    // nothing arrives at a host, or at the store of a shared limit
	EventAlone   = "alone"   // the store of a shared limit is away, and a process goes on with its part
	EventBack    = "back"    // what was paused, banned or down is back
	EventWrong   = "wrong"   // a configured limit is not what the server keeps to
)

// Event is something that happened. The same thing happening again at once is one Event, with a larger Count.
type Event struct {
	// Number grows by one with every Event of its Source.
	Number int64 `json:"number"`
	// At is when it happened first, Last when last.
	At   time.Time `json:"at"`
	Last time.Time `json:"last"`
	// Kind is one of the constants that begin with Event.
	Kind string `json:"kind"`
	Whose
	// Text is a sentence for people. What servers said is in it only as far as it was understood.
	Text  string `json:"text"`
	Count int    `json:"count"`
}
