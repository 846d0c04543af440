package run

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// Config describes a run.
type Config struct {
	// Keys are the API keys. Each has all of the Limits for itself, except that keys of one
	// organization share them. If empty, there is one named "default" without a secret.
	Keys []format.Key
	// Organizations maps a Key.Name to the name of its organization, project or account. Keys of
	// one organization have the limits together. For other keys the answers show it, if the
	// provider names the organization there. Otherwise a key has the limits for itself. With Share
	// only this map counts.
	Organizations map[string]string
	// Bearer is the source of the {token} of Header and Query. If nil, there is none.
	Bearer *Bearer
	// Header and Query are set on every request.
	Header, Query []format.Template
	// KeyHosts are the servers that keys may be sent to. If empty, the host of the first line.
	KeyHosts secret.Places
	// Limits are the limits that the server has for each key. If empty, there are none.
	Limits []format.Rate
	// Charges are what requests cost besides the one, in weight and orders; the first that fits holds.
	// They go before the rows of a provider: of that with the name ChargedBy, or else of that of the
	// host. Requests of a resource have limits and pauses of their own for each key. If most requests to
	// the servers of the keys count in one resource, Limits are its alone, and otherwise those of all.
	Charges   []provider.Charge
	ChargedBy string
	// Resources are the limits of resources, for each key or organization as the Limits.
	Resources []ResourceLimit
	// Arrivals states what requests prove about their arrival at the server. Late must be zero.
	Arrivals limit.Arrivals
	// Use is the part of the limits that is used, and Ramp the time in which the load rises to it: see
	// pool.Key. If zero, all, and at once.
	Use  float64
	Ramp time.Duration
	// Strangers, if not nil, says that other programs use the Limits, too. Then sends of earlier
	// runs are not counted again, since answers state what is left.
	Strangers *Sharing
	// Share, if not nil, keeps the Limits in a store. All processes with the same store keep to
	// them together. Sends of earlier runs are not counted again, since the store has them.
	Share *sharestore.Limits
	// Auto, if not nil, says that the Limits are not known, or not all. Each account keeps to the
	// Limits as they are. It finds out how many requests the server accepts beside them.
	Auto *Auto
	// NonceUnit is the unit in which nonces count. Gap is the least time between two nonces of a
	// key; see pool.Key. Both apply if a template has {nonce}.
	NonceUnit, Gap time.Duration

	// Next finds the next page in an answer. A request goes on with that page, up to MaxPages for
	// each line; if zero, 1000. If Next is nil, the run looks for no pages.
	Next     *sending.Next
	MaxPages int

	// Concurrency is the most attempts in flight. If zero, these are 64, and then as many as the limits and the
	// duration of answers need, up to MostInFlight and what this process can hold. With a Backlog or without a limit,
	// also of Servers, they stay 64.
	Concurrency  int
	MostInFlight int           // a bound of the server; if zero, none
	Attempts     int           // of each request; if zero, 5
	Timeout      time.Duration // of an attempt; if zero, 30 s
	Redirects    int           // how many a request may follow; if zero, none
	Backoff      pool.Backoff
	BanStatus    []int // statuses of answers that ban a key
	OKStatus     []int // statuses that are answers as asked for, beside 2xx
	// SameErrors, if not zero, is how many first answers of the run show a wrong address. They are the same error
	// 4xx, to requests that do not only read, and no request of the input was ever served. Then the others to
	// this address become dead letters without a send. Not for a Backlog, nor with Every.
	SameErrors  int
	NonceStatus []int // statuses that mean that a nonce did not rise, in addition to the words of answers
	// Provider reads the limits that answers state. If nil, it is that of the Format, or that of a
	// known host. Otherwise it is guessed from each answer.
	Provider provider.Dialect
	// Success returns an error if an answer is no success although its status says so. If nil, the
	// status decides. It must be safe for concurrent use.
	Success func(body []byte) error
	Queue   int // requests read ahead; if zero, 1000
	// TTL is how long a request without a deadline of its own is useful, from its creation. If
	// zero, for ever. docs/run-input.md defines the time of creation. With Renew the TTL begins anew at
	// each retry, as with pool.Retry.
	TTL time.Duration
	// Decay, if not zero, is the time in which a request loses half its value: the most valuable of those
	// that were read goes next. Its age counts as for TTL. Not for a Backlog, nor with Every.
	Decay time.Duration
	Renew bool
	// AnswerTime is how long an answer takes, as in a pool.Config: what cannot be answered before its
	// deadline is not sent. If zero, it is measured for each host; if negative, nothing is kept
	// back.
	AnswerTime time.Duration
	// Budget is the most to spend, in USD, over all runs with one journal. If zero, there is no
	// bound. The costs of language models come from Prices. Otherwise Price is the price of an
	// attempt of cost 1. With a Budget, nothing is sent to a model without a known price.
	Budget, Price float64
	Prices        Prices
	// Until is the time from which nothing is sent. If zero, never.
	Until time.Time
	// Every, if above zero, asks the requests of the input again and again, in rounds that begin so often. Rounds
	// bounds the rounds of this run; if zero, it goes on until Until or Drain. Both are good ends then.
	Every  time.Duration
	Rounds int
	// By makes a Plan say what it takes to send all requests before it. If zero, it does not.
	By time.Time
	// MaxOutage bounds an outage. If nothing arrives at a host for that long and nothing else is
	// left to do, the run ends. If zero, it waits for ever; negative: the run ends when the outage
	// is known.
	//
	// It also bounds how long the server may deny every request of the keys. There zero means a
	// minute, or an hour once a request was served.
	MaxOutage time.Duration
	UserAgent string
	TLS       *tls.Config
	// Dial opens connections. If nil, a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Base, if not nil, sends all attempts: it has the keys, the limits and the connections. The run
	// then has none of these itself, and its journal has no windows. An attempt of which the Base
	// wrote nothing fails with a *sending.Unsent, and goes back in line. If requests wait in it, it calls
	// sending.Begins after the wait: the time of an answer is without it then.
	Base http.RoundTripper
	// Servers have the limits that Base keeps, for a Plan and the ETA. A Plan may have them without a Base.
	Servers []rate.Server
	// Unknown says that Base finds its limits out. Servers is empty then.
	Unknown bool
	// Beside are sources of snapshots besides those of the run, such as those of Base.
	Beside []observe.Source
	// Hidden are secrets that no output may show beside those of Keys and Bearer, such as those of Base.
	Hidden []secret.Key

	// Backlog, if not nil, has the requests of several processes, and this run sends those of this one:
	// they are its input. Their results go to the Backlog, and Out must be "-". Models are those to which its
	// requests are known to go, the same for all of these processes.
	Backlog Backlog
	Models  []string

	// Format is the format of the input and of the results. If nil, Plain.
	Format format.Format
	// Meter, if not nil, says that all requests are to language models, and counts their tokens. For an
	// *LLM it is that of the format.
	Meter       *meter.Meter
	Input       format.InputLimits
	SkipInvalid bool
	// InputInfo describes the input if it is a file. A run refuses to write results into that file.
	InputInfo os.FileInfo

	// Out and Dead are files, or "-" for Stdout. If Dead is empty it is beside Out, as the Format
	// calls it, or "-".
	Out, Dead string
	// OutDir, if not empty, is a folder with one file for the body of each answer that ends its
	// request well. New then sets Out to IndexOf(OutDir). MaxResponse bounds only the part of a
	// body in memory. MaxFile bounds the bytes of a body; if zero, 1 GiB. Not for an *LLM.
	OutDir  string
	MaxFile int64
	// Shape, if not nil, makes rows, which Out has in place of results. Ordered keeps Out in the
	// order of the input. With either, a file Out is made from RowsOf(Out), and a later run resumes
	// from that. The dead letters of an *LLM keep its format, in a file of their own.
	Shape   *output.Shape
	Ordered bool
	// Table, if output.SQLite or output.Parquet, makes Out a table of the results, or of the rows of
	// Shape. It does not go with Ordered.
	Table output.RowFormat
	// Summary and Report are files that the caller writes. They must differ from the other files.
	Summary, Report string
	// Ended, if not nil, gets the result of each request that ends, in whatever format Out is. It
	// must be safe for concurrent use, and keep nothing of the result.
	Ended func(*format.Result)

	Stdout      io.Writer
	MaxResponse int64 // bytes kept of an answer's body; if zero, 1 MiB
	KeepHeaders []string
	SyncAlways  bool           // fsync the journal before each send
	TrustClock  bool           // trust the wall clock for the time that passed since the last run
	RetryDead   format.DeadSet // the dead letters of earlier runs to send again
	Append      bool           // Out may have results that are not of this input
	// Recent, if not empty, is a folder in which the runs of a user note what they send. So what one sent
	// a moment ago counts in the next, whatever their Out is.
	Recent         string
	Led            bool // paceline exec leads the requests of this process
	Captured       bool // also those to this machine, to which programs of Go take no proxy
	HoldUnanswered bool // a request that may have been served becomes a dead letter, and is not sent again
	Partly         Partly

	clock   func() (time.Time, boottime.Reading) // of the journal; nil: the machine's
	files   output.Config                        // the files of the run
	keyless bool                                 // Keys was empty: the run knows no key
	secret  bool                                 // requests are sent with keys or tokens
	nonces  bool                                 // requests carry nonces
	proxies *outgoing.Proxies                    // of the environment
	prices  *charging                            // of Charges

	inFlight    ceiling.InFlight
	inFlightFor string // why there are no more, as the end of "is the most"

	// Notice gets a line at a time for the user. Log gets a line for each answer at debug level.
	Notice func(string)
	Log    *slog.Logger
}

