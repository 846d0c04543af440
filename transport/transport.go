// Package transport has an http.RoundTripper that keeps any HTTP client within the limits of the servers it talks to.
//
//	rate := limit.MustRolling(500, time.Minute)
//	paced := transport.Must(transport.Config{Limiter: rate})
//	client := &http.Client{Transport: paced}
//
// A request waits for its turn, first come first served, and is sent; what the answer says of limits is heeded; what the
// server refused, or nobody can have processed, is sent again. Deadlines are checked before the wait: a request that
// cannot meet its own fails at once, with an error that says when it could go.
//
// The life of one attempt:
//
//	partition   host, credential, model, route and client say which limits it counts in
//	acquire     leave from all of them at once, by one of the Keys if any     paceline.Group, a lane per partition, a way per key
//	send        the Base, with the key's credential, at most once per leave, timed from the end of the write
//	judge       what it proves, and whether to send it again                  package classify
//	settle      each limit learns how it ended and what the server said of it
//
// A body that a caller reads is the Base's own, untouched. Only with Config.Tokens, and for the answers of known language
// model APIs, is it watched while it passes, to settle with what was really used.
//
// It adds nothing to a request, and what an http.Client sends after a redirect it takes for meant: the Client drops Authorization,
// Proxy-Authorization and Cookie for another host, and no field of a provider's own. If you send keys in X-Api-Key and the like, set
// CheckRedirect.
//
// Where several clients share it, each has its part of every limit (Config.Client). A request that would wait for too long fails
// before it waits (Config.MaxWait).
//
// It is not a cache, a circuit breaker or a queue: work that is to survive its caller, with nonces, deadlines or dead letters, belongs in
// a pool.Pool.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send/once"
	"github.com/paceline-go/paceline/internal/send/timer"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// Config says how a Transport sends. The zero value is ready: it has no limit of its own, learns from answers, and sends
// again what was refused.
type Config struct {
	// Base sends. If nil, http.DefaultTransport.
	Base http.RoundTripper
	// Limiter is one limit that all requests share, to whatever host. It belongs to the Transport from now on. If nil, none.
	Limiter limit.Limiter
	// Limit makes the limiter of a partition when its first request comes, and again if the partition was forgotten. It is
	// asked for each scope that the request counts in: p.Scope says which, and only the fields of that scope are set. Nil: no
	// limit there. Each must be a new one. It is called under a lock and must not use the Transport. Requests whose model is not
	// known (see Partition) count together, in the limit of the model "". If Limit is nil, none.
	Limit func(p Partition) limit.Limiter
	// Keys are credentials of the Transport's own: each request goes with the one with which it may go first, which is decided when it goes.
	// A key that was banned, has no credit, or was denied (401, 403) what other keys were not, three times in a row, is out until
	// Readmit, and Snapshot says so; the request goes again with another, as often as Attempts says. When all are out, requests fail at once with ErrKeys. The Key
	// of a request's Partition is then that of its key: what the request itself has does not count. A request that a redirect has led to
	// another host gets none and fails. If empty, requests have their own.
	Keys []Key
	// Preset is Limit by name: the limits that a provider publishes, as Published makes them of a provider.Preset. With Limit, both hold.
	// Where nobody knows a host, that provider is taken for who runs it. Its numbers are those of the model that it names: that a request is
	// for another is said once for each (see Logger). If empty, none.
	Preset string
	// PerSecond has the limits of Preset per minute hold per second, too (see the constant PerSecond).
	PerSecond bool
	// Partition says what a request counts in; it must not read the body. Its Scope is ignored. If nil, PartitionOf. Where
	// it leaves Model empty, the model is the body's, if Tokens is set.
	Partition func(r *http.Request) Partition
	// Organization names whose key a request has: all keys of one organization, project or account count in the same limits, as if they
	// were one key. If nil, the keys of a provider that names the organization in its answers (OpenAI, Anthropic) count together until the first
	// answer of each tells whose it is, where Limit is set; from then on they count where they belong, with what was sent before. A key that
	// comes when several organizations are known sends one request, and the others when that is answered.
	Organization func(r *http.Request) string
	// Cost changes what a request costs: c is one request and, with Tokens, what is estimated. If nil, it costs c.
	Cost func(r *http.Request, c limit.Cost) limit.Cost
	// Price says what a model costs, by the name that the body or the URL gives it, for limits of money. With Tokens, a request to a known language
	// model API then costs limit.Money, in millionths of a dollar, beside what Cost says: the most that it may cost, and once it is answered what it did
	// cost; nothing where it was refused or failed. Where a limit of money concerns a request whose price is not known, or whose
	// tokens cannot be counted, the request fails with ErrPrice. p has all fields but the Scope. If nil, only Cost counts money.
	Price func(p Partition, model string) (price provider.ModelInfo, known bool)
	// Tokens estimates what requests to known language model APIs (tokens.APIOf) cost in tokens, and learns from what their
	// answers say was used. The bodies of such requests are read before they are sent. If nil, tokens are not counted.
	Tokens *tokens.Estimator
	// Counting is what the server counts against its limits of tokens. If zero, what the API's provider documents: of OpenAI's,
	// and of those that speak like them, what a request may use when it arrives, whatever it uses in the end. tokens.Used
	// sends more to a server that counts what was used, and is refused by one that does not.
	Counting tokens.Counting
	// MaxBody is how much of a request's body is read for Tokens. A longer one, which its Content-Length tells before it is read,
	// counts as a token for four bytes. If zero, 32 MiB.
	MaxBody int64
	// Uncounted is how many tokens a request counts as, at least, whose tokens cannot be counted: its body is compressed, too long or
	// malformed, or holds what nobody can see from here, such as an earlier answer by its number. It is said once for each route (see
	// Logger). If zero, what the length tells.
	Uncounted int64
	// MaxWaiting is the most requests that may wait for their turn, in all; more fail at once with paceline.ErrFull. If zero, any
	// number.
	MaxWaiting int
	// MaxWait is the longest that a request waits for its turn, before its first attempt and later ones together; sending it and the
	// pause after a failure do not count. If its turn is foreseen to come later, as things are, it fails before it waits, with
	// paceline.ErrDeadline in an *Error that says when it could go; and when it has waited for so long, if not. It is called once for each
	// request. If it is nil or returns 0, there is no bound but the context's.
	MaxWait func(r *http.Request) time.Duration
	// Client says which client a request is from. Each client has a line of its own, and those who wait for a limit share it by
	// weight, in what they use of it: requests, or, where a limit counts several things, whichever a request needs the largest part
	// of. What is reserved counts as used. However many requests of one wait, and for however many models and routes, another's waits
	// for its own part alone. It is called once for each request and must not read the body; what it says of a client holds from then
	// on, but for its Limit. If nil, all wait in the order in which they came.
	Client func(r *http.Request) Client
	// Clients has the Transports that are given the same Clients know one another's: the Limit and the MaxWaiting of a Client are then of
	// what it asks of all of them together. Config.MaxWaiting must be 0. One that is not needed any more is to be told: see Transport.Retire. If nil, its
	// clients are its own.
	Clients *Clients
	// Fill lets requests that do not delay the first in line go ahead of it; see paceline.GateConfig. 64 is right for prompts of
	// many sizes under a limit of tokens. If zero, all go in the order in which they came.
	Fill int
	// UntilBody has the limits count a request as in flight until its answer's body has been read or closed, for a limit of
	// open requests where servers count those. If false, only until the header of the answer, and so a stream that stays
	// open for hours holds up nobody; with Tokens, those of language model APIs are in flight until the end in any case.
	UntilBody bool

	// Provider reads what answers say about limits. If nil, that of the host, if known; else as each answer looks.
	Provider provider.Dialect
	// Scope says whom a refusal concerns, where the Transport would get it wrong. p has all fields of the request. If nil or
	// the answer is empty: as the server said, or as its documentation has it, or the key.
	Scope func(p Partition, o provider.Observation) provider.Scope
	// Share, if not nil, is given how the limits of a partition, and those of a client alone, are made, and returns what holds in their place:
	// a share.Member of such limits, say, that other processes have, too. made returns new ones each time that it is called. It is called under
	// the Transport's lock. Fill must be 0 if what it returns does not foresee.
	Share func(p Partition, made func() limit.Limiter) limit.Limiter
	// Adopt is told what limits the server states for a partition that has a limiter of Limit, when that changes. It is
	// called where the limiter may be changed, under its lock: SetLimit(now, …). It must be quick and must not use the
	// Transport. If nil, the configured limit stands, and what the server says can only tighten it.
	Adopt func(now mono.Time, p Partition, l limit.Limiter, said []provider.Policy)

	// Attempts is how often a request may be sent, the first time included. If zero, 3; 1: nothing is sent again. What found no way to the host
	// was not sent: see MaxOutage.
	Attempts int
	// AttemptTimeout is how long one attempt may take from being handed to the Base to the end of its answer's header: then it is
	// ended, with ErrAttemptTimeout, and sent again like one that was cut off. The wait for a turn does not count, nor does the
	// answer's body, which may be a stream of hours. http.Client.Timeout and a context's deadline bound all of it, the wait, all
	// attempts and the body: a Timeout that is right for one answer fails requests because they wait. If zero, none.
	AttemptTimeout time.Duration
	// CheckRetry has the last word on whether a request is sent again, after each attempt: a.Again is what the Transport would do,
	// a.Why what stands in the way of that. resp is the answer, nil if there is a.Err; what is read of its body is still there for
	// the caller. It may send again an answer of 200 that asks for patience in its body, or a POST that is known to do no harm; or
	// not send again what would be. Whatever it says, each attempt has leave of its own from every limit, there are no more than
	// Attempts of them, a pause that the server asked for is kept, and a request whose context has ended, whose deadline comes
	// first or whose body cannot be read again is not sent again. An error that it returns is RoundTrip's, instead of the answer. It
	// is called on the goroutine that calls RoundTrip. If nil, it is as a.Again says.
	CheckRetry func(ctx context.Context, a Attempt, resp *http.Response) (again bool, err error)
	// Adaptive has a bound on the requests in flight that nobody states, for each host and, where requests name a model, each model:
	// it shrinks when answers take longer, or refuse because of an overload (503, 529, or a 429 that says nothing of limits), and
	// grows while they are quick. See limit.Adaptive; the zero AdaptiveConfig is ready. Until when a request is in flight is as
	// UntilBody says. If nil, none.
	Adaptive *limit.AdaptiveConfig
	// Hedge sends a second copy of a request whose answer is slow. Its zero value: none.
	Hedge Hedge
	// Backoff is how long a request waits after an attempt that failed, and a partition after a refusal that does not say
	// how long. Its zero value is ready.
	Backoff backoff.Policy
	// MaxRetryAfter is the longest that anybody waits because a server asked to, or refused and did not say. When one asks for longer the refusal is
	// returned at once, and so, until the wait is shorter, requests fail at once with ErrPaused. If zero, 5 minutes;
	// negative: nobody waits.
	MaxRetryAfter time.Duration

	// MaxPause is how long everybody stays away at most because of one answer, whatever it asks for: then one request goes to see
	// whether that still holds. If zero, 1 h; negative: as long as the server asks.
	MaxPause time.Duration
	// MaxOutage is how long requests wait for a host where nothing arrives: refused connections, no route, no such name, a wrong
	// certificate, only answers 5xx. While it lasts one request at a time probes it, and until then none fails because nothing of it could be
	// sent: that is none of its Attempts, unless its body cannot be read again. Once a probe has failed after it, others fail at once with
	// ErrOutage. If zero, 10 s; negative: nobody waits, and each try is an attempt.
	MaxOutage time.Duration

	// MaxPartitions bounds how many combinations of host, key, model, route and client are remembered, at some 8 kB each. Beyond it
	// those not used for longest are forgotten, and with them what still counts in their windows. So many clients with limits of their own
	// are remembered besides until nothing counts in those any more. If zero, 4096.
	MaxPartitions int
	// Idle is how long one is remembered that is not used. It should be longer than the longest window. If zero, 1 h.
	Idle time.Duration

	// Recorder keeps what was sent for a process that comes after this one. If nil, a restart begins with empty windows.
	Recorder Recorder

	// Ended is told of each attempt, on the goroutine that calls RoundTrip, when its header or error is there; of the one of two
	// copies that was not needed (see Hedge) on another. If nil, nobody.
	Ended func(Attempt)
	// Logger is told of pauses and of waits (see paceline.GateConfig), at level Info, and of requests that are not sent
	// again, at Debug, and at Warn of what is not as configured, such as a model that Preset does not have. If nil, nobody. No credential is ever logged.
	Logger *slog.Logger
}

