package ratetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/mono"
)

// Provider says whose API an LLM speaks.
type Provider uint8

const (
	OpenAI    Provider = iota // POST /v1/chat/completions, /v1/responses, /v1/embeddings
	Anthropic                 // POST /v1/messages
)

func (p Provider) String() string {
	switch p {
	case OpenAI:
		return "openai"
	case Anthropic:
		return "anthropic"
	}
	return fmt.Sprintf("Provider(%d)", uint8(p))
}

// LLMConfig describes an LLM. The zero value is OpenAI for any key and model, without latency or faults.
type LLMConfig struct {
	Provider Provider
	// Keys and Models are those that the server knows. If empty, it knows all, up to 1000 pairs of key and model.
	Keys, Models []string
	// Limits are those of each key for each model, but for those that ModelLimits has. If zero, 500 requests and 30,000 tokens
	// a minute of OpenAI (tier 1 of gpt-4o), 50 requests, 30,000 input and 8,000 output tokens of Anthropic (tier 1 of
	// Claude Sonnet 4).
	Limits      LLMLimits
	ModelLimits map[string]LLMLimits
	// Rolling: no closed window holds more than the limit. Otherwise each limit is a bucket that holds as much and is
	// refilled evenly, as both providers document (OpenAI by the figures in its answers).
	Rolling bool
	// Count is what counts against the limits of tokens. If zero, what the provider documents.
	Count Counting
	// RefusedCount: requests that are limited count against the limits of requests, as OpenAI warns. Only with Rolling.
	RefusedCount bool
	// Law decides what requests use in truth. Truth, if not nil, does so in its place, one call at a time; what it returns is
	// cut to what the request allows itself. It must not call the server.
	Law   LLMLaw
	Truth func(LLMAsk) LLMUsage
	// Before is the latency on the way to the check, First from there to the first token, and TokensPerSecond how fast those
	// after it are generated. If zero, there is none, and all are there at once.
	Before, First   latency.Law
	TokensPerSecond float64
	// EventTokens is how many tokens an event of a stream has. If zero, 8.
	EventTokens int64
	// Faults is the probability of each, at most 1 together. Script is the faults of the first requests, in order of receipt, and
	// goes before Faults.
	Faults map[Fault]float64
	Script []Fault
	// RetryAfter is how long Refused and Unavailable ask to wait. If zero, 1 s; if negative, they do not say.
	RetryAfter time.Duration
	// Credit is how many tokens each key may use, ever, until it is refused for want of credit. If zero, any number.
	Credit int64
	// Seed is for usage, latencies and faults: the same requests in the same order of receipt meet the same ones.
	Seed uint64
	// LogTo, if not nil, is written lines of JSON: see LLMLine. A slow writer delays answers, not checks. It is not closed.
	LogTo io.Writer
}

// LLMLaw decides what a request uses. The zero value is a law of its own.
type LLMLaw struct {
	// Spread is that of the input about the estimate: the deviation of the logarithm of their ratio. If zero, 0.1; if negative,
	// none. At most 1.
	Spread float64
	// OutputMedian and OutputP99 are of the tokens of a choice, lognormal, before they are cut to what the request allows itself
	// (and then it says so: "length"), or to 16,384 of all choices if it does not say. If zero, 150 and 1,500.
	OutputMedian, OutputP99 int64
	// Cached is the probability that the input, from 1024 tokens on, is read from a cache, in whole multiples of 128.
	Cached float64
	// Reasoning is the share of the output that is thought and not shown, 0 to 1.
	Reasoning float64
}

// LLMUsage is what a request uses, in tokens.
type LLMUsage struct {
	Input     int64 `json:"input"`  // all of it
	Cached    int64 `json:"cached"` // the part of Input that was read from a cache
	Output    int64 `json:"output"` // of all choices
	Reasoning int64 `json:"reasoning"`
}