// Backlog is a list of requests that several processes send together: see package internal/app/work. A run
// reads a line of its input at a time from it, and knows the requests by their ids. Its methods are safe for
// concurrent use.
type Backlog interface {
	// Latest describes the request of the latest line: its id, how many attempts other processes made at
	// it, and whether one of those may have been served.
	Latest() (id string, attempts int, doubt bool)
	// May reports, before an attempt, whether a request may be sent. If not, the run makes no attempt at it,
	// and calls Return soon.
	May(id string) bool
	// Return gives such a request back.
	Return(id string)
	// Fresh reports, right before the first byte is written, whether a request may be written.
	Fresh(id string) bool
	// Tried takes an attempt that failed; doubt: it may have been served. The request waits for another one,
	// or ends.
	Tried(id string, doubt bool)
	// Ended takes the end of a request, with its result.
	Ended(id string, e BacklogEnd)
	// Money takes least or more of what is left of Config.Budget, which all processes share; 0: that is not left.
	// The error is that of ctx.
	Money(ctx context.Context, least sending.Money) (sending.Money, error)
	// Lacks takes the latest request back: it is to a model that has limits of its own, and that is not in
	// Config.Models. Soon the run ends, by Drain.
	Lacks(model string)
}

// BacklogEnd is how a request of a Backlog ended.
type BacklogEnd struct {
	State    pool.State
	Class    format.DeadClass // of a dead letter
	Attempts int              // of all processes
	Repeat   bool             // it may have been served more than once
	Unsure   bool             // its last attempt may have been served
	Line     []byte           // the result; valid during the call
}

func (c *Config) defaults() {
	if c.Format == nil {
		c.Format = format.Plain{}
	}
	if l, ok := c.Format.(*format.LLM); ok {
		c.Meter = l.Meter
	}
	if c.Backlog != nil || c.Every > 0 { // no run alone knows what was served, or the same request is asked again
		c.SameErrors = 0
	}
	if c.Meter != nil && c.Provider == nil {
		c.Provider = c.Meter.Dialect()
	}
	if c.keyless = len(c.Keys) == 0; c.keyless {
		c.Keys = []format.Key{{Name: "default"}}
	}
	c.secret, c.nonces = c.uses("key") || c.uses("token"), c.uses("nonce")
	c.inFlight, c.inFlightFor = c.bounds()
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.MaxPages = cmp.Or(c.MaxPages, 1000)
	c.Queue = cmp.Or(c.Queue, 1000)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxResponse = cmp.Or(c.MaxResponse, 1<<20)
	c.MaxFile = cmp.Or(c.MaxFile, 1<<30)
	c.UserAgent = cmp.Or(c.UserAgent, "paceline")
	c.files = output.Config{Out: c.Out, Dead: c.Dead, OutDir: c.OutDir, MaxFile: c.MaxFile, Summary: c.Summary, Report: c.Report,
		Stdout: c.Stdout, InputInfo: c.InputInfo, Format: c.Format, Shape: c.Shape, Ordered: c.Ordered, Table: c.Table,
		Rewrite: c.RetryDead != 0}
	c.files.Name()
	c.Out, c.Dead = c.files.Out, c.files.Dead
	c.KeepHeaders = slices.Clone(c.KeepHeaders)
	for i, n := range c.KeepHeaders {
		c.KeepHeaders[i] = strings.ToLower(n)
	}
	if c.Notice == nil {
		c.Notice = func(string) {}
	}
	for _, l := range c.Limits {
		if l.Unit == limit.Requests && l.Model == "" && !l.Alone && (c.Input.Cost == 0 || l.Most() < c.Input.Cost) {
			c.Input.Cost = l.Most()
		}
	}
}

// contradiction returns why options cannot be used together, or by themselves.
func (c *Config) contradiction() error {
	for _, k := range c.Keys {
		if k.Secret == "" && c.uses("key") {
			flag := "--query"
			if format.Uses(c.Header, "key") {
				flag = "--header"
			}
			return fmt.Errorf("%s has {key}, but there are no keys: name their environment variables with --key-env", flag)
		}
	}
	if min(c.Concurrency, c.MostInFlight, c.Attempts, c.Redirects, c.Queue, c.Rounds) < 0 || min(c.Timeout, c.Every, c.TTL, c.Decay, c.Gap, c.NonceUnit) < 0 ||
		c.MaxResponse < 0 {
		return errors.New("a negative number where none can be")
	}
	if c.AnswerTime > 0 && c.TTL > 0 && c.AnswerTime >= c.TTL {
		return fmt.Errorf("answers take %v (--answer-time), and requests are of use for %v (--ttl): none could be answered in time",
			c.AnswerTime, c.TTL)
	}
	if left := time.Until(c.By); c.AnswerTime > 0 && !c.By.IsZero() && c.AnswerTime >= left {
		return fmt.Errorf("answers take %v (--answer-time), and %v are left (--by): none could come in time",
			c.AnswerTime, max(left, 0).Round(time.Second))
	}
	if c.isBatch() && c.OutDir != "" {
		return errors.New("results of batches for language models have the bodies: no files of bodies")
	}
	if c.Base != nil && (!c.keyless || len(c.Limits) > 0 || c.Auto != nil || c.Share != nil || c.Bearer != nil ||
		c.TLS != nil || c.Dial != nil) {
		return errors.New("a Base has the keys, the limits and the connections: the run cannot have its own beside it")
	}
	if c.Backlog != nil && (c.Out != "-" || c.files.IsView() || c.Next != nil || c.Auto != nil || c.nonces ||
		c.RetryDead != 0 || c.secret && len(c.KeyHosts) == 0) {
		return errors.New("a backlog goes with results of its own, limits that are known, and keys whose servers are " +
			"named; not with pages, nonces, or dead letters to send again")
	}
	if c.Every > 0 && (c.OutDir != "" || c.Ordered || c.Shape != nil || c.Next != nil || c.Backlog != nil || c.RetryDead != 0 ||
		c.HoldUnanswered || c.isBatch()) {
		return errors.New("requests that are asked again and again go with whole results; not with files of bodies, rows, " +
			"an order, pages, a backlog, dead letters or unanswered requests of runs before, or batches")
	}
	if c.OutDir != "" && c.files.IsView() {
		return errors.New("files of bodies with rows, or in order")
	}
	if c.Decay > 0 && (c.Every > 0 || c.Backlog != nil) {
		return errors.New("a value that falls with age goes neither with requests that are asked again and again, " +
			"nor with a backlog")
	}
	if c.Table != "" && (c.Ordered || c.Out == "-") {
		return errors.New("a table is in a file, and has no order")
	}
	if c.Ordered && c.Next != nil {
		return errors.New("pages come after others of the input: --ordered does not go with --next")
	}
	if c.uses("token") != (c.Bearer != nil) {
		return errors.New("{token} in a template and an issuer of tokens: there is one without the other")
	}
	if c.isBatch() && c.Next != nil {
		return errors.New("following pages does not go with batches for language models, whose answers have none")
	}
	return nil
}

// isUsable returns why a limit cannot be kept, here or in the store.
func (c *Config) isUsable(l format.Rate) error {
	made, err := c.made(l)
	if err == nil && c.Share != nil {
		if err = sharestore.Shareable(made); err == nil {
			err = sharestore.CheckPart(made, c.Use)
		}
	}
	return err
}

// unusable returns why the limits, or the servers of the keys, cannot be used.
func (c *Config) unusable() error {
	for _, l := range c.Limits {
		if err := c.isUsable(l); err != nil {
			return err
		}
	}
	made, err := newCharging(c)
	if err != nil {
		return fmt.Errorf("--charge: %w", err)
	}
	c.prices = made
	for _, l := range c.Resources {
		if err := c.isUsable(l.Rate); err != nil {
			return fmt.Errorf("limit %s of %s: %w", l.Text, l.Resource, err)
		}
	}
	if c.Share != nil && len(c.Limits)+len(c.Resources) == 0 {
		return errors.New("--share without a limit: there is nothing to share")
	}
	if c.Auto != nil {
		if _, err := c.Auto.limiter(); err != nil {
			return fmt.Errorf("--limit auto: %w", err)
		}
		if c.Share != nil {
			return errors.New("limits that are to be found out beside limits in a store")
		}
	}
	if err := c.Backoff.Check(); err != nil {
		return err
	}
	if l, ok := c.Format.(*format.LLM); ok && c.secret && len(c.KeyHosts) > 0 && !c.KeyHosts.Have(l.Base()) {
		return errors.New(notHome(l.Base(), c.KeyHosts))
	}
	return nil
}

// secretKeys returns the values of the keys, and the secrets of the token issuer and of the Base.
func (c *Config) secretKeys() (all []secret.Key) {
	all = append(all, c.Hidden...)
	for _, k := range c.Keys {
		all = append(all, secret.Key{Name: k.Name, Value: k.Secret})
	}
	if c.Bearer != nil {
		own := c.Bearer.Issuer.Secrets()
		for _, name := range slices.Sorted(maps.Keys(own)) {
			all = append(all, secret.Key{Name: name, Value: own[name]})
		}
	}
	return all
}

// secrets finds what nothing may show of the requests.
func (c *Config) secrets() *format.Secrets {
	return format.NewSecrets(c.secretKeys(), c.Header, c.Query, c.Format)
}

// sending is how the run sends.
func (c *Config) sending(secrets *format.Secrets, files *output.Bodies) sending.Config {
	return sending.Config{Header: c.Header, Query: c.Query, Secrets: secrets, Places: c.KeyHosts, Files: files,
		MaxResponse: c.MaxResponse, UserAgent: c.UserAgent, Timeout: c.Timeout, Connections: c.inFlight.Most, TLS: c.TLS,
		Dial: c.Dial, Base: c.Base, Proxies: c.proxies}
}

// isBatch reports whether the input and the results have the format of a provider's batches.
func (c *Config) isBatch() bool {
	_, is := c.Format.(*format.LLM)
	return is
}

// uses says whether one of the templates has this placeholder.
func (c *Config) uses(word string) bool {
	return format.Uses(c.Header, word) || format.Uses(c.Query, word)
}

const (
	// AtFirst is how many attempts may be in flight before it is known how long answers take.
	AtFirst = 64
	// mostInFlight bounds the memory: the buffers and goroutines of an attempt take up to 64 KiB, and 256 MiB
	// hold so many. Bodies of answers have a bound of their own.
	mostInFlight = 256 << 20 / (64 << 10)
)

// mostEver is how many attempts may be in flight at most, whatever a user wants while the run goes on.
func (c *Config) mostEver() int {
	free := *c
	free.Concurrency, free.MostInFlight, free.Backlog, free.Limits = 0, 0, nil, []format.Rate{{}}
	own, _ := free.bounds()
	return max(own.Most, c.inFlight.Most)
}

// bounds returns the bounds of the attempts in flight, and what the larger one is for.
func (c *Config) bounds() (bounds ceiling.InFlight, for_ string) {
	if c.Concurrency > 0 {
		return ceiling.InFlight{Least: c.Concurrency, Most: c.Concurrency}, "that --concurrency allows"
	}
	most, for_ := mostInFlight, "that is kept in memory; --concurrency allows more"
	each := 1
	if c.OutDir != "" {
		each = 2 // the connection, and the file of the answer
	}
	if files, known := sending.OpenFiles(); known && files/each < most {
		most, for_ = max(files/each, 1), "for which this process may open files (ulimit -n)"
	}
	if most > AtFirst && (len(c.Limits)+len(c.Servers) == 0 || c.Backlog != nil) {
		// Without a limit, no rate is to be reached. Other workers of a backlog are there for what is slow.
		most, for_ = AtFirst, "unless --concurrency allows more"
	}
	if c.MostInFlight > 0 && c.MostInFlight <= most {
		most, for_ = c.MostInFlight, "that the server's limits allow"
	}
	return ceiling.InFlight{Least: min(AtFirst, most), Most: most}, for_
}