// Attempt is what became of one attempt.
type Attempt struct {
	Request   *http.Request
	Partition Partition // all fields of the request
	Key       string    // the Name of the Key of Config.Keys that it went with; empty: a key of its own
	Number    int       // the first is 1; one of which nothing was sent may be none, and then the next has the same
	Hedged    bool      // it is the copy of a slow one: see Hedge
	Cost      limit.Cost
	Waits     paceline.WaitStats // for its turn: how long, and for which limits
	Sent      time.Time          // when it was handed to the Base, at the end of its wait; for Ended alone
	RTT       time.Duration      // from when all of it was written to the answer's header; 0: not known
	Status    int                // 0: no answer
	Err       error
	Result    limit.Result
	Said      provider.Observation // the zero Observation: nothing was read
	Again     bool                 // it is going to be sent again
	// Why says, in words, what stood in the way of sending it again, where it failed or was refused and is not.
	Why string
}

// Transport is an http.RoundTripper that keeps within limits. Made by New. Safe for concurrent use. It starts no
// goroutine, but for the copies of Hedge, which end when the Base returns; it needs no closing; a client's CloseIdleConnections
// reaches the Base.
type Transport struct {
	config Config
	base   *once.Base
	policy classify.Policy

	preset    provider.Preset   // the zero Preset: none
	publisher provider.Provider // whose it is
	log       *slog.Logger
	slow      bool // nothing is configured: begin slowly after a pause

	hedging bool
	late    *timer.Watch // over attempts; nil: no Config.AttemptTimeout

	*state
}

