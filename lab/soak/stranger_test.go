package soak

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/coded"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// perSecond is what the stranger allows each key in any second. Clients know it.
	perSecond = 40
	// crossing is how long a request may be under way that left before its client had read a
	// refusal. A machine that is busy delays it.
	crossing = time.Second
	// refusesOne, failsOne and partsOne: one request in so many begins a refusal, fails although it
	// was served, or is served in part.
	refusesOne, failsOne, partsOne = 400, 60, 200
)

// Counts is what the stranger did with the requests of one door.
type Counts struct {
	Arrived int
	Served  int // whole or in part
	Parts   int // served in part
	Failed  int // served, and then a failure instead of the answer
	Said    int // refusals with a time
	Unsaid  int // refusals without one
	Coded   int // answers in a content coding
	// Over is the requests above the limit, and Early those that came before the time that a
	// refusal had said. Both are 0 where the client keeps its promises.
	Over  int
	Early int
}

// stranger is a server as others have it. It counts strictly, serves in part, refuses within 200
// and in words, compresses, and fails after it has served.
type stranger struct {
	began time.Time

	mu    sync.Mutex
	rng   *rand.Rand
	doors map[string]*door // by the key
}

type door struct {
	secret   string
	window   rule.Amendable
	counts   Counts
	executed map[string]int       // how often each request was served, by its id
	said     time.Time            // when the last refusal began
	read     map[string]time.Time // when each process was refused first since
	until    time.Time            // until when it holds
	form     refusal
	examples []string // of what went wrong, a few
}

func newStranger(seed uint64) *stranger {
	return &stranger{began: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), doors: map[string]*door{}}
}

// open makes a door, which has a key of its own.
func (s *stranger) open(key string) (*door, error) {
	window, err := rule.NewRolling(rule.RollingConfig{Limit: perSecond, Window: time.Second})
	d := &door{secret: key, window: window, executed: map[string]int{}, read: map[string]time.Time{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors[key] = d
	return d, err
}

// order is the body of a request. Both parts of a batch are in one.
type order struct {
	ID string `json:"id"`
}

// decision is what becomes of one request.
type decision struct {
	refused *refusal
	left    time.Duration // of the refusal; 0: it does not say
	part    bool
	fails   int // the kind of failure; 0: none
	coding  *coded.Coding
	echo    string
	when    time.Time
}

func (s *stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&o); err != nil || o.ID == "" {
		http.Error(w, "expected a body {\"id\": …}", http.StatusBadRequest)
		return
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	d := s.doors[key]
	if d == nil {
		s.mu.Unlock()
		http.Error(w, "no such key", http.StatusUnauthorized)
		return
	}
	x := s.decide(d, o.ID, r.Header.Get(fieldProcess), r.Header.Get("Accept-Encoding"))
	s.mu.Unlock()
	x.answer(w, r, o.ID)
}

// decide judges a request. The lock is held.
func (s *stranger) decide(d *door, id, process, accepts string) (x decision) {
	now := time.Now()
	c := &d.counts
	c.Arrived++
	x.when = now
	if x.coding = s.coding(accepts); x.coding != nil {
		c.Coded++
	}
	if s.rng.IntN(20) == 0 {
		x.echo = echoOf(s.rng, d.secret)
	}
	switch {
	case now.Before(d.until):
		if first := d.refused(process, now); now.Sub(first) > crossing && !d.form.silent {
			c.Early++
			d.example("%s came %v before the time that %q had said", id, d.until.Sub(now).Round(time.Millisecond), d.form.name)
		}
		return s.refuse(d, x, now)
	case !d.window.Arrive(mono.Time(now.Sub(s.began)), 1):
		c.Over++
		d.example("%s is above the limit", id)
		x.refused, x.left = &refusals[0], time.Second
		return x
	case s.rng.IntN(refusesOne) == 0:
		d.form, d.said = refusals[s.rng.IntN(len(refusals))], now
		d.until = now.Add(time.Duration(2+s.rng.IntN(3)) * time.Second)
		if d.form.clock {
			d.until = d.until.Truncate(time.Second)
		}
		d.refused(process, now)
		return s.refuse(d, x, now)
	}
	c.Served++
	d.executed[id]++
	switch {
	case s.rng.IntN(failsOne) == 0:
		c.Failed++
		x.fails = 1 + s.rng.IntN(failures)
	case s.rng.IntN(partsOne) == 0:
		c.Parts++
		x.part = true
		d.form, d.said = partly, now
		d.until = now.Add(2 * time.Second)
		d.refused(process, now)
	}
	return x
}

// fieldProcess names the process of a request, where a door has several: what one of them reads,
// the others do not know.
const fieldProcess = "Soak-Process"

// refused returns when a process was refused first since the refusal began, which may be now.
func (d *door) refused(process string, now time.Time) time.Time {
	if d.read[process].Before(d.said) {
		d.read[process] = now
	}
	return d.read[process]
}

// refuse makes a refusal that lasts as long as the one that has begun.
func (s *stranger) refuse(d *door, x decision, now time.Time) decision {
	x.refused, x.left = &d.form, d.until.Sub(now)
	if d.form.silent {
		d.counts.Unsaid++
	} else {
		d.counts.Said++
	}
	return x
}

const examples = 5

func (d *door) example(format string, args ...any) {
	if len(d.examples) < examples {
		d.examples = append(d.examples, fmt.Sprintf(format, args...))
	}
}

// coding chooses one of those that the client accepts, most often.
func (s *stranger) coding(accepts string) *coded.Coding {
	var able []*coded.Coding
	for i := range coded.All {
		all := strings.Split(coded.All[i].Field, ", ")
		if !slices.ContainsFunc(all, func(one string) bool { return !strings.Contains(accepts, one) }) {
			able = append(able, &coded.All[i])
		}
	}
	if len(able) == 0 || s.rng.IntN(5) == 0 {
		return nil
	}
	return able[s.rng.IntN(len(able))]
}

// echoOf repeats a key as servers do in their errors and logs.
func echoOf(rng *rand.Rand, secret string) string {
	switch rng.IntN(3) {
	case 0:
		return "Bearer " + secret
	case 1:
		return base64.StdEncoding.EncodeToString([]byte(secret))
	}
	return strings.ReplaceAll(secret, "/", `\/`)
}

// failures are the ways in which an answer fails that was served: a status of a gateway, a
// connection that is cut before the answer, and one that is cut within it.
const failures = 5

func (x *decision) answer(w http.ResponseWriter, r *http.Request, id string) {
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { x.write(w, id) }))
	if x.coding != nil {
		h = x.coding.Handler(h)
	}
	switch x.fails {
	case 0:
		h.ServeHTTP(w, r)
	case 1, 2, 3:
		status := []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout}[x.fails-1]
		http.Error(w, "the answer was lost on its way", status)
	case 4:
		hijack(w, "")
	default:
		hijack(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"id\":\""+id)
	}
}

// hijack writes the beginning of an answer and closes the connection.
func hijack(w http.ResponseWriter, begins string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client is gone
	}
	_, _ = io.WriteString(conn, begins)
	_ = conn.Close()
}

func (x *decision) write(w http.ResponseWriter, id string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	switch {
	case x.refused != nil:
		x.refused.write(w, x.when, x.left, x.echo)
	case x.part:
		_ = json.NewEncoder(w).Encode(map[string]any{"responses": []any{
			map[string]any{"id": "1", "status": http.StatusCreated, "body": map[string]string{"of": id, "echo": x.echo}},
			map[string]any{"id": "2", "status": http.StatusTooManyRequests, "headers": map[string]string{"Retry-After": "2"},
				"body": map[string]any{"error": map[string]string{"code": "TooManyRequests"}}},
		}})
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{"id": id, "result": "made", "echo": x.echo})
	}
}

// refusal is a form in which servers refuse.
type refusal struct {
	name   string
	status int
	field  func(now time.Time, seconds int) (name, value string)
	body   func(now time.Time, seconds int) string
	silent bool // it says no time
	clock  bool // it says an instant in whole seconds
	events bool // it is the first event of a stream
}

// partly is the refusal within an answer that is served in part.
var partly = refusal{name: "a part of a batch"}

func wording(format string) func(time.Time, int) string {
	return func(_ time.Time, seconds int) string { return fmt.Sprintf(format, seconds) }
}

func retryAfter(format string) func(time.Time, int) (string, string) {
	return func(_ time.Time, seconds int) (string, string) {
		return "Retry-After", strings.ReplaceAll(format, "N", strconv.Itoa(seconds))
	}
}

const within200 = `{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"Rate limit exceeded, please try again in %ds"}}`

var refusals = []refusal{
	{name: "Retry-After", status: 429, field: retryAfter("N")},
	{name: "Retry-After with a unit", status: 429, field: retryAfter("N seconds")},
	{name: "Retry-After twice in one", status: 429, field: retryAfter("N, N")},
	{name: "a date of +0000", status: 429, clock: true, field: func(now time.Time, seconds int) (string, string) {
		return "Retry-After", now.UTC().Add(time.Duration(seconds) * time.Second).Truncate(time.Second).Format(time.RFC1123Z)
	}},
	{name: "words of JSON", status: 429,
		body: wording(`{"error":{"message":"Too many requests. Try again in %d seconds."}}`)},
	{name: "words in brackets", status: 429, body: wording(`{"message":"quota exceeded (reset after 0m %ds)"}`)},
	{name: "words of a busy server", status: 503, body: wording(`{"error":"rate limit reached: retry after %d seconds"}`)},
	{name: "an instant", status: 429, clock: true, body: func(now time.Time, seconds int) string {
		at := now.UTC().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
		return `{"error":{"message":"Rate limit reached, will reset at ` + at.Format("01-02 15:04:05") + ` UTC"}}`
	}},
	{name: "within 200", status: 200, body: wording(within200)},
	{name: "the first event", status: 200, events: true, body: wording("data: " + within200 + "\n\n")},
	{name: "nothing but 429", status: 429, silent: true},
}

func (f *refusal) write(w http.ResponseWriter, now time.Time, left time.Duration, echo string) {
	if f.name == partly.name {
		f = &refusals[0]
	}
	seconds := int((left + time.Second - 1) / time.Second)
	if f.field != nil {
		name, value := f.field(now, seconds)
		w.Header().Set(name, value)
	}
	if f.events {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(cmp.Or(f.status, http.StatusTooManyRequests))
	if f.body != nil {
		_, _ = io.WriteString(w, f.body(now, seconds))
	} else if !f.silent {
		_, _ = fmt.Fprintf(w, `{"error":{"message":"refused","echo":%q}}`, echo)
	}
}

// The server notices a client without patience, and one that ignores the limit.
func TestStrangerNotices(t *testing.T) {
	s := newStranger(1)
	server := httptest.NewServer(s)
	defer server.Close()
	d, err := s.open("key")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"id":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer key")
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil { // some answers are cut
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	for range 3 * perSecond {
		ask()
	}
	c, _ := s.countsOf(d)
	if c.Over == 0 && c.Said == 0 {
		t.Errorf("%+v: nothing above the limit", c)
	}
	s.mu.Lock()
	d.form, d.said, d.until = refusals[0], time.Now().Add(-2*crossing), time.Now().Add(time.Minute)
	d.read[""] = d.said
	s.mu.Unlock()
	ask()
	if c, examples := s.countsOf(d); c.Early != 1 || len(examples) == 0 {
		t.Errorf("%+v, %q: it came early", c, examples)
	}
}
