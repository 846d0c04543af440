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

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Config is the whole configuration of a proxy, from flags or from a file. New checks it and does
// not change it. The caller must not change it afterwards.
type Config struct {
	// Listen is the address for clients: HOST:PORT. If empty, 127.0.0.1:7878. An address beyond
	// loopback needs clients with keys, or Open.
	Listen string
	// Admin is the address for people and tools: HOST:PORT on loopback. If empty, 127.0.0.1:7879;
	// "off": none.
	Admin string
	// Open accepts requests without a key from every machine that reaches Listen.
	Open bool
	// TLS is for Listen. If nil, Listen speaks plain HTTP.
	TLS *tls.Config

	// Metrics is an address for the numbers alone. If zero, there is none.
	Metrics Metrics

	// Forward is the listener of a forward proxy. If zero, there is none.
	Forward Forward

	// MaxWait is the longest wait of a request for its turn. A request with a longer wait ahead is
	// refused at once. If zero, 60 s; negative: no request waits.
	MaxWait time.Duration
	// FinalOnly sends no interim answers (1xx) to requests in line. It is for a server in front of
	// the proxy that does not pass them on.
	FinalOnly bool
	// Grace is how long waiting requests may go on after Stop. Requests in flight always finish. If
	// zero, none.
	Grace time.Duration

	Bounds  Bounds
	Clients Clients
	// Upstreams are the servers for requests, at least one. No two have the same Host and Path.
	Upstreams []Upstream

	// Dial opens connections to upstreams. If nil, a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Begins, if not nil, gets the context of each request whose wait for its turn is over.
	Begins func(context.Context)

	// Live allows Proxy.Apply to change the configuration later. It costs a little for each
	// request.
	Live bool
	// Flags says that the settings are those of flags, which hold again after a restart. So no longer window
	// comes for good, and messages name flags. If false, they are those of a file.
	Flags bool

	// State is the file for sent requests that may still count, so that a restart forgets no
	// window. If empty, none.
	State string
	// Sent is the file that gets a line of each attempt: see journal.SentLog. If empty, none.
	Sent string
	// SentOfClients says that clients have a Sent of their own, or will have one by Apply.
	SentOfClients bool
	// Handover is the path of the Unix socket by which the next process takes over without a drop. If
	// empty, State and .sock; without State, there is none. "off": none.
	Handover string
	// Taken is the process before, if this one takes over from it (see Server.Handover). If nil, the
	// process begins alone.
	Taken *daemon.Predecessor
	// Beside says where other programs of the user learn what is sent, and what they sent. If zero, nowhere.
	Beside Beside
	clock  func() (time.Time, boottime.Reading) // nil: the machine's; for the state file

	atHand  int               // how many partitions, clients and names are at hand, of each; 0: 4096
	proxies *outgoing.Proxies // of the environment: on the way out

	// Share describes the limits that other processes share. Shared is the open store of these
	// limits. The caller of New opens it, and closes it after the proxy has ended. If Shared is
	// nil, no limit is shared.
	Share  ShareBy
	Shared *sharestore.Limits

	// Log gets the events of the proxy, Access one line per request, at level Info. If nil, none.
	// No line has a key in it.
	Log, Access *slog.Logger
}

// Forward is a listener that programs reach by HTTPS_PROXY and HTTP_PROXY. Requests to the hosts of
// upstreams keep to their limits, and those to other hosts pass unread.
type Forward struct {
	// Listen is HOST:PORT. Beyond this machine it needs clients with keys: a client sends its key as
	// the password of the proxy.
	Listen string
	// Bundle is the file that the proxy writes at its start: the certificates that programs are to
	// trust, the system's among them.
	Bundle string
	// Tunnels says which other hosts are reached: TunnelsPublic, those of the public network at port
	// 443 (and 80 by http), or TunnelsNone. If empty, TunnelsPublic on an address of this machine, and
	// otherwise TunnelsNone.
	Tunnels string
}

// Bounds keep large, many or slow clients from using up the proxy.
type Bounds struct {
	// Header is the largest header of a request, in bytes. If zero, 64 KiB.
	Header int
	// Body is the largest body of a request, in bytes. A longer body gets the answer 413. If zero,
	// 1 GiB; negative: any size.
	Body int64
	// Kept is the largest part of a body in memory, in bytes. A kept body can be counted, and sent
	// again after a refusal. A longer body is sent once, as it comes. If zero, 32 MiB.
	Kept int64
	// KeptInAll is Kept for all requests together. Beyond it, bodies are sent once. If zero, 512
	// MiB.
	KeptInAll int64
	// Frozen is how much what still counts of idle keys and routes may take, in bytes, for each
	// upstream, and as much for clients with their own limits. Beyond it, requests of new ones get
	// the answer 429: see transport.Config.MaxFrozen. If zero, 64 MiB.
	Frozen int64
	// Connections is how many connections may be open at Listen. More wait to be accepted. If zero,
	// 16384.
	Connections int
	// HeaderTimeout is the longest time between the first and the last byte of a request's header.
	// If zero, 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection without a request stays open. If zero, 2 min.
	IdleTimeout time.Duration
	// Stall is how long a client may read nothing of its answer, or send nothing of its body while
	// the proxy waits for it. If zero, 1 min.
	Stall time.Duration
}

// Clients describe the clients. Each client has a lane of its own, and gets its share by weight,
// however much other clients send.
//
// The key for the proxy names the client of a request; without a key, the Header does; without
// both, the address. A client that is not in the List has the name in Header, or its address, and
// the settings of Default. Where no client has keys and there is no Header, each program of this
// machine is a client. Its name has the product in User-Agent, and a short hash of its credential:
// 127.0.0.1 curl.
type Clients struct {
	// Header is the field that names the client of a request without a key. The proxy does not pass
	// it on. If empty, none.
	Header string
	// List are the clients that are known by name. If one of them has Keys, requests without a key
	// of the List get the answer 401, unless the proxy is Open.
	List []Client
	// Default holds for each client outside the List. Its Name, Keys and Addresses are not used.
	Default Client
	// Most is the number of clients outside the List that have a lane each at a time. Further
	// clients share one lane, named "others". A client that has not asked for as long as its
	// requests may count, and for an hour at least, makes room for another. If zero, there is no
	// bound but Bounds.Frozen.
	Most int
}

// Client is one client and its settings.
type Client struct {
	// Name is the name in logs and on the page. It is not secret.
	Name string
	// Keys are hashes of the client's keys for the proxy. The client sends a key as Paceline-Key,
	// or in the field for the key of the upstream's API: Authorization, X-Api-Key, Api-Key,
	// X-Goog-Api-Key. The proxy never passes on a key for the proxy.
	Keys []KeyHash
	// Addresses identify a client without a key.
	Addresses []netip.Prefix
	// Weight is the client's share where demand exceeds the limits. If zero, 1.
	Weight float64
	// Reserve is the part of each limit that the client leaves free for others, from 0 to 1: see
	// transport.Client.Reserve.
	Reserve float64
	// InFlight is how many of its requests may be in flight, until the end of their answers; with a Share, in
	// all proxies together. If zero, any number.
	InFlight int
	// HeadStart lets the client's requests count as earlier by this span, for instance
	// interactive before batch. A client with a smaller HeadStart still gets its turn.
	HeadStart time.Duration
	// MaxWaiting is how many of its requests may wait, for all upstreams together. More are
	// refused. If zero, 10000.
	MaxWaiting int
	// MaxWait is the client's own Config.MaxWait. If zero, Config.MaxWait.
	MaxWait time.Duration
	// Limits are the client's own, over all upstreams together: requests, tokens, or money (in
	// millionths of a dollar).
	Limits []rate.Limit
	// Models are the models that the client may use, as requests name them. A * stands for any text.
	// If nil, all.
	Models []string
	// Upstreams are the names of the upstreams that the client may use. If nil, all.
	Upstreams []string
	// Sent gets the attempts of the client's requests, beside the file Config.Sent. If nil, none.
	Sent *journal.SentLog
	// MaySayCost lets the client choose the resource of its requests, and lower their cost, with
	// FieldCost. Every client may raise a cost.
	MaySayCost bool
}

