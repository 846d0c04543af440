package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// Server is a server of language models with the limits of a provider. It answers with made-up text
// in the provider's formats, whole or as event streams. It has the provider's header fields and
// errors. The server decides the usage of a request. Its input is more or less than estimated, and
// its output at most what the request allows.
//
// A request is received, waits for its latency, is checked, generates its answer and is answered. A
// client that gives up before the check changes nothing: the request is on its way. A client that
// leaves a stream has used the part that was sent.
//
// A Server is an http.Handler that also runs in memory and in a synctest bubble. There a broken
// connection is a panic with http.ErrAbortHandler, as in any handler. Start gives it a socket. Safe
// for concurrent use.
type Server struct {
	host.Host // Start, StartListener, URL, Close, Shutdown

	config Config
	base   time.Time
	speak  speaker
	routes []freeRoute
	log    host.Journal
	truth  sync.Mutex // held during calls of config.Truth
	work   *host.Requests

	mu       sync.Mutex // guards the fields below, and is never held across a wait or a write
	received uint64
	keys     map[string]string // the names of keys in the log
	accounts map[[2]string]*account
	credit   map[string]int64 // used by each key
	judge    *judge
	dropped  int
	files    []*file // in the order of their making
	kept     int     // bytes of all files
	batches  []*batch
}

// unbounded is the most output tokens of a request without a bound.
const unbounded = 16_384

// mostAccounts bounds the memory of a server that accepts any key.
const mostAccounts = 1000

// New returns a server that no request has reached. Its clock starts now. The error names the field
// and value.
func New(c Config) (*Server, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	for _, limits := range append(slices.Collect(maps.Values(c.ModelLimits)), c.Limits) {
		if _, err := c.newAccount("", limits); err != nil {
			return nil, err
		}
	}
	l := &Server{
		config: c, base: time.Now(), log: host.Journal{To: c.LogTo},
		keys: map[string]string{}, accounts: map[[2]string]*account{}, credit: map[string]int64{}, judge: newJudge(c),
	}
	if l.speak = (openAI{}); c.Provider == Anthropic {
		l.speak = anthropic{}
	}
	l.routes = freeRoutes(c.Provider)
	for _, k := range c.Keys {
		l.keys[k] = k
	}
	l.Host, l.work = host.New(l, nil, l.log.Flush)
	return l, nil
}

func (l *Server) now() mono.Time { return mono.Time(time.Since(l.base)) }

// kind is the kind of a request's problem, as the providers distinguish them.
type kind uint8

const (
	badRequest kind = iota
	badKey
	noModel
	noPath
	notThere
	conflict
	badMethod
	badMedia
	tooLong
	rateLimited
	noCredit
	serverFailed
	overloaded
	closing
)

// problem is the reason why a request is refused.
type problem struct {
	kind kind
	model.Problem
	decision // of the limits
	model    string
	window   time.Duration
	injected bool
}

func wrong(k kind, text string) *problem {
	return &problem{kind: k, Problem: model.Problem{Text: text}}
}

func badParam(param, format string, args ...any) *problem {
	return &problem{kind: badRequest, Problem: model.Problem{Param: param, Text: fmt.Sprintf(format, args...)}}
}

// speaker is a provider's language.
type speaker interface {
	model.Form
	// api returns the API at a path, "" if there is none.
	api(path string) string
	// key returns the request's API key.
	key(h http.Header) string
	// identify writes the fields that every answer has.
	identify(h http.Header, id string)
	// belongs writes the organization of the key, and nothing if it is empty.
	belongs(h http.Header, organization string)
	// limits writes the fields about limits.
	limits(h http.Header, v [families]view, now time.Time)
	// retryAfter writes how long to wait.
	retryAfter(h http.Header, d time.Duration)
	// refusal returns the status and the body of an error.
	refusal(p *problem, id string) (status int, body any)
	// needs returns the problem if a required header field is missing.
	needs(h http.Header) *problem
	// broken returns the event that reports an error in a stream.
	broken(c *call) model.Event
}

// call is a request under way.
type call struct {
	model.Answer
	truth    int64 // the input counted with the vocabulary, 0 if unknown
	fault    fault
	first    time.Duration // to the first token
	perToken time.Duration
	account  *account // nil: the request did not pass
	passed   mono.Time
	counted  amounts
}

// fails reports whether the request is answered with 500 after it has passed.
func (c *call) fails() bool { return c.fault == faultFailed || c.fault == faultErrorEvent && !c.Stream }

// ServeHTTP implements http.Handler.
func (l *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Answer: model.Answer{Created: time.Now().Unix()}}
	l.mu.Lock()
	l.received++
	c.N = l.received
	l.mu.Unlock()
	// A separate source: the draws of one request do not change the next request.
	rng := rand.New(rand.NewPCG(l.config.Seed, c.N))
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
	id := make([]byte, 24)
	for i := range id {
		id[i] = letters[rng.IntN(len(letters))]
	}
	c.ID = string(id)
	l.speak.identify(w.Header(), c.ID)
	if !l.work.Enter() {
		l.refuse(w, c, &problem{kind: closing})
		return
	}
	defer l.work.Leave()
	api := l.speak.api(r.URL.Path)
	switch {
	case api == "" && l.free(w, r, c, rng):
		return
	case api == "":
		l.refuse(w, c, wrong(noPath, fmt.Sprintf("Unknown request URL: %.20s %.200s.", r.Method, r.URL.Path)))
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		l.refuse(w, c, wrong(badMethod, "POST, not "+r.Method))
		return
	}
	p := l.read(w, r, c, api)
	l.handle(w, r, c, p, rng)
}

func (l *Server) read(w http.ResponseWriter, r *http.Request, c *call, api string) (p *problem) {
	c.API, c.Choices = api, 1
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, model.MostBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return wrong(tooLong, fmt.Sprintf("Request exceeds the maximum size of %d bytes", model.MostBody))
		}
		return wrong(badRequest, "body: "+err.Error())
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return wrong(badMedia, fmt.Sprintf("Content-Type: want application/json, not %.100q", r.Header.Get("Content-Type")))
	}
	if p := l.speak.needs(r.Header); p != nil {
		return p
	}
	var bad *model.Problem
	if c.Ask, bad = model.Read(l.config.Provider.family(), api, body); bad != nil {
		return &problem{kind: badRequest, Problem: *bad}
	}
	if l.config.Input != nil {
		if n, ok := l.config.Input(api, body); ok {
			c.truth = min(max(n, 1), 1<<40)
		}
	}
	return nil
}

// handle takes the request through latency, check and answer.
func (l *Server) handle(w http.ResponseWriter, r *http.Request, c *call, p *problem, rng *rand.Rand) {
	key := l.speak.key(r.Header)
	before := l.draw(rng, c, p == nil)
	if !l.work.Wait(before) {
		l.mu.Lock()
		l.dropped++
		l.mu.Unlock()
		l.refuse(w, c, &problem{kind: closing})
		return
	}
	p = l.check(w.Header(), r.Header, c, p, key, before)
	l.log.Flush()       // Close returns the error
	defer l.log.Flush() // for the amendment below
	if p != nil {
		l.refuse(w, c, p)
		return
	}
	switch {
	case c.fault == faultReset:
		l.settle(c, c.Used)
		reset(w)
	case c.fault == faultBadGateway:
		l.generate(r.Context(), c)
		l.settle(c, c.Used)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad "+
			"Gateway</h1></body>\n</html>\n")
	case c.fails():
		l.pause(r.Context(), c.first)
		l.settle(c, model.Usage{})
		l.refuse(w, c, &problem{kind: serverFailed})
	case c.Stream:
		l.stream(w, r, c)
	default:
		l.whole(w, r, c)
	}
}

// draw draws everything that is random about a request.
func (l *Server) draw(rng *rand.Rand, c *call, readable bool) (before time.Duration) {
	before = l.config.Before.Draw(rng)
	c.first = l.config.First.Draw(rng)
	x, y, cached, fault := rng.NormFloat64(), rng.NormFloat64(), rng.Float64(), rng.Float64()
	if c.fault = pick(&l.config.odds, fault); c.N <= uint64(len(l.config.script)) {
		c.fault = l.config.script[c.N-1]
	}
	c.NoUsage, c.PerEvent = c.fault == faultNoUsage, l.config.EventTokens
	if n := l.config.TokensPerSecond; n > 0 {
		c.perToken = time.Duration(float64(time.Second) / n)
	}
	if readable {
		l.uses(c, x, y, cached)
	}
	return before
}

// uses decides the usage of a request from three draws.
func (l *Server) uses(c *call, x, y, cached float64) {
	most := cmp.Or(c.MaxOutput, max(1, unbounded/c.Choices))
	law := l.config.Law
	u := model.Usage{Input: max(1, int64(math.Round(float64(c.Estimate)*math.Exp(max(law.Spread, 0)*min(max(x, -4), 4)))))}
	if c.truth > 0 {
		u.Input = c.truth
	}
	if cached < law.Cached && u.Input >= 1024 {
		u.Cached = u.Input / 128 * 128
	}
	const z99 = 2.3263478740408408 // of the normal distribution
	sigma := math.Log(float64(law.OutputP99)/float64(law.OutputMedian)) / z99
	u.Output = c.Choices * int64(math.Round(min(max(float64(law.OutputMedian)*math.Exp(sigma*y), 1), float64(most))))
	u.Reasoning = int64(float64(u.Output) * law.Reasoning)
	if n := c.Tokens(); n > 0 {
		if u.Output, u.Reasoning = n, int64(float64(n)*law.Reasoning); n+u.Reasoning < most*c.Choices {
			u.Output += u.Reasoning // the thoughts come on top, since the text has to be whole
		} else {
			u.Reasoning = 0
		}
	}
	if l.config.Truth != nil {
		l.truth.Lock()
		u = model.Usage(l.config.Truth(askOf(&c.Ask)))
		l.truth.Unlock()
		u.Input = min(max(u.Input, 1), 1<<40)
		u.Cached = min(max(u.Cached, 0), u.Input)
		u.Output = min(max(u.Output, 1), most*c.Choices)
		u.Reasoning = min(max(u.Reasoning, 0), u.Output)
	}
	if !c.Generates() {
		u.Output, u.Reasoning = 0, 0
	}
	c.Used = u
}

// check decides about the request. It writes the fields about limits and the line of the log.
func (l *Server) check(h, asked http.Header, c *call, p *problem, key string, before time.Duration) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	line := Line{Event: "request", At: int64(now), N: c.N, Model: c.Model, API: c.API, Stream: c.Stream,
		Before:   int64(before),
		Estimate: c.Estimate, MaxOutput: c.Output(), Used: Usage(c.Used), Retry: asked.Get("X-Stainless-Retry-Count")}
	if len(line.Retry) > 3 || strings.Trim(line.Retry, "0123456789") != "" {
		line.Retry = ""
	}
	limits := l.config.limitsOf(c.Model)
	a, verdict, p := l.decide(h, &line, c, p, key, limits, now)
	line.Verdict = verdict
	switch {
	case verdict == faulty:
		line.Fault = c.fault.String()
	case verdict == host.Accepted && c.fault != noFault, (verdict == host.Limited || verdict == host.TooLarge) &&
		c.fault >= faultNoHeaders:
		line.Fault = c.fault.String()
	}
	if a != nil {
		v := a.views(now)
		switch c.fault {
		case faultLyingHeaders:
			for f := range v {
				v[f].left, v[f].reset = v[f].limit, 0
			}
		}
		if c.fault != faultNoHeaders {
			l.speak.limits(h, v, time.Now())
		}
	}
	if p != nil && p.kind == rateLimited && !p.never || p != nil && p.kind == overloaded {
		switch {
		case c.fault == faultNoHeaders || p.wait < 0:
		case c.fault == faultLyingHeaders:
			l.speak.retryAfter(h, 0)
		default:
			l.speak.retryAfter(h, p.wait)
		}
	}
	if c.fault == faultGarbledHeaders {
		garble(h)
	}
	line.Status = http.StatusOK
	switch {
	case p != nil:
		line.Status, _ = l.speak.refusal(p, c.ID)
	case c.fails():
		line.Status = http.StatusInternalServerError
	case c.fault == faultBadGateway:
		line.Status = http.StatusBadGateway
	case c.fault == faultReset:
		line.Status = 0
	}
	if err := l.judge.hear(&line); err != nil {
		panic(err) // the limits were checked by New
	}
	l.log.Add(line)
	return p
}

// number returns the number of a key, from 1.
func (l *Server) number(key, name string) int {
	if i := slices.Index(l.config.Keys, key); i >= 0 {
		return i + 1
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "key "))
	return n
}

// belongs writes the organization into its header field. If it is empty, belongs removes the field.
func belongs(h http.Header, field, organization string) {
	h.Set(field, organization)
	if organization == "" {
		h.Del(field)
	}
}

// named returns the name of a key in the log, and reports whether the server takes the key. The lock
// is held.
func (l *Server) named(key string) (name string, known bool) {
	name, known = l.keys[key]
	if !known && key != "" && len(l.config.Keys) == 0 && len(l.keys) < mostAccounts {
		name, known = "key "+strconv.Itoa(len(l.keys)+1), true
		l.keys[key] = name
	}
	return name, known
}

// decide returns the account for the fields about limits, and the verdict. If the request did not
// pass, it also returns the problem. The lock is held.
func (l *Server) decide(h http.Header, line *Line, c *call, p *problem, key string, limits Limits,
	now mono.Time) (*account, string, *problem) {
	name, known := l.named(key)
	if !known {
		return nil, unauthorized, &problem{kind: badKey, Problem: model.Problem{Missing: key == ""}}
	}
	if whose, is := l.config.Organizations[key]; is {
		l.speak.belongs(h, whose)
		name = cmp.Or(whose, name)
	} else if n := l.number(key, name); n > 1 {
		l.speak.belongs(h, fmt.Sprintf("org-ratetest-%d", n))
	}
	line.Key = name
	if p != nil {
		line.Model = "" // the model of a malformed request stays out of the log
		return nil, malformed, p
	}
	id := [2]string{name, c.Model}
	a := l.accounts[id]
	if a == nil && (!l.config.knows(c.Model) || len(c.Model) > 200 || len(l.accounts) >= mostAccounts) {
		line.Model = ""
		return nil, unknownModel, &problem{kind: noModel, model: c.Model}
	}
	if a == nil {
		var err error
		if a, err = l.config.newAccount(name, limits); err != nil {
			panic(err) // New has checked them
		}
		l.accounts[id] = a
	}
	switch {
	case c.fault == faultRefused:
		return a, faulty, &problem{kind: rateLimited, model: c.Model, injected: true,
			decision: decision{wait: l.config.RetryAfter}}
	case c.fault == faultUnavailable:
		return nil, faulty, &problem{kind: overloaded, decision: decision{wait: l.config.RetryAfter}}
	case c.fault == faultUnpaid:
		return nil, faulty, &problem{kind: noCredit}
	case l.config.Credit > 0 && l.credit[name] >= l.config.Credit:
		return nil, unpaid, &problem{kind: noCredit}
	}
	if c.fails() {
		c.Used = model.Usage{}
	}
	cost := l.config.reserved(&c.Ask, Usage(c.Used))
	line.Counted = [4]int64(cost[:4])
	d := a.arrive(now, cost)
	if d.passed {
		c.account, c.passed, c.counted = a, now, cost
		line.Used = Usage(c.Used)
		l.credit[name] += c.Used.Input + c.Used.Output
		return a, host.Accepted, nil
	}
	line.By = familyNames[d.by]
	p = &problem{kind: rateLimited, model: c.Model, decision: d}
	_, p.window = limits.of(d.by)
	if d.never {
		return a, host.TooLarge, p
	}
	line.Wait = int64(d.wait)
	return a, host.Limited, p
}

// settle replaces the reserved amounts by the used ones, if Config.Count is so.
func (l *Server) settle(c *call, used model.Usage) {
	a := c.account
	if a == nil || l.config.Count != countCorrected && l.config.Count != countProduced {
		return
	}
	c.account = nil
	by := l.config.used(Usage(used))
	for f := range by {
		by[f] -= c.counted[f]
	}
	by[requests], by[requestsDay], by[requestsSecond] = 0, 0, 0
	l.amend(a, c, by)
}

// produced counts the output produced so far, if Config.Count is so.
func (l *Server) produced(c *call, done int64) {
	n := min(done, c.Used.Output) - c.counted[output]
	if c.account == nil || l.config.Count != countProduced || n <= 0 {
		return
	}
	by := amounts{output: n, total: n, totalDay: n, outputSecond: n, totalSecond: n}
	for f := range by {
		c.counted[f] += by[f]
	}
	l.amend(c.account, c, by)
}

func (l *Server) amend(a *account, c *call, by amounts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a.amend(now, c.passed, by)
	line := Line{Event: "amended", At: int64(now), N: c.N, Key: a.key, Model: c.Model, Counted: [4]int64(by[:4]),
		Passed: int64(c.passed)}
	if err := l.judge.hear(&line); err != nil {
		panic(err) // the account exists
	}
	l.log.Add(line)
}

// generate waits until the whole answer is generated.
func (l *Server) generate(ctx context.Context, c *call) {
	if l.config.Count != countProduced {
		l.pause(ctx, c.first+time.Duration(c.Used.Output)*c.perToken)
		return
	}
	ctx = context.WithoutCancel(ctx) // generation goes on after the client has left
	l.pause(ctx, c.first)
	for done := int64(0); done < c.Used.Output && c.perToken > 0; {
		n := min(c.PerEvent, c.Used.Output-done)
		l.pause(ctx, time.Duration(n)*c.perToken)
		done += n
		l.produced(c, done)
	}
}

// pause waits, and reports whether the client is still there. It does not wait on a closing server.
func (l *Server) pause(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.work.Cut():
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// Config returns the configuration with its defaults filled in.
func (l *Server) Config() Config {
	c, err := l.config.filled()
	if err != nil {
		panic(err) // it has been filled before
	}
	return c
}

// Report sums up the requests so far.
func (l *Server) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.judge.sum()
	r.Dropped, r.Elapsed = l.dropped, time.Since(l.base)
	return r
}
