package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// Config describes a Transport. The zero value is ready: it has no configured limit, learns limits
// from answers, and sends refused requests again. The fields are in groups:
//
//	limits    Limiter, Limit, Preset, PerSecond, Adaptive, Fill, UntilBody, Use, Ramp, Share, Adopt
//	whose     Partition, Organization, Keys, Targets, Affinity, Client, Clients
//	cost      Cost, Actual, Charges, Tokens, Counting, MaxBody, Uncounted, Price
//	waits     MaxWaiting, MaxWait, MaxRetryAfter, MaxPause, MaxOutage
//	attempts  Base, Attempts, AttemptTimeout, NoTimeout, Backoff, CheckRetry, Hedge
//	answers   Provider, Scope
//	memory    MaxPartitions, Idle, MaxFrozen, Recorder, StartFull
//	reports   Begins, Ended, Settled, Logger
type Config struct {
	// Limiter is one limit for all requests, to any host. It belongs to the Transport from now on: two
	// Transports, or a Transport and a Gate, with one limiter would be a data race, and are an error
	// (limit.Bind). Several http.Clients can have one Transport. If nil, none.
	Limiter limit.Limiter
	// Limit makes the limiter of a partition at its first request, and again if the partition was
	// frozen or forgotten. It is called for each scope in which the request counts: its key, its
	// address, its host and others. p.Scope is that scope, and only its fields are set. A nil result
	// means no limit there. With Keys, a limiter for other scopes than provider.Key bounds all keys
	// together. Each limiter must be new.
	// Limit is called under a lock and must not use the Transport. Requests of unknown model (see
	// Partition) count together in the limit of the model "". If Limit is nil, there is none.
	Limit func(p Partition) limit.Limiter
	// Preset names the limits that a provider publishes, as Published makes them of a
	// provider.Preset. With Limit, both hold. A host that no table knows is taken for that
	// provider's. Where the provider publishes no number, limits follow what answers state, and Fill
	// has no effect. The numbers are those of the model that the Preset names; each other model is
	// logged once (see Logger). If empty, none.
	Preset string
	// PerSecond makes the Preset's limits per minute hold per second too (see the constant
	// PerSecond).
	PerSecond bool
	// Adaptive bounds the requests in flight where no bound is stated: for each host and, where
	// requests name a model, each model. The bound shrinks when answers take longer or refuse
	// because of an overload (503, 529, or a 429 without a statement of limits). It grows while
	// answers are quick. See limit.Adaptive; the zero AdaptiveConfig is ready. UntilBody says how
	// long a request is in flight. If nil, none.
	Adaptive *limit.AdaptiveConfig
	// Fill lets requests that do not delay the first in line go ahead of it; see
	// paceline.GateConfig. 64 suits prompts of many sizes under a limit of tokens. If zero, all go
	// in the order of arrival.
	Fill int
	// UntilBody counts a request as in flight until its answer's body has been read or closed. It
	// is for a limit of open requests, where servers count those. If false, a request is in flight
	// until the header of its answer, so a stream of hours blocks no other. With Tokens, requests
	// to language model APIs are in flight until the end in any case.
	UntilBody bool
	// Use is the part of each limit of a server that is used, above 0 and at most 1, also of what its
	// answers say is left. The rest is for others who use the same keys. Limits of clients are used
	// whole, and so are limits that a Share divides. If zero, 1. See limit.Headroom.
	Use float64
	// Ramp is the time in which the load of a partition rises from one request to Use: at its first
	// request, after a rest that is as long and as long as a window, and after a refusal for a load
	// that rose too quickly (provider.Observation.Surged). If zero, it rises in a minute after such a
	// refusal alone.
	Ramp time.Duration
	// Share, if not nil, replaces the limits of a partition, and those of a client alone. made
	// makes the limits that would hold, new ones at each call. Share returns the limiter to use:
	// for example a share.Member of limits that other processes share. Share is called under the
	// Transport's lock. With share.Members, Fill must be 0. While the store has another limit, requests
	// fail at once with both limits (share.Member.FailRefused).
	Share func(p Partition, made func() limit.Limiter) limit.Limiter
	// Adopt receives the limits that the server states for a partition with a limiter of Limit,
	// whenever they change. It is called under the limiter's lock, so it may change the limiter:
	// SetLimit(now, …). It must be quick and must not use the Transport. If nil, the configured
	// limit stands, and the server's statements can only tighten it.
	Adopt func(now mono.Time, p Partition, l limit.Limiter, said []provider.Policy)

	// Partition selects what a request counts in. It must not read the body. The result's Scope is
	// ignored. If the result's Model is empty and Tokens is set, the Model comes from the body. If
	// nil, PartitionOf.
	Partition func(r *http.Request) Partition
	// Organization names the owner of a request's key. All keys of one organization, project or
	// account count in the same limits, as if they were one key.
	//
	// If nil, some providers name the organization in their answers (OpenAI, Anthropic). Where
	// Limit is set, keys of such a provider count together until the first answer of each names its
	// owner, for good. From then on each key counts with its owner, and its earlier requests count
	// there too. A key that comes when several organizations are known sends one request; its others
	// go after that answer.
	Organization func(r *http.Request) string
	// Keys are the Transport's own credentials. Each request goes with the key that lets it go
	// first; the choice falls when it goes. A key is out of use when it was banned or has no
	// credit. It is also out after three requests in a row that it alone was denied (401, 403),
	// while other keys were served. It stays out until Readmit, and Snapshot shows it. The request
	// goes again with another key, within Attempts. If all keys are out, requests fail at once with
	// ErrKeys.
	//
	// A server may deny requests with every key. After three in a row, requests for it fail at once with
	// ErrKeys, and the error has the server's words. One request asks again after 1 s, and later after up
	// to 10 min; Readmit ends that at once. Where the keys have been served, it takes 21 in a row, and
	// the pause is at most 10 s: those requests may be at fault themselves. A line at level warn has the
	// answer, and Snapshot shows the keys as denied, until a request is served.
	//
	// The Key of a request's Partition is the key that it went with; a credential of the request's
	// own does not count. A request that was redirected to another host gets no key and fails. If
	// empty, requests have their own credentials.
	Keys []Key
	// Targets are servers of which each can serve all requests. A request goes to the one that may take
	// it soonest, whatever its own host; the choice falls when it goes. Each counts by itself, and has
	// limits, keys and a health of its own. See Target.After for an order between them.
	//
	// After a failure or a refusal the next attempt goes to another Target, if one is open, at once. A
	// host that is down is tested every 2 s at the latest, by one request. Where Targets have several
	// costs, a request waits with the largest of each unit, and counts with that of its Target once it
	// is answered. The Model of a Partition is then the one that the path or the body of the request
	// names. All Targets must speak the same API. If empty, requests go to their own hosts.
	Targets []Target
	// Affinity keeps the requests of a session at one of several Targets. With a Fill, requests that
	// prefer other Targets go past those that wait for theirs.
	Affinity Affinity
	// Client returns the client of a request. Each client has its own lane, and the clients that
	// wait for a limit share it by weight. The weight applies to requests. Where a limit counts
	// several units, it applies to the unit of which a request needs the largest part. Reserved
	// amounts count as used. The number of a client's waiting requests, and of its models and
	// routes, does not matter to the part of another client.
	//
	// Client is called once for each request and must not read the body. Its result replaces what
	// was known of that client, except its Limit. If nil, all requests wait in the order of
	// arrival.
	Client func(r *http.Request) Client
	// Clients joins Transports: with the same Clients, the Limit and MaxWaiting of a Client apply
	// to its requests through all of them together. Config.MaxWaiting must then be 0. A Transport
	// that is no longer needed must be retired: see Transport.Retire. If nil, the Transport has its
	// own clients.
	Clients *Clients

	// Cost changes the cost of a request. c is one request and, with Tokens, the estimated tokens.
	// Of weight and orders, c has what the request's charge says. If nil, the cost is c.
	Cost func(r *http.Request, c limit.Cost) limit.Cost
	// Actual returns what a served request has cost, if its answer says so in a way that no row of the
	// provider knows. It replaces the admitted cost. It must not read the body. If nil, or if ok is
	// false, the admitted cost stands, or that of Tokens and Charges.
	Actual func(answer *http.Response) (cost limit.Cost, ok bool)
	// Charges are what requests cost besides the one, and in which resource they count. They go before
	// the rows of the provider: that of Preset, Provider, or the host. Their costs go before those of
	// Cost. The body of a request whose charge has a Body is read, up to MaxBody, and so is that of the
	// answer for an Answer. If nil, only the provider's rows hold.
	Charges []provider.Charge
	// Tokens estimates the tokens of requests to known language model APIs (tokens.APIOf), and
	// learns from the usage in their answers. The Transport reads the bodies of such requests
	// before it sends them. If nil, tokens are counted only where a Preset or the Limiter has limits of
	// them, and neither Cost, Actual nor Charges is set: by an Estimator without a Vocabulary.
	Tokens *tokens.Estimator
	// Counting is how the server counts tokens against its limits. If zero, as the provider of the
	// host documents. At any other host it is tokens.Sum, since no server counts more: set
	// tokens.Reserved for a server that counts as OpenAI does. For a server that counts the tokens used, set tokens.Used: a call
	// counts with the usage in its answer, 109 for 9 of input and 100 of output. Any other server
	// refuses some of what then goes.
	Counting tokens.Counting
	// MaxBody is how much of a body is read for Tokens and Charges. A longer body of a request, as its
	// Content-Length states before the read, counts as one token per four bytes. If zero, 32 MiB.
	MaxBody int64
	// Uncounted is the least number of tokens for a request whose tokens cannot be counted. Its
	// body is compressed, too long or malformed, or refers to unseen text, such as an earlier
	// answer by its number. This is logged once for each route (see Logger). If zero, the length
	// alone decides.
	Uncounted int64
	// Price returns the price of a model, by its name in the body or the URL, for limits of money.
	// With Tokens, a request to a known language model API then costs limit.Money too, in
	// millionths of a dollar, beside the result of Cost. It is the highest possible price until the
	// answer comes, and then the real price. A request that was refused or failed costs nothing.
	//
	// A request under a limit of money fails with ErrPrice if its price is unknown or its tokens
	// cannot be counted. p has all fields but the Scope. At a Target the model's name
	// there comes first, and that of the request if its price is unknown. If nil, only Cost counts
	// money.
	Price func(p Partition, model string) (price provider.ModelInfo, known bool)

	// MaxWaiting is the most requests that may wait for their turn, in all. Further ones fail at
	// once with paceline.ErrFull. If zero, there is no bound.
	MaxWaiting int
	// MaxWait is the longest that a request waits for its turns, before all its attempts together.
	// Sending, and the pause after an answer, do not count; the wait for a host that is down does. A
	// try to reach this host counts only by its pauses. A request whose foreseen turn is later
	// fails before it waits. The forecast knows how long answers take; where they take longer, a
	// request in line fails as soon as its turn cannot come in time. The error is
	// paceline.ErrDeadline in an *Error, which says when the request could go. A request that a
	// server has refused then gets that answer. MaxWait is called once for each request. If it is
	// nil or returns 0, only the context bounds the wait.
	MaxWait func(r *http.Request) time.Duration
	// MaxRetryAfter is the longest wait after a refusal, whether the server stated a delay or not.
	// If a server states a longer one, its refusal is returned at once. Further requests fail at
	// once with ErrPaused, until the remaining delay is short enough. If zero, 5 minutes; if
	// negative, no request waits.
	MaxRetryAfter time.Duration
	// MaxPause is the longest pause after one answer, whatever it asks for. After it, one request
	// goes to find out whether the pause still holds. If zero, 1 h; if negative, as long as the
	// server asks.
	MaxPause time.Duration
	// MaxOutage is how long requests wait for a host that nothing reaches: refused connections, no
	// route, no such name, a wrong certificate, only answers 5xx. During the outage, one request at
	// a time probes the host. Until MaxOutage is over, no request fails because nothing of it could
	// be sent. That is not one of its Attempts, unless its body cannot be read again. Once a probe
	// fails after MaxOutage, other requests fail at once with ErrOutage. If zero, 10 s; if
	// negative, no request waits, and each try is an attempt.
	MaxOutage time.Duration

	// Base sends the requests. If nil, http.DefaultTransport.
	Base http.RoundTripper
	// Attempts is the most times that a request is sent, including the first. If zero, 3; with 1,
	// no request is sent again. A request that found no way to the host was not sent: see
	// MaxOutage. With MaxWait, a request that a limit refuses is sent again until that is over,
	// beyond Attempts.
	Attempts int
	// AttemptTimeout is the longest that one attempt may take, from its start in the Base to the
	// end of the answer's header. After that the attempt ends with ErrAttemptTimeout, and is sent
	// again like one that was cut off. The wait for a turn does not count, nor does the answer's
	// body, which may be a stream of hours. If zero, none.
	//
	// http.Client.Timeout and a context's deadline bound everything: the wait, all attempts and the
	// body. A Timeout that suits one answer fails requests that wait.
	AttemptTimeout time.Duration
	// NoTimeout, if not nil, reports whether a request has no AttemptTimeout. An example is a request whose end
	// another program reports.
	NoTimeout func(*http.Request) bool
	// Backoff is the delay of a request after a failed attempt, and of a partition after a refusal
	// without a stated delay. Its zero value is ready.
	Backoff backoff.Policy
	// CheckRetry decides after each attempt whether a request is sent again. a.Again is the
	// Transport's own decision, and a.Why its reason against sending again. resp is the answer, nil
	// if there is a.Err. The caller can still read what CheckRetry reads of the body. CheckRetry
	// may send again an answer of 200 that asks for patience in its body, or a POST that does no
	// harm. It may also stop a request that would be sent again.
	//
	// Some rules hold whatever it returns. Each attempt has its own permit of every limit, and
	// there are no more than Attempts. A pause that the server asked for is kept. A request is not
	// sent again if its context has ended, its deadline comes first, or its body cannot be read
	// again.
	//
	// An error of CheckRetry becomes RoundTrip's error, in place of the answer. CheckRetry is
	// called on the goroutine of RoundTrip. If nil, a.Again decides.
	CheckRetry func(ctx context.Context, a Attempt, resp *http.Response) (again bool, err error)
	// Hedge sends a second copy of a request whose answer is slow. The zero value sends none.
	Hedge Hedge

	// Provider reads the answers' statements about limits. If nil, the dialect of the host, if it
	// is known; otherwise each answer's format decides.
	Provider provider.Dialect
	// Scope corrects which scope a refusal concerns, where the Transport would be wrong. p has all
	// fields of the request. If it is nil or returns an empty Scope, the scope is as the server
	// says, or as its documentation says, or the key.
	Scope func(p Partition, o provider.Observation) provider.Scope

	// MaxPartitions bounds the combinations of host, key, model, route and client at hand, at some 8
	// kB each. Beyond it, the combinations idle for longest are frozen: see MaxFrozen. If zero, 4096.
	MaxPartitions int
	// Idle is how long an unused combination is at hand before it is frozen. If zero, 1 h.
	Idle time.Duration
	// MaxFrozen is how many bytes frozen partitions may take. A frozen partition is forgotten when
	// nothing of it counts any more, and never before: neither in a window, nor as an answer that
	// said what is left until when, nor as a pause. One takes some 250 bytes after two requests, so
	// 64 MiB have a quarter of a million. Beyond MaxFrozen, a request of a new partition fails with
	// ErrFull; requests of partitions that are known go as ever. A log line warns when four fifths
	// are in use, and Snapshot shows it. As much again is for clients with their own limits. If zero,
	// 64 MiB.
	MaxFrozen int64
	// Recorder keeps a record of sent requests for a later process: package record has one in a file.
	// Limits that a Share keeps in a store are left alone, since the store knows what was sent. If nil, a
	// restart begins with empty windows, unless StartFull is set.
	Recorder Recorder
	// StartFull is for a service that restarts, and keeps no record: nothing is known of the last
	// window. Each limit whose window is at most so long counts as used up when New is called. So the
	// first request goes after that window. Longer windows begin empty: time.Minute does not stop a limit of a
	// day for a day. The process before must have ended in good order, by Drain: a request that it had
	// in flight may arrive later. Limits of clients, and those that a Share keeps in a store, are left
	// alone. With a Recorder, StartFull has no effect. If zero, all windows begin empty.
	StartFull time.Duration

	// Begins is called for each attempt right before it is recorded and the Base gets it, with the
	// request as the caller gave it. It runs on the goroutine of RoundTrip, or on that of the copy (see Hedge). If nil, none.
	Begins func(*http.Request)
	// Ended is called for each attempt when its header or error has come, on the goroutine of
	// RoundTrip. The losing one of two copies (see Hedge) is reported on another goroutine. If nil,
	// none.
	Ended func(Attempt)
	// Settled is called once for each attempt that has Ended and whose cost is final: with the usage that
	// its answer states, at the end of the body. The Outcome's Actual is that cost if it is Metered;
	// otherwise the Attempt's Cost stands. It may run on any goroutine. If nil, none.
	Settled func(Attempt, limit.Outcome)
	// Logger gets lines at three levels. Info: pauses and waits (see paceline.GateConfig). Debug:
	// requests that are not sent again. Warn: facts that contradict the configuration, such as a model
	// that Preset does not have, and routes whose answers cannot be decoded. If nil, there is no log.
	// No credential is ever logged.
	Logger *slog.Logger
}