// KeyHash is the SHA-256 of a key. A reader of the configuration cannot send with it.
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
		// v may be a key: not shown
		return h, fmt.Errorf("expected %s and %d hexadecimal digits, as printf %%s KEY | sha256sum prints them", hashPrefix,
			2*len(h))
	}
	return KeyHash(b), nil
}

// Upstream is a server that gets requests.
type Upstream struct {
	// Name is the name in logs and on the page. If empty, the host of To.
	Name string
	// Path is the beginning of the paths for this upstream, by whole segments: /openai. The proxy
	// removes it before it puts To.Path in front. If empty, all paths.
	Path string
	// Host is the name that clients use for this upstream, without a port. If empty, any.
	Host string
	// Targets are servers of which each can serve all requests: a request goes to the one that may take
	// it soonest. To and the settings that a Target has of its own are then the Targets'. If empty,
	// requests go to To.
	Targets []Target
	// Affinity keeps the requests of a session at one of Targets. If zero, none stay.
	Affinity Affinity
	// To is the destination: http or https, a host, and a path to put in front of the request's. No
	// user, query or fragment.
	To *url.URL
	// H2C speaks HTTP/2 to an http To, as gRPC servers without TLS need it.
	H2C bool
	// TLS is for an https To. If nil, the system's authorities check certificates.
	TLS *tls.Config

	// Preset names published limits, by the name of a provider.Preset: openai:tier1. The limits of
	// the Preset and Limits hold together. If empty, none.
	Preset string
	// PerSecond applies the Preset's limits per minute to each second, too.
	PerSecond bool
	// Limits are the server's limits.
	Limits []Limit
	// Charges are what requests cost, and the resources in which they count. The first that fits a
	// request holds. They go before the rows of the provider. Their paths are those at the server.
	Charges []provider.Charge
	// First are requests that go before others of the same client, each as in a Charge.On: POST /order.
	// They wait in a second line of the client, which has the client's weight and a head start of a
	// minute. If empty, none.
	First []string
	// FirstFree is the part of each limit that other requests leave free for those of First, below 1. If
	// zero, 0.1; negative: none.
	FirstFree float64
	// Auto finds out the server's limits that are not known. The Preset and Limits hold as they are.
	Auto bool
	// Strangers says that others use the limits that Auto finds out. The proxy then takes a fair
	// share of them.
	Strangers bool
	// Arrivals says, for Limits, how an answer bounds the arrival of its request. Late must be
	// zero.
	Arrivals limit.Arrivals
	// InFlight is how many requests each key may have in flight. If zero, any number.
	InFlight int
	// Use is the part of the limits that is used, and Ramp the time in which the load rises to it: see
	// transport.Config.
	Use  float64
	Ramp time.Duration
	// Tokens counts the tokens of language models even if no limit needs them.
	Tokens bool
	// Counting says how the server counts tokens. If zero, as its provider documents.
	Counting tokens.Counting
	// Prices are the prices of models, for limits of money. They are for models without a published
	// price, or with an agreed one. A Price for one model goes before a Price for all.
	Prices []Price
	// RequestPrice is the price of each request beside its tokens, in USD.
	RequestPrice float64
	// Provider reads limits from answers. If nil, the dialect of the host or of the Preset, or the
	// one that an answer looks like.
	Provider provider.Dialect

	// Keys are credentials in place of the clients' own. A request goes with the key that may go
	// soonest. If empty, requests go with the credentials of clients.
	Keys []Key
	// KeyIn says where requests of clients have their credentials, which count apart. If nil, in the
	// places that are known: see transport.CredentialOf.
	KeyIn *secret.Where
	// Header and Query are set on every request, in place of the client's values.
	Header, Query []Field
	// NonceGap and NonceUnit are for a {nonce} in Header or Query. With it, one request of a key is in
	// flight at a time or, with a NonceGap, several that are so far apart: see transport.Key.Gap.
	// NonceUnit is the unit of the numbers. If zero, 1 ms.
	NonceGap, NonceUnit time.Duration

	// Attempts is the largest number of attempts of a request, the first one included. If zero, 3.
	Attempts int
	// Backoff is the delay after a failed attempt. Its zero value is ready to use.
	Backoff backoff.Policy
	// AnswerTimeout is the longest time of one attempt until the header of its answer. If zero,
	// 10 min; negative: any time.
	AnswerTimeout time.Duration
	// ConnectTimeout is the longest time for a connection, TLS included. If zero, 10 s.
	ConnectTimeout time.Duration
	// MaxPause is the longest pause because of one answer. If zero, 1 h; negative: as long as the
	// server asks.
	MaxPause time.Duration
	// MaxOutage is how long requests wait for a server that nothing reaches. Until then no request
	// fails because it could not be sent. Afterwards requests fail at once, except the probe. If
	// zero, 10 s; negative: no request waits.
	MaxOutage time.Duration
	// Forwarded names the client to the server, in X-Forwarded-For, -Host and -Proto. In any case the
	// proxy removes what a server in front of it says of the client.
	Forwarded bool
	// KeepHost passes on the client's Host in place of the host of To.
	KeepHost bool
	// KeepLinks leaves addresses of To in the fields of answers (Link, Location) as they are. Without
	// it they lead to the proxy.
	KeepLinks bool
	// Batches keeps files and batches of clients here. If zero, their paths go to the upstream.
	Batches Batches
}