func (c LLMConfig) filled() (LLMConfig, error) {
	bad := func(format string, args ...any) (LLMConfig, error) {
		return c, fmt.Errorf("ratetest: LLM: "+format, args...)
	}
	c.Keys, c.Models, c.Script = slices.Clone(c.Keys), slices.Clone(c.Models), slices.Clone(c.Script)
	c.Faults, c.ModelLimits = maps.Clone(c.Faults), maps.Clone(c.ModelLimits)
	if c.Provider > Anthropic {
		return bad("there is no %v", c.Provider)
	}
	for name, list := range map[string][]string{"Keys": c.Keys, "Models": c.Models} {
		for i, s := range list {
			if s == "" || slices.Index(list, s) != i {
				return bad("%s: %q is empty or there twice", name, s)
			}
		}
	}
	c.Limits = c.Limits.filled(c.Provider)
	if err := c.Limits.check("Limits"); err != nil {
		return c, err
	}
	for model, l := range c.ModelLimits {
		l = l.filled(c.Provider)
		if err := l.check(fmt.Sprintf("ModelLimits[%q]", model)); err != nil {
			return c, err
		}
		c.ModelLimits[model] = l
	}
	if c.Count > CountTrue {
		return bad("there is no Count %d", c.Count)
	}
	if c.Count == CountDocumented {
		c.Count = map[Provider]Counting{OpenAI: CountReserved, Anthropic: CountCorrected}[c.Provider]
	}
	if c.RefusedCount && !c.Rolling {
		return bad("RefusedCount without Rolling")
	}
	l := &c.Law
	if l.OutputMedian == 0 && l.OutputP99 == 0 {
		l.OutputMedian, l.OutputP99 = 150, 1500
	}
	if l.Spread == 0 {
		l.Spread = 0.1
	}
	c.EventTokens = cmp.Or(c.EventTokens, 8)
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	switch {
	case !(l.Spread <= 1):
		return bad("Law.Spread %v is above 1", l.Spread)
	case l.OutputMedian < 1 || l.OutputP99 < l.OutputMedian || l.OutputP99 > mostOutput:
		return bad("Law.OutputMedian %d and OutputP99 %d do not rise from 1 to %d", l.OutputMedian, l.OutputP99, mostOutput)
	case !(l.Cached >= 0 && l.Cached <= 1):
		return bad("Law.Cached %v is not from 0 to 1", l.Cached)
	case !(l.Reasoning >= 0 && l.Reasoning <= 1):
		return bad("Law.Reasoning %v is not from 0 to 1", l.Reasoning)
	case !(c.TokensPerSecond >= 0):
		return bad("TokensPerSecond %v is negative", c.TokensPerSecond)
	case c.EventTokens < 0:
		return bad("EventTokens %d is negative", c.EventTokens)
	case c.Credit < 0:
		return bad("Credit %d is negative", c.Credit)
	}
	return c, checkFaults(c.Faults, c.Script)
}

func (c *LLMConfig) limitsOf(model string) LLMLimits {
	if l, ok := c.ModelLimits[model]; ok {
		return l
	}
	return c.Limits
}

// LLM is a server of language models with the limits of a provider. It answers with made-up text in the provider's formats,
// whole or as event streams, and with the provider's header fields and errors. What a request uses it decides itself: more
// or less input than estimated, and output up to what the request allows itself.
//
// A request is received, waits for its latency, is checked, generates its answer and is answered. A client that gives up
// before the check changes nothing: the request is on its way. One that leaves a stream has used what was sent.
//
// It is an http.Handler that runs in memory as well, and in a synctest bubble (there a broken connection is a panic with
// http.ErrAbortHandler, as of any handler); Start gives it a socket. Safe for concurrent use.
type LLM struct {
	config LLMConfig
	base   time.Time
	speak  speaker
	log    journal
	truth  sync.Mutex // held while config.Truth is called
	host

	mu       sync.Mutex // guards what follows, and is never held across a wait or a write
	received uint64
	keys     map[string]string // what they are called
	accounts map[[2]string]*account
	credit   map[string]int64 // used by each key
	judge    *llmJudge
	dropped  int
}

// unbounded is the most tokens of output of a request that does not bound it.
const unbounded = 16_384

// mostAccounts bounds the memory where any key will do.
const mostAccounts = 1000

// NewLLM returns a server that no request has reached. Its clock starts now. The error names the field and value.
func NewLLM(c LLMConfig) (*LLM, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	for _, limits := range append(slices.Collect(maps.Values(c.ModelLimits)), c.Limits) {
		if _, err := c.newAccount("", limits); err != nil {
			return nil, err
		}
	}
	l := &LLM{
		config: c, base: time.Now(), log: journal{to: c.LogTo},
		keys: map[string]string{}, accounts: map[[2]string]*account{}, credit: map[string]int64{}, judge: newLLMJudge(c),
	}
	if l.speak = (openAI{}); c.Provider == Anthropic {
		l.speak = anthropic{}
	}
	for _, k := range c.Keys {
		l.keys[k] = k
	}
	l.host = newHost(l, l.log.flush)
	return l, nil
}

