package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Config is all that a proxy is told: by flags, or by a file. New checks it; it is not changed, and is not to be changed afterwards.
type Config struct {
	// Listen is where clients connect: HOST:PORT. If empty, 127.0.0.1:7878. Beyond loopback it needs clients with keys, or Open.
	Listen string
	// Admin is where people and tools look: HOST:PORT on loopback. If empty, 127.0.0.1:7879; "off": nowhere.
	Admin string
	// Open lets anybody who reaches Listen send, also without a key, and also from elsewhere than this machine.
	Open bool
	// TLS is for Listen. If nil, it speaks plain HTTP.
	TLS *tls.Config

	// MaxWait is the longest that a request waits for its turn: if more is foreseen, it is refused at once. If zero, 60 s; negative:
	// nobody waits.
	MaxWait time.Duration
	// Grace is how long those that wait may go on when the proxy is told to stop. What is in flight is always finished. If zero, none.
	Grace time.Duration

	Bounds  Bounds
	Clients Clients
	// Upstreams are the servers that requests may go to, one at least. No two have the same Host and Path.
	Upstreams []Upstream

	// Dial opens connections to upstreams. If nil, a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Live says that Proxy.Apply may change all of this later. It costs a little for each request.
	Live bool

	// State is a file for what was sent and may still count, so that a restart forgets no window. If empty, none.
	State string
	clock func() (time.Time, boottime.Reading) // of that file; nil: the machine's

	// Share says where limits are shared with other processes, and Shared are those: whoever calls New opens the store, and closes Shared when
	// the proxy has ended. If Shared is nil, limits are not shared.
	Share  ShareBy
	Shared *sharestore.Limits

	// Log is told what happens to the proxy, Access of each request, at level Info. If nil, nobody. No key is ever logged.
	Log, Access *slog.Logger
}

// Bounds keep clients that are large, many or slow from taking up the proxy.
type Bounds struct {
	// Header is the most bytes of a request's header. If zero, 64 KiB.
	Header int
	// Body is the most bytes of a request's body: of a longer one the answer is 413. If zero, 1 GiB; negative: any.
	Body int64
	// Kept is how much of a body is held in memory, so that it can be counted, and sent again after a refusal. What is longer is sent once,
	// as it comes. If zero, 32 MiB.
	Kept int64
	// KeptInAll is the same for all requests together; with more, bodies are sent once. If zero, 512 MiB.
	KeptInAll int64
	// Connections is how many may be open at Listen; more wait to be accepted. If zero, 16384.
	Connections int
	// HeaderTimeout is how long a request's header may take from its first byte to its end. If zero, 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection without a request stays open. If zero, 2 min.
	IdleTimeout time.Duration
	// Stall is how long a client may take none of its answer, or send nothing of its body, while that is waited for. If zero, 1 min.
	Stall time.Duration
}

// Clients say who asks. A client has a line of its own, and gets its share by weight, however much others ask for.
//
// Who asks is told by its key for the proxy; else, by Header; else, by its address. A request whose client is not in the List has
// the name that Header says, or its address, and what Default says.
type Clients struct {
	// Header is the field of requests that names the client where it has no key. It is not passed on. If empty, none.
	Header string
	// List are the clients that are known by name. If one of them has Keys, requests without a key of the List are refused with 401,
	// unless the proxy is Open.
	List []Client
	// Default is for each of the others; its Name, Keys and Addresses are not used.
	Default Client
	// Most is how many clients are told apart that are not in the List; further ones share one line, as "others". If zero, 1000.
	Most int
}

// Client is who asks.
type Client struct {
	// Name is what it is called in logs and on the page. It is not secret.
	Name string
	// Keys are hashes of its keys for the proxy, to be sent as Paceline-Key, or where a client of the upstream's API has its key:
	// Authorization, X-Api-Key, Api-Key, X-Goog-Api-Key. A key for the proxy is never passed on.
	Keys []KeyHash
	// Addresses are those it has, if it is known by that.
	Addresses []netip.Prefix
	// Weight is its share among clients that want more than there is. If zero, 1.
	Weight float64
	// HeadStart is how much earlier its requests count as having come: interactive before batch. Who has less still gets its turn.
	HeadStart time.Duration
	// MaxWaiting is how many of its requests may wait, for all upstreams together. If zero, 10000; more are refused.
	MaxWaiting int
	// MaxWait is Config.MaxWait for it. If zero, as that.
	MaxWait time.Duration
	// Limits are its own, of what it asks of all upstreams together: requests, tokens, or money (in millionths of a dollar).
	Limits []rate.Limit
}

// KeyHash is the SHA-256 of a key, so that nobody who reads a configuration can send with it.
type KeyHash [sha256.Size]byte

// HashKey returns the hash of a key.
func HashKey(key string) KeyHash { return sha256.Sum256([]byte(key)) }

const hashPrefix = "sha256:"