// state is what a Transport and those that With made of it have in common.
type state struct {
	epoch   time.Time
	latest  atomic.Pointer[Transport]
	retired atomic.Bool

	shared *node // nil: no Limiter
	senses bool  // it finds its rate by refusals

	clients *Clients
	group   *paceline.Group // that of the clients
	view    *paceline.View  // of the lanes there
	look    look
	jitter  *rand.Rand // under the Group's lock

	accounts []*account
	keys     []*key

	mu            sync.Mutex // stacks the partitions, and the states of keys
	leaves        map[Partition]*leaf
	nodes         map[Partition]*node
	homes         map[Partition]string      // by host and organization, the key that its limits are known by
	joined        map[Partition]string      // by host and key, that key
	introductions map[string]*introductions // by host
	others        map[string]bool           // models that are not the preset's
	blind         map[Partition]bool        // by host and route, where it was logged that tokens cannot be counted
	recent        ring

	random   sync.Mutex // stacks rng
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

// New returns a Transport as configured. The error names the field and value that make no sense.
func New(c Config) (*Transport, error) {
	if c.Attempts < 0 {
		return nil, fmt.Errorf("transport: Attempts %d is negative", c.Attempts)
	}
	if c.MaxBody < 0 {
		return nil, fmt.Errorf("transport: MaxBody %d is negative", c.MaxBody)
	}
	if c.Uncounted < 0 {
		return nil, fmt.Errorf("transport: Uncounted %d is negative", c.Uncounted)
	}
	if c.MaxPartitions < 0 {
		return nil, fmt.Errorf("transport: MaxPartitions %d is negative", c.MaxPartitions)
	}
	if c.Idle < 0 {
		return nil, fmt.Errorf("transport: Idle %v is negative", c.Idle)
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
		config: c, preset: preset, publisher: publisher, log: log, base: once.New(c.Base), slow: c.Limiter == nil && c.Limit == nil && !slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Limit != nil }),
		policy: classify.Policy{Dialect: c.Provider, MaxRetryAfter: c.MaxRetryAfter}, hedging: c.Hedge.on(),
	}
	t.state = &state{
		epoch: clients.epoch, clients: clients, group: clients.group, view: clients.group.View(), jitter: random(), rng: random(),
		leaves: map[Partition]*leaf{}, nodes: map[Partition]*node{}, homes: map[Partition]string{}, introductions: map[string]*introductions{}, others: map[string]bool{}, blind: map[Partition]bool{}, joined: map[Partition]string{},
	}
	t.latest.Store(t)
	if c.AttemptTimeout > 0 {
		t.late = timer.New(c.AttemptTimeout)
	}
	t.hedges.share = c.Hedge.share()
	t.recent.init()
	if err := t.takeKeys(c.Keys); err != nil {
		return nil, err
	}
	if c.Limiter != nil {
		n, err := t.newNode(Partition{Scope: provider.All}, c.Limiter)
		if err != nil {
			return nil, err
		}
		t.shared, t.senses = n, limit.Senses(c.Limiter)
		t.clients.own(n)
	}
	return t, nil
}

// preset puts in the limits of the Preset, and returns it and whose it is.
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
	published, err := Published(c.Preset, variants...)
	if err != nil {
		return preset, publisher, err
	}
	c.Limit = both(published, c.Limit)
	preset, _ = provider.LookupPreset(c.Preset)
	publisher, _ = provider.Publisher(c.Preset)
	return preset, publisher, nil
}

// both returns the limits of two functions together. The second may be nil.
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

// fill puts in the defaults.
func (c *Config) fill() {
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, defaultMaxRetryAfter)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxPartitions = cmp.Or(c.MaxPartitions, defaultMaxPartitions)
	c.Idle = cmp.Or(c.Idle, defaultIdle)
	c.MaxOutage = cmp.Or(c.MaxOutage, defaultMaxOutage)
	if c.Partition == nil {
		c.Partition = PartitionOf
	}
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