func (l *LLM) now() mono.Time { return mono.Time(time.Since(l.base)) }

// kind is what is wrong with a request, as the providers tell it apart.
type kind uint8

const (
	badRequest kind = iota
	badKey
	noModel
	noPath
	badMethod
	badMedia
	tooLong
	rateLimited
	noCredit
	serverFailed
	overloaded
	closing
)

// problem is why a request is not served.
type problem struct {
	kind     kind
	text     string
	param    string // the field
	missing  bool   // the field is
	decision        // of the limits
	model    string
	window   time.Duration
	injected bool
}

// speaker is a provider's language.
type speaker interface {
	// api returns the API at a path, "" if there is none.
	api(path string) string
	// key returns the request's API key.
	key(h http.Header) string
	// identify writes the fields that every answer has.
	identify(h http.Header, id string)
	// limits writes the fields about limits.
	limits(h http.Header, v [families]view, now time.Time)
	// retryAfter writes how long to wait.
	retryAfter(h http.Header, d time.Duration)
	// refusal returns the status and the body of an error.
	refusal(p *problem, id string) (status int, body any)
	// needs returns what else the fields of a request must have.
	needs(h http.Header) *problem
	// whole returns an answer, events the same as a stream.
	whole(c *call) any
	events(c *call) iter.Seq[event]
	// broken returns the event that reports an error in a stream.
	broken(c *call) event
}

// event is one of a stream.
type event struct {
	name string
	data any   // a string goes as it stands
	done int64 // tokens of output with it
	last bool  // everything has been generated: what is settled is settled now
}

// call is a request on its way.
type call struct {
	LLMAsk
	n        uint64
	id       string // 24 letters and digits
	received mono.Time
	created  int64 // seconds
	used     LLMUsage
	fault    Fault
	first    time.Duration // to the first token
	perToken time.Duration
	perEvent int64
	account  *account // nil: it did not pass
	passed   mono.Time
	counted  amounts
	noUsage  bool
}

// length is how many tokens of each choice are shown, and whether the answer had to stop there.
func (c *call) length() (tokens int64, cut bool) {
	each := c.used.Output / c.Choices
	return (c.used.Output - c.used.Reasoning) / c.Choices, c.MaxOutput > 0 && each >= c.MaxOutput
}

// fails reports whether it is answered 500 once it has passed.
func (c *call) fails() bool { return c.fault == Failed || c.fault == ErrorEvent && !c.Stream }

// piece is n tokens of a choice, from the given one on; with them, done tokens have been generated.
type piece struct {
	choice        int
	from, n, done int64
}

// chunks yields what is shown of each choice, in order.
func (c *call) chunks(yield func(piece) bool) {
	shown, _ := c.length()
	for from := int64(0); from < shown; from += c.perEvent {
		n := min(c.perEvent, shown-from)
		for i := range c.Choices {
			if !yield(piece{int(i), from, n, c.used.Reasoning + from*c.Choices + (i+1)*n}) {
				return
			}
		}
	}
}

// ServeHTTP implements http.Handler.
func (l *LLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{received: l.now(), created: time.Now().Unix()}
	l.mu.Lock()
	l.received++
	c.n = l.received
	l.mu.Unlock()
	// Of its own: what one request draws does not change the fate of the next.
	rng := rand.New(rand.NewPCG(l.config.Seed, c.n))
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
	id := make([]byte, 24)
	for i := range id {
		id[i] = letters[rng.IntN(len(letters))]
	}
	c.id = string(id)
	l.speak.identify(w.Header(), c.id)
	if !l.enter() {
		l.refuse(w, c, &problem{kind: closing})
		return
	}
	defer l.leave()
	api := l.speak.api(r.URL.Path)
	switch {
	case api == "":
		l.refuse(w, c, &problem{kind: noPath, text: fmt.Sprintf("Unknown request URL: %.20s %.200s.", r.Method, r.URL.Path)})
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		l.refuse(w, c, &problem{kind: badMethod, text: "POST, not " + r.Method})
		return
	}
	p := l.read(w, r, c, api)
	l.handle(w, r, c, p, rng)
}

func (l *LLM) read(w http.ResponseWriter, r *http.Request, c *call, api string) (p *problem) {
	c.API, c.Choices = api, 1
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &problem{kind: tooLong, text: fmt.Sprintf("Request exceeds the maximum size of %d bytes", mostBody)}
		}
		return &problem{kind: badRequest, text: "body: " + err.Error()}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &problem{kind: badMedia, text: fmt.Sprintf("Content-Type: want application/json, not %.100q", r.Header.Get("Content-Type"))}
	}
	if p := l.speak.needs(r.Header); p != nil {
		return p
	}
	c.LLMAsk, p = readAsk(api, body)
	return p
}

// handle takes the request through latency, check and answer.
func (l *LLM) handle(w http.ResponseWriter, r *http.Request, c *call, p *problem, rng *rand.Rand) {
	key := l.speak.key(r.Header)
	before := l.draw(rng, c, p == nil)
	if !l.wait(before) {
		l.mu.Lock()
		l.dropped++
		l.mu.Unlock()
		l.refuse(w, c, &problem{kind: closing})
		return
	}
	p = l.check(w.Header(), r.Header, c, p, key, before)
	l.log.flush()       // Close returns the error
	defer l.log.flush() // what is amended below
	if p != nil {
		l.refuse(w, c, p)
		return
	}
	switch {
	case c.fault == Reset:
		l.settle(c, c.used)
		reset(w)
	case c.fault == BadGateway:
		l.pause(r.Context(), c.first+time.Duration(c.used.Output)*c.perToken)
		l.settle(c, c.used)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body>\n</html>\n")
	case c.fails():
		l.pause(r.Context(), c.first)
		l.settle(c, LLMUsage{})
		l.refuse(w, c, &problem{kind: serverFailed})
	case c.Stream:
		l.stream(w, r, c)
	default:
		l.whole(w, r, c)
	}
}

// draw decides what chance decides.
func (l *LLM) draw(rng *rand.Rand, c *call, readable bool) (before time.Duration) {
	before = l.config.Before.Draw(rng)
	c.first = l.config.First.Draw(rng)
	x, y, cached, fault := rng.NormFloat64(), rng.NormFloat64(), rng.Float64(), rng.Float64()
	if c.fault = pick(l.config.Faults, fault); c.n <= uint64(len(l.config.Script)) {
		c.fault = l.config.Script[c.n-1]
	}
	c.noUsage, c.perEvent = c.fault == NoUsage, l.config.EventTokens
	if n := l.config.TokensPerSecond; n > 0 {
		c.perToken = time.Duration(float64(time.Second) / n)
	}
	if !readable {
		return before
	}
	most := cmp.Or(c.MaxOutput, max(1, unbounded/c.Choices))
	law := l.config.Law
	u := LLMUsage{Input: max(1, int64(math.Round(float64(c.Estimate)*math.Exp(max(law.Spread, 0)*min(max(x, -4), 4)))))}
	if cached < law.Cached && u.Input >= 1024 {
		u.Cached = u.Input / 128 * 128
	}
	const z99 = 2.3263478740408408 // of the normal distribution
	sigma := math.Log(float64(law.OutputP99)/float64(law.OutputMedian)) / z99
	u.Output = c.Choices * int64(math.Round(min(max(float64(law.OutputMedian)*math.Exp(sigma*y), 1), float64(most))))
	u.Reasoning = int64(float64(u.Output) * law.Reasoning)
	if l.config.Truth != nil {
		l.truth.Lock()
		u = l.config.Truth(c.LLMAsk)
		l.truth.Unlock()
		u.Input = min(max(u.Input, 1), 1<<40)
		u.Cached = min(max(u.Cached, 0), u.Input)
		u.Output = min(max(u.Output, 1), most*c.Choices)
		u.Reasoning = min(max(u.Reasoning, 0), u.Output)
	}
	if c.API == "embeddings" {
		u.Output, u.Reasoning = 0, 0
	}
	c.used = u
	return before
}