// Target is one of several servers of an Upstream. Its fields are those of Upstream where they have the
// same names, and those of transport.Target.
type Target struct {
	Name      string // if empty, the host of To
	To        *url.URL
	Preset    string
	PerSecond bool
	Limits    []Limit
	InFlight  int
	Provider  provider.Dialect
	Counting  tokens.Counting
	Keys      []Key
	// Header and Query go before those of the Upstream.
	Header, Query []Field
	// Path is the path at the target, with a query if it has one. In it {model} stands for the model,
	// {path} for the path of the request, and {rest} for that without /v1. If empty, {path}.
	Path string
	// Models are the names of models at the target, by those in requests.
	Models map[string]string
	// After makes the target spare: see transport.Target.
	After time.Duration
}

// Affinity says what the session of a request is: see transport.Affinity.
type Affinity struct {
	// By is AffinityByHeader, AffinityByPrefix, or the name of a text at the top of the body:
	// prompt_cache_key, user.
	By string
	// Header is the name of the field, for AffinityByHeader.
	Header string
	// Hold is how long a request waits for the target of its session. If zero, 2 s.
	Hold time.Duration
}

// Sessions by a header field, and by the first kilobytes of the prompt.
const (
	AffinityByHeader = "header"
	AffinityByPrefix = "prefix"
)

// Price is the price of a model, in USD per million tokens.
type Price struct {
	Model         string // as requests name it; if empty, each that no other Price names
	Input, Output float64
	Cached        float64 // input from a cache; if zero, Input
}

// Limit is a limit of an upstream, and its scope.
type Limit struct {
	rate.Limit
	// Scope says which requests share the limit. provider.Key: those of each key (or of each
	// credential that clients send). provider.IP: all requests. provider.Model, provider.Resource or
	// provider.Route: those of each model, resource or route of each key. If empty, provider.Key, or
	// provider.Model if the Limit is EachModel or has a Model.
	Scope provider.Scope
	// Only is the one model or route of the limit, as transport.Partition has it ("GET /users/*"). Of
	// resources it is a provider.Pattern. If empty, each.
	Only string
}

// Key is a credential for an upstream.
type Key struct {
	// Name is the name in logs and on the page. It is not secret.
	Name string
	// Secret is the value of {key}.
	Secret Secret
	// Limits are this key's, in place of the upstream's limits of Scope provider.Key. If empty, the
	// upstream's.
	Limits []rate.Limit
}

// Secret is text that is never shown. Every printer prints dots.
type Secret string

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

const hidden = "…"

// Field is a header field or a query parameter. In its Value, {key} stands for the Secret of the
// request's Key, and {nonce} for a number that rises from attempt to attempt with the Key.
type Field struct {
	Name  string
	Value Secret
}

// ConfigError is an error in a Config.
type ConfigError struct {
	// Field is the place of the error, such as Upstreams[1].Path.
	Field string
	Err   error
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }
