package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
	"github.com/paceline-go/paceline/transport"
)

// upstream is a server, and the way to it.
type upstream struct {
	Upstream
	*way
	proxy   *httputil.ReverseProxy
	secrets *secret.Set
	first   *provider.Charges // the requests of First; nil: none
	apart   bool              // other upstreams have another FirstFree
	spends  bool              // requests get a secret here, which a foreign page must not use
	pages   []string          // the fields of bodies with addresses of further pages
	told    atomic.Bool       // that clients may leave by them
	mixture mixture
	lag     lag
	usage   usage
}

// newUpstream returns an Upstream with a way to its server. It keeps an earlier way if that leads
// to the same server in the same way.
func newUpstream(u Upstream, c *Config, before routes, common *common) (x *upstream, err error) {
	x = &upstream{Upstream: u, secrets: secret.New(u.Secrets()), spends: u.hasSecret()}
	if who, ok := provider.LookupProvider(u.Seller()); ok {
		x.pages = who.Pages
	}
	if x.first, err = u.firsts(); err != nil {
		return nil, err
	}
	x.usage.begin(u.Limits)
	x.apart = slices.ContainsFunc(c.Upstreams, func(o Upstream) bool { return o.FirstFree != u.FirstFree })
	if x.way, err = before.wayOf(&u, c, common); err != nil {
		return nil, err
	}
	x.proxy = &httputil.ReverseProxy{
		Rewrite: x.rewrite, Transport: x.transport, BufferPool: buffers{},
		ErrorHandler:   func(w http.ResponseWriter, r *http.Request, err error) { visitOf(r.Context()).fail(err) },
		ModifyResponse: func(r *http.Response) error { return visitOf(r.Request.Context()).answered(r) },
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return x, nil
}

// Secrets are all values that no output may show.
func (u *Upstream) Secrets() (all []secret.Key) {
	for i := range u.Targets {
		all = append(all, u.at(i).Secrets()...)
	}
	for _, k := range u.Keys {
		all = append(all, secret.Key{Name: k.Name, Value: string(k.Secret)})
	}
	for _, f := range u.Header {
		if !f.perKey() && (secret.PrivateField(f.Name) || isRandom(string(f.Value))) {
			for _, part := range secret.InField(http.CanonicalHeaderKey(f.Name), string(f.Value)) {
				all = append(all, secret.Key{Name: f.Name, Value: part})
			}
		}
	}
	for _, f := range u.Query {
		if !f.perKey() && (secret.PrivateParameter(f.Name, string(f.Value)) || isRandom(string(f.Value))) {
			all = append(all, secret.Key{Name: f.Name, Value: string(f.Value)})
		}
	}
	return all
}

// settings is the configuration of the transport.
func (u *Upstream) settings(c *Config) transport.Config {
	t := transport.Config{
		Preset: u.Preset, PerSecond: u.PerSecond, Provider: u.Provider, Counting: u.Counting,
		Attempts: u.Attempts, Backoff: u.Backoff, AttemptTimeout: max(u.AnswerTimeout, 0), NoTimeout: isLeave,
		MaxPause: u.MaxPause, MaxOutage: u.MaxOutage, Use: u.Use, Ramp: u.Ramp, UntilBody: c.Clients.boundsInFlight(),
		MaxRetryAfter: longestWait(c), MaxBody: c.Bounds.Kept, MaxPartitions: c.atHand, MaxFrozen: c.Bounds.Frozen,
		Idle: c.idle(), Fill: fill, Logger: c.Log,
		Keys: u.keys(), Price: u.price, Cost: u.cost(), Actual: actual, Charges: u.Charges,
		CheckRetry: again, Begins: begins, Ended: ended, MaxWait: maxWait, Client: asker,
		Partition: partitionOf,
	}
	if c.Sent != "" || c.SentOfClients {
		t.Settled = settled
	}
	for i := range u.Targets {
		t.Targets = append(t.Targets, u.target(i))
	}
	t.Affinity = u.affinity()
	if u.Auto || u.NonceGap > 0 {
		t.Fill = 0 // a Fill needs limits with forecasts
	}
	if c.Shared != nil {
		u.share(c, &t)
	}
	return t
}

// idle is how long a partition or a client without requests is at hand; 0: as the transport has it.
// Afterwards only what counts is kept. A longer window, which may come, counts more.
func (c *Config) idle() time.Duration {
	if c.Live && !c.Flags {
		return liveIdle
	}
	return 0
}

// liveIdle is a day's window, and some.
const liveIdle = 49 * time.Hour

// fill is for prompts of many sizes: see transport.Config.
const fill = 64

// longestWait is the longest wait of any request. If a server asks for a longer one, the client
// gets a refusal.
func longestWait(c *Config) time.Duration {
	longest := c.MaxWait
	for _, k := range append(slices.Clone(c.Clients.List), c.Clients.Default) {
		longest = max(longest, k.MaxWait)
	}
	if longest <= 0 {
		return -1
	}
	return longest
}

func estimator() *tokens.Estimator {
	e, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary})
	if err != nil {
		panic(err) // cannot fail: the configuration is valid
	}
	return e
}