// String returns the hash as ParseKeyHash reads it.
func (h KeyHash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseKeyHash reads sha256: and 64 hexadecimal digits.
func ParseKeyHash(s string) (h KeyHash, err error) {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(h) {
		return h, fmt.Errorf("expected %s and %d hexadecimal digits, as printf %%s KEY | sha256sum prints them", hashPrefix, 2*len(h)) // it may be a key: not shown
	}
	return KeyHash(b), nil
}

// Upstream is a server that requests are passed on to.
type Upstream struct {
	// Name is what it is called in logs and on the page. If empty, the host of To.
	Name string
	// Path is the beginning of the paths that go there, by whole segments: /openai. It is taken away before To.Path is put in front.
	// If empty, all paths.
	Path string
	// Host is the name by which clients reach it, without a port. If empty, any.
	Host string
	// To is where requests go: http or https, a host, and a path to put in front of theirs. No user, query or fragment.
	To *url.URL
	// H2C has an http To spoken to in HTTP/2, as gRPC servers without TLS want it.
	H2C bool
	// TLS is for an https To. If nil, certificates are checked by the system's authorities.
	TLS *tls.Config

	// Preset are limits as published, by the name of a provider.Preset: openai:tier1. Its limits and Limits hold together. If empty, none.
	Preset string
	// PerSecond: limits per minute of the Preset hold per second, too.
	PerSecond bool
	// Limits are what the server allows.
	Limits []Limit
	// Auto finds out what the server allows, where nobody knows.
	Auto bool
	// Arrivals says what requests prove about when they arrived, for Limits. Late must be zero.
	Arrivals limit.Arrivals
	// InFlight is how many requests each key may have open at the server. If zero, any number.
	InFlight int
	// Tokens has what language models use counted also where no limit asks for that.
	Tokens bool
	// Counting is what the server counts against limits of tokens. If zero, what is documented.
	Counting tokens.Counting
	// Prices are what models cost, for limits of money, where the provider has not published that, or has agreed on something else. One that names
	// the model goes before one for all.
	Prices []Price
	// RequestPrice is what each request costs, beside its tokens, in USD.
	RequestPrice float64
	// Provider reads what answers say about limits. If nil, that of the host or of the Preset, or as answers look.
	Provider provider.Dialect

	// Keys are credentials to send with, instead of the clients' own: a request goes with the one that may go soonest. If empty,
	// requests go with what clients send.
	Keys []Key
	// Header and Query are set on every request, instead of what the client says there.
	Header, Query []Field

	// Attempts is how often a request may be sent, the first time included. If zero, 3.
	Attempts int
	// Backoff is how long a request waits after an attempt that failed. Its zero value is ready.
	Backoff backoff.Policy
	// AnswerTimeout is how long one attempt may take until the header of its answer. If zero, 10 min; negative: any time.
	AnswerTimeout time.Duration
	// ConnectTimeout is how long a connection may take, TLS included. If zero, 10 s.
	ConnectTimeout time.Duration
	// MaxPause is how long all stay away at most because of one answer. If zero, 1 h; negative: as long as the server asks.
	MaxPause time.Duration
	// MaxOutage is how long requests wait for a server where nothing arrives, and until then none fails because it could not be sent; afterwards
	// they fail at once, but for one that goes to see. If zero, 10 s; negative: nobody waits.
	MaxOutage time.Duration
	// Forwarded tells the server who asked, in X-Forwarded-For, -Host and -Proto. Otherwise these are removed, if clients send them.
	Forwarded bool
	// KeepHost passes on the Host that the client asked for, instead of that of To.
	KeepHost bool
}

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Model         string // as requests name it; if empty, each that no other Price names
	Input, Output float64
	Cached        float64 // of input that was read from a cache; if zero, Input
}

// Limit is a limit of an upstream, and of whom.
type Limit struct {
	rate.Limit
	// Scope is who shares it: provider.Key, each key (or each credential that clients send); provider.IP, all requests; provider.Model or
	// provider.Route, each model or route of each key. If empty, provider.Key, or provider.Model if the Limit is EachModel or has a Model.
	Scope provider.Scope
	// Only is the one model or route that it is for, as transport.Partition has it ("GET /users/*"). If empty, each.
	Only string
}

// Key is a credential for an upstream.
type Key struct {
	// Name is what it is called in logs and on the page. It is not secret.
	Name string
	// Secret is what {key} stands for.
	Secret Secret
	// Limits are this key's, in place of the upstream's that are of Scope provider.Key. If empty, those.
	Limits []rate.Limit
}

// Secret is text that is not shown: whatever prints it, prints dots.
type Secret string

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalText has no encoder show it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

const hidden = "…"

// Field is a header field or a query parameter. {key} in its Value stands for the Secret of the Key that the request goes with.
type Field struct {
	Name  string
	Value Secret
}

// ConfigError is what is wrong with a Config.
type ConfigError struct {
	// Field is where, such as Upstreams[1].Path.
	Field string
	Err   error
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }
