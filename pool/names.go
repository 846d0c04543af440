package pool

import (
	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Requests, and the queue of waiting ones. Package internal/core/queue has their fields and methods.
type (
	// Request is a piece of work: its ID, cost, priority and deadline. See queue.Request.
	Request = queue.Request
	// State is where a request is: see the constants None to Cancelled.
	State = queue.State
	// Ended is a request that reached an end state, with its attempts and the reason. See
	// queue.Ended.
	Ended = queue.Ended
	// DeadLetter is a request that was given up, and is kept until it is requeued or dropped. See
	// queue.DeadLetter.
	DeadLetter = queue.DeadLetter
	// Ticket names a request in the queue. See queue.Ticket.
	Ticket = queue.Ticket
	// Counts has how many requests are in each State. See queue.Counts.
	Counts = queue.Counts
	// QueueConfig bounds and orders the requests that wait. See queue.Config.
	QueueConfig = queue.Config
	// OnExpiry is End or Retry: how a request goes on when its deadline has passed.
	OnExpiry = queue.OnExpiry
	// Queue is an argument of Pool.Update's function, which may cancel, kill and requeue requests.
	// See queue.Queue.
	Queue = queue.Queue
)

// States of a request.
const (
	None      = queue.None      // not held: it never was, or is forgotten
	Waiting   = queue.Waiting   // for its turn, or for the end of its backoff
	InFlight  = queue.InFlight  // unknown to the queue, or forgotten
	Done      = queue.Done      // the server has served it
	Expired   = queue.Expired   // its deadline has passed
	Dead      = queue.Dead      // given up, and kept with the reason until it is requeued or dropped
	Dropped   = queue.Dropped   // it was a dead letter
	Cancelled = queue.Cancelled // the caller cancelled it while it waited
)

// Values of OnExpiry.
const (
	End   = queue.End   // it expires
	Retry = queue.Retry // it is tried again, with a fresh deadline
)

// Errors of Submit, and of Queue.Requeue.
var (
	ErrFull      = queue.ErrFull      // MaxLen requests or more wait
	ErrDuplicate = queue.ErrDuplicate // a request with this ID waits or is in flight
	ErrDead      = queue.ErrDead      // the request with this ID is a dead letter
	ErrGone      = queue.ErrGone      // the Ticket names no dead letter
)

// Keys, and attempts to send. Package internal/core/dispatch has their fields and methods.
type (
	// Key is an API key: its limits, nonces, and how many may be in flight. See dispatch.Key.
	Key = dispatch.Key
	// Shared is the limits that several keys have together. See dispatch.Shared.
	Shared = dispatch.Shared
	// NonceConfig describes a key's nonces. See dispatch.NonceConfig.
	NonceConfig = dispatch.NonceConfig
	// KeyInfo is the state of a key, and what was sent with it. See dispatch.KeyInfo.
	KeyInfo = dispatch.KeyInfo
	// Attempt is one try at sending a request. See dispatch.Attempt.
	Attempt = dispatch.Attempt
	// Answer is the end of an attempt. The zero Answer is the safest: unknown, to be tried again.
	// See dispatch.Answer.
	Answer = dispatch.Answer
	// HostInfo is the state of a host that gets requests. See dispatch.HostInfo.
	HostInfo = dispatch.HostInfo
	// Backoff is the delay before the next attempt of a request that failed. See backoff.Policy.
	Backoff = backoff.Policy
	// Dispatcher is an argument of Pool.Update's function, which may ban, resume and pause keys.
	// See dispatch.Dispatcher.
	Dispatcher = dispatch.Dispatcher
)

// MaxShared is how many Shared a key may count in at once.
const MaxShared = dispatch.MaxShared

// ErrExhausted: every key is out of use.
var ErrExhausted = dispatch.ErrExhausted
