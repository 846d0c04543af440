package batch

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/uptime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// Config describes a run.
type Config struct {
	// Keys are the API keys, each with the Limits for itself. If empty, one named "default" without a secret.
	Keys []Key
	// Header and Query are set on every request.
	Header, Query []Template
	// KeyHosts are where keys may be sent. If empty, to the host of the first line.
	KeyHosts secret.Places
	// Limits are the server's, per key. If empty, none.
	Limits []Rate
	// Arrivals is what is known of the server. Late must be zero.
	Arrivals limit.Arrivals
	// Strangers, if not nil, use the Limits, too. Then what the runs before sent is not counted again: answers tell what is left.
	Strangers *Sharing
	// NonceUnit is what nonces count, Gap the least time between two of a key: see dispatch.Key. They are used if a
	// template has {nonce}.
	NonceUnit, Gap time.Duration

	Concurrency int           // attempts in flight; if zero, 64
	Attempts    int           // of each request; if zero, 5
	Timeout     time.Duration // of an attempt; if zero, 30 s
	Redirects   int           // how many a request may follow; if zero, none
	Backoff     backoff.Policy
	BanStatus   []int // answers that say that a key is banned
	NonceStatus []int // answers that say that a nonce did not rise, beside what they say in words
	// Provider reads what answers say of limits. If nil, the Format's, or as the host is known, or as each looks.
	Provider quota.Dialect
	// Success says, with an error, why an answer with a status of success is none. If nil, all of them are. It is safe for concurrent
	// use.
	Success func(body []byte) error
	Queue   int // requests read ahead; if zero, 1000
	// TTL is how long a request without a deadline of its own is of use, from when it was created. If zero, for ever. See docs/run.md
	// for when that is. Renew counts anew at each retry, as queue.Retry does.
	TTL   time.Duration
	Renew bool
	// Budget is what may be spent, in USD, over all runs with one journal. If zero, any amount. It is by Prices, for language models, or
	// by Price, which is that of each attempt of cost 1. A model of which no price is known is not sent to then.
	Budget, Price float64
	Prices        Prices
	// Until is when nothing more is sent. If zero, never.
	Until time.Time
	// MaxOutage is how long nothing may arrive at a host before the run ends, if nothing else is left to do. If zero, for
	// ever; negative: as soon as it is known. It is also how long keys may do nothing but deny; if zero, a minute, or an hour where
	// something was served.
	MaxOutage time.Duration
	UserAgent string
	TLS       *tls.Config
	// Dial opens connections. If nil, a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Format is that of the input and of the results. If nil, Plain.
	Format      Format
	Input       InputLimits
	SkipInvalid bool
	// InputInfo is the input's, if it is a file: results are not written into it.
	InputInfo os.FileInfo

	// Out and Dead are files, or "-" for Stdout. If Dead is empty it is beside Out, as the Format calls it, or "-".
	Out, Dead string
	// Summary is a file that the caller writes to: it may be none of the others.
	Summary        string
	Stdout         io.Writer
	MaxResponse    int64 // bytes kept of an answer's body; if zero, 1 MiB
	KeepHeaders    []string
	SyncAlways     bool // fsync the journal before each send
	TrustClock     bool // what the wall clock says has passed since the run before
	RetryDead      Dead // which dead letters of the runs before are sent again
	HoldUnanswered bool // what may have been served is not sent again, but a dead letter

	clock   func() (time.Time, uptime.Reading) // of the journal; nil: the machine's
	keyless bool                               // Keys was empty: nobody knows of a key

	// Notice is told what the user should know, a line at a time. Log gets a line per answer at debug level.
	Notice func(string)
	Log    *slog.Logger
}

func (c *Config) defaults() {
	if c.Format == nil {
		c.Format = Plain{}
	}
	if c.keyless = len(c.Keys) == 0; c.keyless {
		c.Keys = []Key{{Name: "default"}}
	}
	c.Concurrency = cmp.Or(c.Concurrency, 64)
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.Queue = cmp.Or(c.Queue, 1000)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxResponse = cmp.Or(c.MaxResponse, 1<<20)
	c.Out = cmp.Or(c.Out, "-")
	c.UserAgent = cmp.Or(c.UserAgent, "paceline")
	if c.Dead == "" {
		c.Dead = "-"
		if c.Out != "-" {
			c.Dead = beside(c.Out, c.Format.deadSuffix())
		}
	}
	c.KeepHeaders = slices.Clone(c.KeepHeaders)
	for i, n := range c.KeepHeaders {
		c.KeepHeaders[i] = strings.ToLower(n)
	}
	if c.Notice == nil {
		c.Notice = func(string) {}
	}
	for _, l := range c.Limits {
		if l.Unit == limit.Requests && l.Model == "" && !l.Alone && (c.Input.Cost == 0 || l.most() < c.Input.Cost) {
			c.Input.Cost = l.most()
		}
	}
}

// secrets are the keys' values.
func (c *Config) secrets() *secret.Set {
	var all []secret.Key
	for _, k := range c.Keys {
		all = append(all, secret.Key{Name: k.Name, Value: k.Secret})
	}
	return secret.New(all)
}

// uses says whether one of the templates has the placeholder.
func (c *Config) uses(word string) bool { return Uses(c.Header, word) || Uses(c.Query, word) }

// DeadBeside is where the dead letters of results in out go: OUT.dead.jsonl, less the ending that OUT has.
func DeadBeside(out string) string { return beside(out, Plain{}.deadSuffix()) }

func beside(out, suffix string) string {
	if ext := filepath.Ext(out); ext == ".jsonl" {
		out = out[:len(out)-len(ext)]
	}
	return out + suffix
}
