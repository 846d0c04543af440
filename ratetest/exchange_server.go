package ratetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Path is the URL path of an Exchange.
const Path = "/api/request"

// MostVirtualClients is the most clients of a virtual clock.
const MostVirtualClients = host.MostClients

// Config describes an Exchange. The zero value is the strict one: 20 requests per second and key,
// nonces, a ban after ten refusals, and no latency.
type Config struct {
	// Keys are the API keys. If empty, key1 to key5.
	Keys []string
	// Limit is the most requests per key in a closed window. If zero, 20.
	Limit int
	// Window is a whole number of milliseconds. If zero, 1 s.
	Window time.Duration
	// BanAfter is the number of refusals after which a key is banned for good. If zero, 10; if
	// negative, never.
	BanAfter int
	// AnyNonce lets every nonce pass.
	AnyNonce bool
	// Before and After are the latencies of each request on its way to the check and back. If zero,
	// none.
	Before, After latency.Law
	// VirtualClients is the number of clients of a virtual clock, by which the server counts. Then
	// Before and After are not set. If zero, the clock is real.
	VirtualClients int
	// Seed is the seed of the latencies. The same requests, received in the same order, get the
	// same latencies.
	Seed uint64
	// Keep is the number of latest requests that Records returns. If zero, 1,000,000, of about 150
	// bytes each. If negative, none.
	Keep int
	// LogTo, if not nil, gets a line of JSON for each checked request, in the order of checks: see
	// LogLine. A slow writer delays answers, not checks. The server does not close LogTo.
	LogTo io.Writer
}

// Exchange is a server like a strict exchange. It answers GET and POST of Path. The parameters are
// api_key and nonce, and optionally req_id, which the answer repeats. They stand in the query or as
// a form in the body; the body's values win:
//
//	200 {"status":"OK","req_id":17}           accepted; req_id as sent: a number if it is an integer, null if it is not there
//	400 {"status":"error","error_msg":"..."}  bad nonce (uses a slot), or api_key or nonce is missing or no number (uses none)
//	401, 403, 429                             unknown key, banned, limited
//	413, 415                                  a body of more than 64 KiB, or one that is no form (uses no slot)
//
// A request is received, waits for its latency, is checked, waits again and is answered. A client
// that gives up during a wait changes nothing: its request is already on its way.
//
// By a virtual clock (VirtualClients), a client asks the server to sleep, and a day passes in
// seconds. A client is a name, and makes one call at a time:
//
//	/clock/sleep?client=NAME&seconds=1.5   answers when the client's sleep is over
//	/clock/leave?client=NAME               the clock no longer waits for the client
//	/clock/now
//
// Each answer is the clock's time in seconds, as text. The clock starts when all clients sleep. It
// advances to the earliest end of a sleep, and one client is awake at a time. So a test has the same
// order of events on every machine. A client whose connection breaks during a sleep has left. If
// the clock waits for a client for a minute of real time, all sleeps fail with its name.
//
// An Exchange is an http.Handler that also runs in memory and in a synctest bubble. Start gives it
// a socket. Safe for concurrent use.
type Exchange struct {
	host.Host // has Start, StartListener, URL, Close and Shutdown

	config  Config
	clock   *host.Clock
	numbers map[string]int // key to its number
	log     host.Journal
	work    *host.Requests

	mu        sync.Mutex // guards the fields below, and is never held across a wait or a write
	rng       *rand.Rand
	rule      *rule.Exchange
	judge     *rule.Judge
	received  uint64   // number of well-formed requests
	records   []Record // the record of request n is at n % Keep
	malformed int
	dropped   int
}

// Record has the facts about one well-formed request. Instants count from NewExchange.
type Record struct {
	// Key is the number of the key, -1 if no key has that name.
	Key   int
	Nonce string
	// Verdict has a Status, which is the status code of the answer, and a String, as in a LogLine.
	Verdict rule.Verdict
	// Received, Checked and Answered are the real instants, not the planned ones of the latency
	// laws. Checked and Answered are -1 until they have happened.
	Received, Checked, Answered mono.Time
	// Before and After are the latencies that the laws drew.
	Before, After time.Duration

	n uint64
}

// LogLine is a line of Config.LogTo. New versions may add fields, and remove none.
type LogLine struct {
	Received int64  `json:"received_ns"` // since the start of the server
	Checked  int64  `json:"checked_ns"`
	Before   int64  `json:"before_ns"` // the latencies as drawn
	After    int64  `json:"after_ns"`
	Key      string `json:"key,omitempty"` // empty if unknown: a stranger may send the secret of another server
	Nonce    string `json:"nonce,omitempty"`
	ReqID    string `json:"req_id,omitempty"`
	Verdict  string `json:"verdict"` // "malformed", or the Verdict of a Record
	Status   int    `json:"status"`
	// At is the time of day of the check, to compare with other logs. With VirtualClients, it is when the
	// server began and the time since then by its clock.
	At time.Time `json:"at"`
}

// Report sums up the requests that reached an Exchange.
type Report struct {
	// Keys are the names of the keys, in the order of Judge.Keys.
	Keys []string
	// Judge is the report of an independent judge of the log. Judge.Total counts the requests: Accepted,
	// BadNonce, Limited, Banned and UnknownKey. Judge.Keys has the same for each key, and its fullest
	// window. Judge.Faults is the number of verdicts of the server that were against its rule.
	Judge rule.Report
	// Malformed requests got 400, 413 or 415 and used no slot. Dropped requests were on their way when the
	// server closed.
	Malformed, Dropped int
	// Received is the number of well-formed requests. Records has Kept of them.
	Received, Kept int
	// Elapsed is the time since NewExchange.
	Elapsed time.Duration
}

// NewExchange returns an exchange that no request has reached. Its clock starts now.
func NewExchange(c Config) (*Exchange, error) {
	if len(c.Keys) == 0 {
		c.Keys = []string{"key1", "key2", "key3", "key4", "key5"}
	}
	c.Keys = slices.Clone(c.Keys)
	clock, err := host.NewClock(host.ClockConfig{Clients: c.VirtualClients,
		Latency: c.Before != latency.Law{} || c.After != latency.Law{}})
	if err != nil {
		return nil, fmt.Errorf("ratetest: %w", err)
	}
	numbers := make(map[string]int, len(c.Keys))
	for i, name := range c.Keys {
		if _, twice := numbers[name]; name == "" || twice {
			return nil, fmt.Errorf("ratetest: Keys: %q is empty or there twice", name)
		}
		numbers[name] = i
	}
	switch {
	case c.Keep == 0:
		c.Keep = 1_000_000
	case c.Keep < 0:
		c.Keep = 0
	}
	x := &Exchange{
		config:  c,
		clock:   clock,
		numbers: numbers,
		log:     host.Journal{To: c.LogTo},
		rng:     rand.New(rand.NewPCG(c.Seed, 0)),
	}
	x.Host, x.work = host.New(x, clock, x.log.Flush)
	its := rule.ExchangeConfig{
		Keys: len(c.Keys), Limit: c.Limit, Window: c.Window, BanAfter: c.BanAfter, AnyNonce: c.AnyNonce,
	}
	if x.rule, err = rule.NewExchange(its); err != nil {
		return nil, err
	}
	if x.judge, err = rule.NewJudge(its, 0); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *Exchange) now() mono.Time { return mono.Time(x.clock.Elapsed()) }

// ServeHTTP implements http.Handler.
func (x *Exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if x.clock.Answers(w, r) {
		return
	}
	if r.URL.Path != Path {
		host.Answer(w, http.StatusNotFound, host.Failure("no such path: requests go to "+Path))
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		host.Answer(w, http.StatusMethodNotAllowed, host.Failure("GET or POST, not "+r.Method))
		return
	}
	if !x.work.Enter() {
		host.Answer(w, http.StatusServiceUnavailable, host.Failure("the server is closing"))
		return
	}
	defer x.work.Leave()
	q, status, err := x.read(w, r)
	if status == 0 {
		status, err = x.handle(q, err)
	} else {
		x.mu.Lock()
		x.malformed++
		x.mu.Unlock()
	}
	if err != nil {
		host.Answer(w, status, host.Failure(err.Error()))
		return
	}
	host.Answer(w, status, map[string]any{"status": "OK", "req_id": q.id()})
}

// question has the parameters of a request.
type question struct{ key, nonce, reqID string }

// read returns the parameters, or an error if one of them is missing or malformed. A status other
// than 0 means that the request as a whole cannot be read.
func (x *Exchange) read(w http.ResponseWriter, r *http.Request) (q question, status int, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, 0, fmt.Errorf("query: %w", err)
	}
	// r.ParseForm would ignore the body of a GET, which some clients send.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return q, http.StatusRequestEntityTooLarge, fmt.Errorf("body: more than %d bytes", large.Limit)
		}
		return q, http.StatusBadRequest, fmt.Errorf("body: %w", err)
	}
	form := url.Values{}
	if len(body) > 0 {
		const want = "application/x-www-form-urlencoded"
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != want {
			return q, http.StatusUnsupportedMediaType,
				fmt.Errorf("body: want %s, not %.100q", want, r.Header.Get("Content-Type"))
		}
		if form, err = url.ParseQuery(string(body)); err != nil {
			return q, 0, fmt.Errorf("body: %w", err)
		}
	}
	get := func(name string) string {
		if form.Has(name) {
			return form.Get(name)
		}
		return query.Get(name)
	}
	q = question{key: get("api_key"), nonce: get("nonce"), reqID: get("req_id")}
	noNonce := q.nonce == "" && !x.config.AnyNonce
	switch {
	case q.key == "" && noNonce:
		return q, 0, errors.New("parameters api_key and nonce are missing: expected them in the query, or as a form in the " +
			"body")
	case q.key == "":
		return q, 0, errors.New("parameter api_key is missing")
	case noNonce:
		return q, 0, errors.New("parameter nonce is missing")
	case strings.Trim(q.nonce, "0123456789") != "":
		return q, 0, fmt.Errorf("parameter nonce: %.50q is not a whole number", q.nonce)
	}
	return q, 0, nil
}

var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// id returns req_id as JSON: null if there was none.
func (q question) id() any {
	switch {
	case q.reqID == "":
		return nil
	case integer.MatchString(q.reqID):
		return json.RawMessage(q.reqID)
	}
	return q.reqID
}

// handle takes the request through latency, check and latency. It returns the status, and an error
// unless the status is 200.
func (x *Exchange) handle(q question, malformed error) (int, error) {
	key, known := x.numbers[q.key]
	if !known {
		key = -1
	}
	x.mu.Lock()
	rec := Record{Key: key, Nonce: q.nonce, Received: x.now(), Checked: -1, Answered: -1}
	rec.Before, rec.After = x.config.Before.Draw(x.rng), x.config.After.Draw(x.rng)
	if malformed == nil {
		rec.n = x.received
		x.received++
		x.put(rec)
	}
	x.mu.Unlock()

	if !x.work.Wait(rec.Before) {
		x.mu.Lock()
		x.dropped++
		x.mu.Unlock()
		return http.StatusServiceUnavailable, errors.New("the server is closing")
	}
	status, err := x.check(q, &rec, malformed)
	x.log.Flush() // Close returns its error
	x.work.Wait(rec.After)
	if malformed == nil {
		x.mu.Lock()
		rec.Answered = x.now()
		x.put(rec)
		x.mu.Unlock()
	}
	return status, err
}

func (x *Exchange) check(q question, rec *Record, malformed error) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	rec.Checked = x.now()
	status, verdict := http.StatusBadRequest, "malformed"
	if malformed != nil {
		x.malformed++
	} else {
		rec.Verdict = x.rule.ArriveDigits(rec.Checked, rec.Key, q.nonce)
		x.judge.Hear(rule.Arrival{At: rec.Checked, Key: rec.Key, Digits: q.nonce, Verdict: rec.Verdict, Before: rec.Before,
			After: rec.After})
		x.put(*rec)
		status, verdict = rec.Verdict.Status(), rec.Verdict.String()
	}
	if x.log.To != nil {
		line := LogLine{int64(rec.Received), int64(rec.Checked), int64(rec.Before), int64(rec.After), "", q.nonce, q.reqID,
			verdict, status, x.clock.Base().Add(time.Duration(rec.Checked)).UTC()}
		if rec.Key >= 0 {
			line.Key = x.config.Keys[rec.Key]
		}
		x.log.Add(line)
	}
	if malformed != nil {
		return status, malformed
	}
	switch rec.Verdict {
	case rule.BadNonce:
		return status, fmt.Errorf("bad nonce: %.50s is not above the last one", q.nonce)
	case rule.Limited:
		c := x.rule.Config()
		return status, fmt.Errorf("rate limit exceeded: %d requests per %v", c.Limit, c.Window)
	case rule.Banned:
		return status, errors.New("api_key is banned")
	case rule.UnknownKey:
		return status, errors.New("unknown api_key")
	}
	return status, nil
}

// put stores the record, unless a later one has taken its place. The lock is held.
func (x *Exchange) put(rec Record) {
	if x.config.Keep == 0 {
		return
	}
	i := int(rec.n % uint64(x.config.Keep))
	if i == len(x.records) {
		x.records = append(x.records, rec)
	} else if x.records[i].n <= rec.n {
		x.records[i] = rec
	}
}

// Records returns a copy of the latest requests, in order of receipt.
func (x *Exchange) Records() []Record {
	x.mu.Lock()
	defer x.mu.Unlock()
	records := slices.Clone(x.records)
	if n := len(records); n > 0 { // the oldest comes first
		i := int(x.received % uint64(n))
		if x.received <= uint64(n) {
			i = 0
		}
		records = append(records[i:], records[:i]...)
	}
	return records
}

// Legs returns, for each key, the real latencies there and back of the requests that used a slot.
// It uses the requests in Records. ceiling.Config.Most computes a ceiling from Legs.
func (x *Exchange) Legs() [][]ceiling.Leg {
	legs := make([][]ceiling.Leg, len(x.config.Keys))
	for _, r := range x.Records() {
		if r.Answered >= 0 && r.Verdict.Counted() {
			legs[r.Key] = append(legs[r.Key], ceiling.Leg{Forward: r.Checked.Sub(r.Received), Back: r.Answered.Sub(r.Checked)})
		}
	}
	return legs
}

// Report sums up the requests so far.
func (x *Exchange) Report() Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Report{
		Keys:      slices.Clone(x.config.Keys),
		Judge:     x.judge.Report(),
		Malformed: x.malformed,
		Dropped:   x.dropped,
		Received:  int(x.received),
		Kept:      len(x.records),
		Elapsed:   x.clock.Elapsed(),
	}
}