// check decides about the request, writes the fields about limits and the line of the log.
func (l *LLM) check(h, asked http.Header, c *call, p *problem, key string, before time.Duration) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	line := LLMLine{Event: "request", At: int64(now), N: c.n, Model: c.Model, API: c.API, Stream: c.Stream, Before: int64(before),
		Estimate: c.Estimate, MaxOutput: c.output(), Used: c.used, Retry: asked.Get("X-Stainless-Retry-Count")}
	if len(line.Retry) > 3 || strings.Trim(line.Retry, "0123456789") != "" {
		line.Retry = ""
	}
	limits := l.config.limitsOf(c.Model)
	a, verdict, p := l.decide(&line, c, p, key, limits, now)
	line.Verdict = verdict
	switch {
	case verdict == faulty:
		line.Fault = c.fault.String()
	case verdict == accepted && c.fault != NoFault, (verdict == limited || verdict == tooLarge) && c.fault >= NoHeaders:
		line.Fault = c.fault.String()
	}
	if a != nil {
		v := a.views(now)
		switch c.fault {
		case LyingHeaders:
			for f := range v {
				v[f].left, v[f].reset = v[f].limit, 0
			}
		}
		if c.fault != NoHeaders {
			l.speak.limits(h, v, time.Now())
		}
	}
	if p != nil && p.kind == rateLimited && !p.never || p != nil && p.kind == overloaded {
		switch {
		case c.fault == NoHeaders || p.wait < 0:
		case c.fault == LyingHeaders:
			l.speak.retryAfter(h, 0)
		default:
			l.speak.retryAfter(h, p.wait)
		}
	}
	if c.fault == GarbledHeaders {
		garble(h)
	}
	line.Status = http.StatusOK
	switch {
	case p != nil:
		line.Status, _ = l.speak.refusal(p, c.id)
	case c.fails():
		line.Status = http.StatusInternalServerError
	case c.fault == BadGateway:
		line.Status = http.StatusBadGateway
	case c.fault == Reset:
		line.Status = 0
	}
	if err := l.judge.hear(&line); err != nil {
		panic(err) // the limits were checked by NewLLM
	}
	l.log.add(line)
	return p
}

// decide returns the account whose limits the answer tells, the verdict and, unless the request passed, the problem. The lock
// is held.
func (l *LLM) decide(line *LLMLine, c *call, p *problem, key string, limits LLMLimits, now mono.Time) (*account, string, *problem) {
	name, known := l.keys[key]
	if !known && key != "" && len(l.config.Keys) == 0 && len(l.keys) < mostAccounts {
		name, known = "key "+strconv.Itoa(len(l.keys)+1), true
		l.keys[key] = name
	}
	if !known {
		return nil, unauthorized, &problem{kind: badKey, missing: key == ""}
	}
	line.Key = name
	if p != nil {
		line.Model = "" // whatever it says
		return nil, malformed, p
	}
	id := [2]string{name, c.Model}
	a := l.accounts[id]
	if a == nil && (len(l.config.Models) > 0 && !slices.Contains(l.config.Models, c.Model) || len(c.Model) > 200 || len(l.accounts) >= mostAccounts) {
		line.Model = ""
		return nil, unknownModel, &problem{kind: noModel, model: c.Model}
	}
	if a == nil {
		var err error
		if a, err = l.config.newAccount(name, limits); err != nil {
			panic(err) // NewLLM has checked them
		}
		l.accounts[id] = a
	}
	switch {
	case c.fault == Refused:
		return a, faulty, &problem{kind: rateLimited, model: c.Model, injected: true, decision: decision{wait: l.config.RetryAfter}}
	case c.fault == Unavailable:
		return nil, faulty, &problem{kind: overloaded, decision: decision{wait: l.config.RetryAfter}}
	case c.fault == Unpaid:
		return nil, faulty, &problem{kind: noCredit}
	case l.config.Credit > 0 && l.credit[name] >= l.config.Credit:
		return nil, unpaid, &problem{kind: noCredit}
	}
	if c.fails() {
		c.used = LLMUsage{}
	}
	cost := l.config.reserved(&c.LLMAsk, c.used)
	line.Counted = [4]int64(cost[:4])
	d := a.arrive(now, cost)
	if d.passed {
		c.account, c.passed, c.counted = a, now, cost
		line.Used = c.used
		l.credit[name] += c.used.Input + c.used.Output
		return a, accepted, nil
	}
	line.By = familyNames[d.by]
	p = &problem{kind: rateLimited, model: c.Model, decision: d}
	_, p.window = limits.of(d.by)
	if d.never {
		return a, tooLarge, p
	}
	line.Wait = int64(d.wait)
	return a, limited, p
}

// settle puts what was used in the place of what was reserved, where the server counts so.
func (l *LLM) settle(c *call, used LLMUsage) {
	a := c.account
	if a == nil || l.config.Count != CountCorrected {
		return
	}
	c.account = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	by := l.config.used(used)
	for f := range by {
		by[f] -= c.counted[f]
	}
	by[requests], by[requestsDay] = 0, 0
	now := l.now()
	a.amend(now, c.passed, by)
	line := LLMLine{Event: "amended", At: int64(now), N: c.n, Key: a.key, Model: c.Model, Counted: [4]int64(by[:4]), Passed: int64(c.passed)}
	if err := l.judge.hear(&line); err != nil {
		panic(err) // it knows the account
	}
	l.log.add(line)
}

// pause waits, and reports whether the client is still there. On a closing server it does not wait.
func (l *LLM) pause(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.cut:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (l *LLM) refuse(w http.ResponseWriter, c *call, p *problem) {
	status, body := l.speak.refusal(p, c.id)
	respond(w, status, body)
}

func respond(w http.ResponseWriter, status int, body any) {
	text := encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text) // nobody to tell: the client has gone
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings
	}
	return text
}

// whole answers with one document.
func (l *LLM) whole(w http.ResponseWriter, r *http.Request, c *call) {
	l.pause(r.Context(), c.first+time.Duration(c.used.Output)*c.perToken)
	l.settle(c, c.used) // all was generated, whether the client waits for it or not
	l.processing(w, c)
	text := encode(l.speak.whole(c))
	w.Header().Set("Content-Type", "application/json")
	switch c.fault {
	case Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text[:len(text)/2])
		abort(w)
	case Ended: // without a Content-Length nobody can tell
		text = text[:len(text)/2]
	default:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.Write(text)
}

func (l *LLM) processing(w http.ResponseWriter, c *call) {
	if l.config.Provider == OpenAI {
		w.Header().Set("Openai-Processing-Ms", strconv.FormatInt(l.now().Sub(c.received).Milliseconds(), 10))
	}
}

// stream answers with events.
func (l *LLM) stream(w http.ResponseWriter, r *http.Request, c *call) {
	there := l.pause(r.Context(), c.first)
	l.processing(w, c)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	done := int64(0)
	put := func(e event) bool {
		var text []byte
		if e.name != "" {
			text = append(append(append(text, "event: "...), e.name...), '\n')
		}
		text = append(text, "data: "...)
		if s, ok := e.data.(string); ok {
			text = append(text, s...)
		} else {
			text = append(text, encode(e.data)...)
		}
		_, err := w.Write(append(text, "\n\n"...))
		control.Flush() // a writer that cannot is no network
		return err == nil
	}
	// What is left behind has used its input and what was generated so far.
	left := func() {
		u := c.used
		u.Output = min(done, u.Output)
		u.Reasoning = min(u.Reasoning, u.Output)
		l.settle(c, u)
	}
	for e := range l.speak.events(c) {
		if there = there && l.pause(r.Context(), time.Duration(e.done-done)*c.perToken); !there {
			left()
			return
		}
		if broken := 2*e.done >= c.used.Output && e.done > 0 || e.last; broken {
			switch c.fault {
			case Cut:
				left()
				abort(w)
			case Ended:
				left()
				return
			case ErrorEvent:
				left()
				put(l.speak.broken(c))
				return
			}
		}
		done = max(done, e.done)
		if e.last {
			l.settle(c, c.used)
		}
		there = put(e)
	}
	l.settle(c, c.used)
}

// reset closes the connection so that the client sees it reset.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler)
}

// abort breaks the connection after what was written.
func abort(w http.ResponseWriter) {
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// garble makes nonsense of the fields about limits.
func garble(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "retry-after-ms":
			h.Set(name, "-1")
		case lower == "retry-after":
			h.Set(name, "31536000")
		case !strings.Contains(lower, "ratelimit"):
		case strings.Contains(lower, "remaining"):
			h.Set(name, "-1")
		case strings.Contains(lower, "reset"):
			h.Set(name, "soon")
		default:
			h.Set(name, "0")
		}
	}
}

// words of three letters: with the space after it each is one token of four characters.
const prose = "the cat sat and ate one fig but her dog ran off mud hut sun set low old man dug his own pit raw egg hot tea dry rye jam tin "

// text returns that many tokens of made-up text, from the given one on.
func text(from, tokens int64) string {
	var b strings.Builder
	b.Grow(int(4 * tokens))
	for at := 4 * from % int64(len(prose)); tokens > 0; at = 0 {
		n := min(4*tokens, int64(len(prose))-at)
		b.WriteString(prose[at : at+n])
		tokens -= n / 4
	}
	return b.String()
}

// Config returns the configuration with its defaults filled in.
func (l *LLM) Config() LLMConfig {
	c, err := l.config.filled()
	if err != nil {
		panic(err) // it has been filled before
	}
	return c
}

// Report sums up what happened so far.
func (l *LLM) Report() LLMReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.judge.sum()
	r.Dropped, r.Elapsed = l.dropped, time.Since(l.base)
	return r
}