// Attempt is the record of one attempt.
type Attempt struct {
	Request   *http.Request
	Partition Partition // all fields of the request
	Key       string    // the Name of its Key of Config.Keys; empty: the request's own credential
	Number    int       // the first is 1; if nothing was sent, the next may have the same number
	Hedged    bool      // whether it is the second copy: see Hedge
	Cost      limit.Cost
	Waits     paceline.WaitStats // for its turn, by limit
	Sent      time.Time          // when the Base got it, after the wait; for Ended and Settled alone
	RTT       time.Duration      // from the end of the write to the answer's header; 0: unknown
	Status    int                // 0: no answer
	Err       error
	Result    limit.Result
	Said      provider.Observation // the zero Observation: none
	Again     bool                 // whether the request is sent again
	// Why says in words why a failed or refused request is not sent again.
	Why string
}

// Recorder records sent requests for a later Transport, so that a restart keeps every window. It
// must be safe for concurrent use.
type Recorder interface {
	// Send records an attempt right before it may be written: its partition, with all fields of a
	// request, and its cost. The returned number is not 0. After an error the attempt is not sent,
	// and fails with that error.
	Send(p Partition, cost limit.Cost) (entry int64, err error)
	// Settle records the end of the attempt. An attempt that is never settled may have arrived at
	// any time until the process ended, and some time later.
	Settle(entry int64, cost limit.Cost, o limit.Outcome)
	// Earlier returns the requests of earlier processes that count in p, whose Scope is set. They
	// are in the order of their instants, for limit.Replay: instant 0 is zero. The list is complete
	// from since on.
	Earlier(p Partition, zero time.Time) (all []limit.Past, since mono.Time)
}