// countsTokens reports whether any setting needs the tokens of a request, or its model. Both are read
// from the body.
func (u *Upstream) countsTokens(c *Config) bool {
	of := func(l rate.Limit) bool {
		return l.Unit == limit.Input || l.Unit == limit.Output || l.Unit == limit.Tokens || l.Unit == limit.Money
	}
	ofModel := func(l Limit) bool { return l.Scope == provider.Model }
	for i := range u.Targets {
		if u.at(i).countsTokens(c) {
			return true
		}
	}
	if u.Tokens || slices.ContainsFunc(u.Limits, ofModel) || slices.ContainsFunc(u.AllRates(c), of) {
		return true
	}
	preset, _ := provider.LookupPreset(u.Preset)
	return slices.ContainsFunc(preset.Policies, func(p provider.Policy) bool {
		return p.Unit == provider.Tokens || p.Unit == provider.Input || p.Unit == provider.Output
	})
}

// remembered is how long an upstream remembers a key or client: as long as a sent request may
// count, and an hour at least.
func (u *Upstream) remembered(c *Config) time.Duration {
	longest := max(u.counted(c), time.Hour)
	return longest + longest/8
}

// counted is how long a sent request may count.
func (u *Upstream) counted(c *Config) (longest time.Duration) {
	for i := range u.Targets {
		longest = max(longest, u.at(i).counted(c))
	}
	for _, l := range u.AllRates(c) {
		longest = max(longest, l.Remembers())
	}
	preset, _ := provider.LookupPreset(u.Preset)
	for _, p := range preset.Policies {
		longest = max(longest, 2*p.Window)
	}
	return longest
}

// base is the http.Transport to the server.
func (u *Upstream) base(c *Config) *http.Transport {
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: u.ConnectTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	t := &http.Transport{
		DialContext: dial,
		// A compressed answer goes on as it is, and only the client asks for compression.
		DisableCompression:    true,
		TLSHandshakeTimeout:   u.ConnectTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          0,
		MaxIdleConnsPerHost:   1024,
		TLSClientConfig:       u.TLS,
		Protocols:             new(http.Protocols),
	}
	c.proxies.Set(t)
	t.RegisterProtocol(leaveScheme, parked{})
	t.Protocols.SetHTTP1(!u.H2C)
	t.Protocols.SetHTTP2(!u.H2C)
	t.Protocols.SetUnencryptedHTTP2(u.H2C)
	return t
}

// applies reports whether a limit is for a partition of its scope. A model with limits of its own
// has no other limits of that kind.
func (l *Limit) applies(p transport.Partition, all []Limit) bool {
	name := p.Model
	if l.Scope == provider.Resource {
		return l.Covers(p.Resource)
	}
	if l.Scope == provider.Route {
		return l.Only == "" || foldedRoute(l.Only) == p.Route
	}
	if l.Only != "" || l.Scope != provider.Model {
		return l.Only == "" || l.Only == name
	}
	return !slices.ContainsFunc(all,
		func(o Limit) bool { return o.Scope == provider.Model && o.Only != "" && o.Only == name })
}

// Covers reports whether a limit holds for requests that count in a resource.
func (l *Limit) Covers(resource string) bool {
	return l.Scope != provider.Resource || resource != "" && (l.Only == "" || provider.Pattern(l.Only).Match(resource))
}

// closeIdle closes connections that are not in use.
func (u *upstream) closeIdle() { u.transport.CloseIdleConnections() }

// again stops another attempt of a request whose body is gone, or which another program sends.
func again(ctx context.Context, a transport.Attempt, _ *http.Response) (bool, error) {
	if !a.Again {
		return false, nil
	}
	v := visitOf(ctx)
	return v.leave == nil && v.body.whole(), nil
}

// maxWait is how long a request waits. "No wait" is a bound, too.
func maxWait(r *http.Request) time.Duration { return max(visitOf(r.Context()).patience.most, 1) }

// asker is the client of a request, in transport's form.
func asker(r *http.Request) transport.Client {
	v := visitOf(r.Context())
	return v.upstream.lineOf(r, v.client.asker)
}

// begins notes that a request is not in line any more.
func begins(r *http.Request) { visitOf(r.Context()).begins() }

// ended notes the outcome of an attempt.
func ended(a transport.Attempt) { visitOf(a.Request.Context()).ended(a) }