// LongRecorder is a Recorder that tells apart the attempts without an AttemptTimeout.
type LongRecorder interface {
	Recorder
	// SendLong is Send for an attempt that Config.NoTimeout names. It may last longer than any other.
	SendLong(p Partition, cost limit.Cost) (entry int64, err error)
}

// Namer is a Recorder that names the credentials of callers, so that a later process knows them again. Its
// names take the place of those of PartitionOf, if Config.Partition is nil.
type Namer interface {
	Recorder
	KeyName(credential string) string
}

// Lasting is a Recorder that learns for how long requests count.
type Lasting interface {
	Recorder
	// KeepFor asks that requests are kept for at least d, in this process and later ones. It is called with
	// each new limit, before a request counts there.
	KeepFor(d time.Duration)
}

// ErrTakenOver is the error of Recorder.Send if another process sends the requests from now on. The
// request fails with it at once, and counts nowhere.
var ErrTakenOver = errors.New("transport: another process has taken over")

// Underway is a Recorder that knows requests of an earlier process which are still in flight. They
// count in full until they are settled.
type Underway interface {
	Recorder
	// Underway calls admit for each such request that counts in p, whose Scope is set. When the
	// earlier process settles the request, settle is called, once, from any goroutine. Neither waits.
	Underway(p Partition, admit func(cost limit.Cost) (settle func(o limit.Outcome)))
}

// Transport is an http.RoundTripper that keeps within limits. New makes it. Safe for concurrent
// use. It starts goroutines for the copies of Hedge, which end when the Base returns, and to meter
// compressed answers, which end with the body. It needs no closing; Drain ends a program in good order.
// A client's CloseIdleConnections reaches the Base.
type Transport struct {
	config Config
	base   *send.Base
	policy classify.Policy

	preset    provider.Preset   // the zero Preset: none
	publisher provider.Provider // the provider of the preset
	charges   *provider.Charges // with a preset or a Provider: those of each host
	charged   sync.Map          // otherwise, *hostCharges by host
	hostLast  atomic.Pointer[hostCharges]
	hosts     atomic.Int64 // in charged
	log       *slog.Logger
	slow      bool // nothing is configured: begin slowly after a pause

	hedging bool
	late    *send.Watch // of attempts; nil: no Config.AttemptTimeout

	*state
}

// state is what a Transport shares with the Transports that its With made.
type state struct {
	epoch   time.Time
	began   time.Time // of New
	latest  atomic.Pointer[Transport]
	retired atomic.Bool
	drains  drains

	shared *node // nil: no Limiter
	senses bool  // the Limiter finds its rate by refusals

	clients *Clients
	group   *paceline.Group // the Group of the clients
	view    *paceline.View  // of the Transport's lanes there
	look    look
	jitter  *rand.Rand // under the Group's lock

	choice   atomic.Pointer[choice]
	targets  []*target
	sessions sessions
	ring     *keyring.Ring // of keys; the lock guards it
	own      ownDenials

	mu      sync.Mutex // guards the partitions, and the states of keys
	leaves  map[Partition]*leaf
	nodes   map[Partition]*node
	owners  map[string]*owners // by host
	others  map[string]bool    // models that the preset does not have
	shapes  costs.Shapes
	notices costs.Notices
	unread  map[unread]bool // logged that requests or answers cannot be read
	recent  ring
	cold    cold        // what frozen partitions remember
	rests   rests       // pauses by a user
	crowded atomic.Bool // logged that there are too many keys

	random   sync.Mutex // guards rng
	rng      *rand.Rand
	attempts atomic.Int64
	resent   atomic.Int64
	refused  atomic.Int64
	pauses   atomic.Int64
	hedges   hedges
}

const (
	defaultAttempts      = 3
	defaultMaxRetryAfter = 5 * time.Minute
	defaultMaxBody       = 32 << 20
	defaultMaxPartitions = 4096
	defaultIdle          = time.Hour
	defaultMaxOutage     = 10 * time.Second
)

// checkNumbers returns an error that names a number that must not be negative.
func (c *Config) checkNumbers() error {
	if c.Attempts < 0 {
		return fmt.Errorf("transport: Attempts %d is negative", c.Attempts)
	}
	if c.MaxBody < 0 {
		return fmt.Errorf("transport: MaxBody %d is negative", c.MaxBody)
	}
	if c.Uncounted < 0 {
		return fmt.Errorf("transport: Uncounted %d is negative", c.Uncounted)
	}
	if c.MaxPartitions < 0 {
		return fmt.Errorf("transport: MaxPartitions %d is negative", c.MaxPartitions)
	}
	if c.MaxFrozen < 0 {
		return fmt.Errorf("transport: MaxFrozen %d is negative", c.MaxFrozen)
	}
	if c.StartFull < 0 {
		return fmt.Errorf("transport: StartFull %v is negative", c.StartFull)
	}
	if c.Idle < 0 {
		return fmt.Errorf("transport: Idle %v is negative", c.Idle)
	}
	return nil
}

// New returns a Transport as configured. The error names the field and the value that make no
// sense.
func New(c Config) (*Transport, error) {
	if err := c.checkNumbers(); err != nil {
		return nil, err
	}
	if err := (&limit.HeadroomConfig{Use: c.Use, Ramp: c.Ramp}).Check(); err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("transport: Backoff: %w", err)
	}
	if c.AttemptTimeout < 0 {
		return nil, fmt.Errorf("transport: AttemptTimeout %v is negative", c.AttemptTimeout)
	}
	if err := c.Hedge.check(); err != nil {
		return nil, err
	}
	if c.Adaptive != nil {
		if _, err := limit.NewAdaptive(*c.Adaptive); err != nil {
			return nil, fmt.Errorf("transport: Adaptive: %w", err)
		}
		own := *c.Adaptive
		c.Adaptive = &own
	}
	if err := c.checkCharges(); err != nil {
		return nil, err
	}
	preset, publisher, err := c.preset()
	if err != nil {
		return nil, err
	}
	if c.Adopt != nil && c.Limit == nil {
		return nil, errors.New("transport: Adopt is set and Limit is nil: there is no limiter to change")
	}
	if c.Fill < 0 {
		return nil, fmt.Errorf("transport: Fill %d is negative", c.Fill)
	}
	if c.MaxWaiting < 0 {
		return nil, fmt.Errorf("transport: MaxWaiting %d is negative", c.MaxWaiting)
	}
	log := c.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c.fill()
	clients, err := c.clientsOf()
	if err != nil {
		return nil, err
	}
	random := func() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
	t := &Transport{
		config: c, preset: preset, publisher: publisher, log: log, base: send.NewBase(c.Base), slow: c.Limiter == nil &&
			c.Limit == nil && !slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Limit != nil }),
		policy: classify.Policy{Dialect: c.Provider, MaxRetryAfter: c.MaxRetryAfter}, hedging: c.Hedge.on(),
	}
	t.state = &state{
		epoch: clients.epoch, began: time.Now(), clients: clients, group: clients.group, view: clients.group.View(), jitter: random(),
		rng: random(), ring: keyring.New(len(c.Keys), nil),
		leaves: map[Partition]*leaf{}, nodes: map[Partition]*node{},
		owners: map[string]*owners{}, others: map[string]bool{}, unread: map[unread]bool{},
		sessions: sessions{seed: maphash.MakeSeed()}, drains: drains{begun: make(chan struct{}), news: make(chan struct{}, 1)},
	}
	t.latest.Store(t)
	if err := t.takeWays(); err != nil {
		return nil, err
	}
	if c.AttemptTimeout > 0 {
		t.late = send.NewWatch(c.AttemptTimeout)
	}
	t.hedges.share = c.Hedge.share()
	t.recent.init()
	t.cold = newCold(c.MaxFrozen)
	if c.Limiter != nil {
		if err := t.clients.checkNew(c.Limiter); err != nil {
			return nil, err
		}
		n, err := t.newNode(Partition{Scope: provider.All}, c.Limiter)
		if err != nil {
			return nil, err
		}
		t.shared, t.senses = n, ability.Learns(c.Limiter)
		t.clients.own(n)
	}
	return t, nil
}

// preset adds the limits of the Preset, and returns it and its provider.
func (c *Config) preset() (preset provider.Preset, publisher provider.Provider, err error) {
	if c.Preset == "" {
		if c.PerSecond {
			err = errors.New("transport: PerSecond without a Preset")
		}
		return preset, publisher, err
	}
	var variants []Variant
	if c.PerSecond {
		variants = append(variants, PerSecond)
	}
	preset, _ = provider.LookupPreset(c.Preset)
	publisher, _ = provider.Publisher(c.Preset)
	stated := !publisher.Silent && c.Share == nil // a store cannot share what one process finds
	published, err := published(c.Preset, true, stated, variants)
	if err != nil {
		return preset, publisher, err
	}
	c.Limit = both(published, c.Limit)
	if stated && slices.ContainsFunc(preset.Policies, provider.Policy.Unpublished) {
		c.Fill = 0 // a Fill needs limits with forecasts
	}
	return preset, publisher, nil
}

// both joins the limits of two functions. The second may be nil.
func both(a, b func(Partition) limit.Limiter) func(Partition) limit.Limiter {
	if b == nil {
		return a
	}
	return func(p Partition) limit.Limiter {
		switch x, y := a(p), b(p); {
		case x == nil:
			return y
		case y == nil:
			return x
		default:
			return limit.NewAll(x, y)
		}
	}
}

// fill sets the defaults.
func (c *Config) fill() {
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, defaultMaxRetryAfter)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxPartitions = cmp.Or(c.MaxPartitions, defaultMaxPartitions)
	c.MaxFrozen = cmp.Or(c.MaxFrozen, defaultMaxFrozen)
	c.Idle = cmp.Or(c.Idle, defaultIdle)
	c.MaxOutage = cmp.Or(c.MaxOutage, defaultMaxOutage)
	if named, ok := c.Recorder.(Namer); ok && c.Partition == nil {
		c.Partition = func(r *http.Request) Partition {
			p := PartitionBy(r, "")
			p.Key = named.KeyName(CredentialOf(r))
			return p
		}
	}
	if c.Partition == nil {
		c.Partition = PartitionOf
	}
	if c.Tokens == nil && c.Cost == nil && c.Actual == nil && c.Charges == nil && c.limitsTokens() {
		c.Tokens, _ = tokens.New(tokens.Config{}) // without an error: nothing is set
	}
}

// limitsTokens reports whether a preset, or the Limiter, counts tokens of language models. Without an
// Estimator such a limit would hold nothing back.
func (c *Config) limitsTokens() bool {
	counts := func(u limit.Unit) bool { return u == limit.Tokens || u == limit.Input || u == limit.Output }
	of := func(name string) bool {
		preset, _ := provider.LookupPreset(name)
		return slices.ContainsFunc(preset.Policies, func(p provider.Policy) bool {
			u, ok := classify.UnitOf(p.Unit)
			return ok && counts(u)
		})
	}
	rules, _ := limit.Rules(c.Limiter)
	return of(c.Preset) || slices.ContainsFunc(c.Targets, func(g Target) bool { return of(g.Preset) }) ||
		slices.ContainsFunc(rules, func(r limit.Rule) bool { return counts(r.Unit) })
}

// Must is New for configurations that are known to be right. It panics on an error.
func Must(c Config) *Transport {
	t, err := New(c)
	if err != nil {
		panic(err.Error())
	}
	return t
}

// CloseIdleConnections closes the idle connections of the Base, if it has that method.
func (t *Transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
}

func (t *Transport) now() time.Duration { return time.Since(t.epoch) }

func (t *Transport) delay(n int) time.Duration {
	t.random.Lock()
	defer t.random.Unlock()
	return t.config.Backoff.Delay(n, t.rng)
}
