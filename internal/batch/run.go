package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/verdict"
)

// What New, Check, Open and Send fail with, beside the errors of the system.
var (
	// ErrConfig: the flags or the environment make no sense.
	ErrConfig = errors.New("bad configuration")
	// ErrInput: there is something wrong with the input. With ErrUnsent beside it nothing was sent.
	ErrInput  = errors.New("invalid input")
	ErrUnsent = errors.New("nothing was sent")
	// ErrOutput: results, dead letters or the journal could not be written. Running again resumes.
	ErrOutput = errors.New("cannot write")
	// ErrHost: a host is not what its URL says, by its name or its certificate, and has never answered. Nothing is lost.
	ErrHost = errors.New("a host is not there")
	// ErrOutage: nothing has arrived at a host for Config.MaxOutage. Running again resumes.
	ErrOutage = paceline.ErrOutage
)

// Run sends the requests of one input. Check, Open, Send and Close are called in this order; Drain and Progress at any
// time after Open.
type Run struct {
	c         Config
	sender    *sender
	policy    verdict.Policy
	numbered  bool // requests carry nonces
	ban       map[int]bool
	keepNames map[string]bool
	epoch     time.Time
	limiters  [][]limit.Limiter // of each key, one per limit
	pool      *paceline.Pool
	out, dead *lineFile
	files     []written // to read back: out and dead if they are files
	journal   *journal  // nil without a file of results
	history   *history
	peeked    map[string]peeked // nil: Peek was not called
	rooms     []int64           // of each limit, what the buckets of all keys held at the epoch
	keep      time.Duration     // how far back the journal goes
	room      chan struct{}     // one for each answer that is on its way to the results
	kick      chan struct{}     // wakes the syncer
	planning  planning

	mu        sync.Mutex
	ledger    ledger
	checked   bool // the first pass counted the input
	totals    Totals
	bytes     int64                // of requests that are held
	freed     *sync.Cond           // when bytes, stopped, feeding or reading changed
	remaining limit.Cost           // that is still to go, if checked
	spent     limit.Cost           // of the sends
	busy      time.Duration        // that answers took, of all sends
	told      map[string]time.Time // until when keys were said to be told to stay away
	reasons   map[string]int       // why requests are dead
	first     time.Time            // send
	final     time.Time            // answer
	stopped   bool                 // nothing more is read
	feeding   bool                 // the feeder is there
	reading   bool                 // and waits for input
	banned    []string
	failure   error
	inputErr  error
	hosts     hosts
	wrong     error // an ErrHost
}

// Totals count what became of the input.
type Totals struct {
	Input       int `json:"input"`            // valid requests read
	Invalid     int `json:"invalid"`          // lines that were not
	SkippedDone int `json:"skipped_done"`     // ended in a run before
	SkippedDead int `json:"skipped_dead"`     // dead letters of a run before
	Offered     int `json:"offered"`          // the rest, as far as it was read
	Sends       int `json:"sends"`            // attempts that were written
	Done        int `json:"done"`             //
	Rejected    int `json:"rejected"`         // answers 429
	Expired     int `json:"expired"`          //
	Dead        int `json:"dead"`             //
	Left        int `json:"left"`             // not ended: running again resumes
	Repeats     int `json:"possible_repeats"` //
	Unwritten   int `json:"unwritten"`        // answered, but the result could not be written; among Left
	Lost        int `json:"lost"`             // what none of these accounts for

	InputTokens  int64 `json:"input_tokens,omitempty"`  // of Done, as the answers say
	OutputTokens int64 `json:"output_tokens,omitempty"` //
	Overruns     int   `json:"overruns,omitempty"`      // answers that had more output than was reserved

	Cost    int64   `json:"cost"`                         // of Sends
	Seconds float64 `json:"seconds"`                      // from the first send to the last answer
	Rate    float64 `json:"rate"`                         // Done per second
	Ceiling float64 `json:"ceiling,omitempty"`            // cost per second that the limits allow
	Percent float64 `json:"percent_of_ceiling,omitempty"` // of the most that they allow in so many seconds
}

// written is a file that this run appends to, and how long it was before.
type written struct {
	*os.File
	before int64
	form   form
}

// job is a request on its way.
type job struct {
	r      *Request
	hop    hop
	size   int64
	repeat bool // it may have been served before
	doubt  bool // an attempt had no whole answer
	unsure bool // after a crash it would not be known whether the latest attempt was served
	room   bool // it holds a place in Run.room
	key    string
	n      int64 // of the journal; 0: its answer is written
	at     mono.Time
	res    response
	result limit.Result
	actual *limit.Cost // nil: as admitted
	hold   time.Time
}

// New checks the configuration.
func New(c Config) (*Run, error) {
	c.defaults()
	fail := func(format string, args ...any) (*Run, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	for _, k := range c.Keys {
		if k.Secret == "" && (Uses(c.Header, "key") || Uses(c.Query, "key")) {
			return fail("a template has {key}, but there are no keys: name their environment variables with --key-env")
		}
	}
	switch {
	case c.Concurrency < 0, c.Attempts < 0, c.Timeout < 0, c.Redirects < 0, c.Queue < 0, c.MaxResponse < 0, c.Gap < 0, c.NonceUnit < 0:
		return fail("a negative number where none can be")
	}
	r := &Run{c: c, ledger: ledger{}, ban: map[int]bool{}, keepNames: map[string]bool{}, kick: make(chan struct{}, 1),
		told: map[string]time.Time{}, reasons: map[string]int{}, hosts: newHosts()}
	r.freed = sync.NewCond(&r.mu)
	r.planning.models = map[string]*PlanModel{}
	r.room = make(chan struct{}, 2*c.Concurrency)
	for _, s := range c.BanStatus {
		r.ban[s] = true
	}
	for _, n := range c.KeepHeaders {
		r.keepNames[strings.ToLower(n)] = true
	}
	for range c.Keys {
		each, err := r.newLimiters()
		if err != nil {
			return fail("%w", err)
		}
		r.limiters = append(r.limiters, each)
	}
	if err := c.Backoff.Check(); err != nil {
		return fail("%w", err)
	}
	r.sender, r.policy = newSender(&r.c), r.c.newPolicy()
	r.numbered = Uses(c.Header, "nonce") || Uses(c.Query, "nonce")
	return r, nil
}

func (r *Run) newLimiters() ([]limit.Limiter, error) {
	var all []limit.Limiter
	for _, l := range r.c.Limits {
		made, err := l.limiter(r.c.Arrivals)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

// add adds by times a cost.
func add(to *limit.Cost, c limit.Cost, by int64) {
	for u := range to {
		to[u] += by * c[u]
	}
}

// maxListed is how many bad lines are listed.
const maxListed = 10

// Check reads the whole input once, without sending: it counts the requests and lists what is wrong, at most ten lines
// of it through Notice. Unless invalid lines are to be skipped it then fails with ErrInput.
func (r *Run) Check(name string, in io.Reader) error {
	reader := NewReaderOf(r.c.Format, name, in, r.c.Input)
	reader.pass = checking
	if r.peeked != nil {
		reader.ended = r.hasEnded
	}
	began := time.Now()
	listed := 0
	for {
		q, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = r.unique(name, q)
		}
		if _, invalid := errors.AsType[*InputError](err); invalid {
			r.totals.Invalid++
			if listed++; listed <= maxListed {
				r.c.Notice(err.Error())
			}
			continue
		}
		if err != nil {
			return err
		}
		r.totals.Input++
		add(&r.remaining, q.Cost, 1)
		r.planning.add(r, q)
	}
	if more := listed - maxListed; more > 0 {
		r.c.Notice(fmt.Sprintf("and %d more", more))
	}
	r.checked = true
	p := &r.planning.plan
	p.Lines, p.Bytes, p.ReadingSeconds = reader.line, reader.bytes, time.Since(began).Seconds()
	if r.totals.Invalid > 0 && !r.c.SkipInvalid {
		return fmt.Errorf("%w: %s: %d of %d lines; %w (--skip-invalid sends the others)", ErrInput, name, r.totals.Invalid, r.totals.Invalid+r.totals.Input, ErrUnsent)
	}
	return nil
}

// hasEnded says whether a request ended in a run before and is passed over.
func (r *Run) hasEnded(id string) bool {
	d := digestOf(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.has(d, inOut) || r.ledger.has(d, inDead) && !r.c.RetryDead
}

func (r *Run) unique(name string, q *Request) error {
	d := digestOf(q.ID)
	r.mu.Lock()
	first := r.ledger.line(d, q.Line)
	r.mu.Unlock()
	if first != q.Line {
		return &InputError{name, q.Line, q.Column, fmt.Sprintf("id %q is already on line %d, expected each id once", q.ID, first)}
	}
	return nil
}

// Send reads the input and sends it. It returns nil if everything read has ended or was drained; ErrInput if the input
// could not be read to its end, what was read before being finished; ErrOutput; dispatch.ErrExhausted if every key is
// banned; ErrHost; ErrOutage; or ctx's error.
func (r *Run) Send(ctx context.Context, name string, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	syncing := make(chan struct{})
	synced := make(chan struct{})
	go func() { defer close(synced); r.syncer(syncing) }()
	// It may be stuck in a read that nothing ends when the Pool stops: then it is left behind, and touches nothing.
	r.feeding = true
	go func() {
		r.feed(ctx, name, in)
		r.mu.Lock()
		r.feeding = false
		r.freed.Broadcast()
		r.mu.Unlock()
		r.pool.Close()
	}()
	err := r.pool.Run(ctx)
	close(syncing)
	<-synced
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for r.feeding && !r.reading {
		r.freed.Wait()
	}
	switch {
	case r.failure != nil:
		return fmt.Errorf("%w: %w", ErrOutput, r.failure)
	case r.wrong != nil:
		return r.wrong
	case err != nil:
		return err
	}
	return r.inputErr
}

// Drain sends no more. Send returns when what is in flight has been answered.
func (r *Run) Drain() {
	r.mu.Lock()
	r.stopped = true
	r.freed.Broadcast()
	r.mu.Unlock()
	r.pool.Drain()
}

// fail stops the sending after a write that failed.
func (r *Run) fail(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
	}
	r.mu.Unlock()
	r.Drain()
}

func (r *Run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// isReading notes whether the feeder waits for input. False: the run is over.
func (r *Run) isReading(now bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = now
	r.freed.Broadcast()
	return !r.stopped
}

// heldBytes bounds what the requests read ahead take, whatever their number.
const heldBytes = 256 << 20

func (r *Run) feed(ctx context.Context, name string, in io.Reader) {
	reader := NewReaderOf(r.c.Format, name, in, r.c.Input)
	if r.checked {
		reader.pass = checked
		if r.peeked != nil { // else their cost is among what remains
			reader.ended = r.hasEnded
		}
	}
	for {
		if !r.isReading(true) {
			return
		}
		q, err := reader.Next()
		if !r.isReading(false) || err == io.EOF {
			return
		}
		if err == nil {
			err = r.unique(name, q)
		}
		if err != nil {
			if _, invalid := errors.AsType[*InputError](err); invalid && r.c.SkipInvalid {
				if !r.checked {
					r.mu.Lock()
					r.totals.Invalid++
					r.mu.Unlock()
					r.c.Notice(err.Error())
				}
				continue
			}
			r.mu.Lock()
			r.totals.Invalid++
			r.inputErr = fmt.Errorf("%w: %w; reading stops here, what was read before is finished", ErrInput, err)
			r.mu.Unlock()
			return
		}
		if !r.offer(ctx, q) {
			return
		}
	}
}

// offer hands a request to the Pool, or passes over one that has ended before. False: the run is over.
func (r *Run) offer(ctx context.Context, q *Request) bool {
	j := &job{r: q, hop: firstHop(q), size: int64(len(q.Raw)+len(q.Body)) + 512}
	d := digestOf(q.ID)
	_, j.repeat = r.history.doubts[q.ID]
	r.mu.Lock()
	if !r.checked {
		r.totals.Input++
	}
	switch {
	case r.ledger.has(d, inOut):
		if !r.checked {
			r.totals.SkippedDone++
		}
	case r.ledger.has(d, inDead) && !r.c.RetryDead:
		if !r.checked {
			r.totals.SkippedDead++
		}
	default:
		for r.bytes > 0 && r.bytes+j.size > heldBytes && !r.stopped {
			r.freed.Wait()
		}
		if r.stopped {
			r.mu.Unlock()
			return false
		}
		r.bytes += j.size
		r.totals.Offered++
		r.hosts.note(j.hop.host, named)
		r.mu.Unlock()
		if r.c.HoldUnanswered && j.repeat {
			j.repeat = false
			r.ended(queue.Ended{State: queue.Dead, Request: queue.Request{ID: q.ID, Value: j}, Submitted: r.pool.Now(),
				Reason: "sent by a run before, and never answered: held back (--unanswered hold)"})
			return true
		}
		ttl := q.TTL
		if ttl > 0 {
			ttl -= time.Since(r.epoch)
		} else if !q.At.IsZero() {
			ttl = time.Until(q.At)
		}
		if ttl == 0 && (q.TTL > 0 || !q.At.IsZero()) {
			ttl = -1
		}
		err := r.pool.Submit(ctx, queue.Request{ID: q.ID, Cost: q.Cost, Free: q.Cost == limit.Cost{}, Priority: q.Priority, TTL: ttl, Value: j})
		if err != nil {
			r.mu.Lock()
			r.totals.Offered--
			r.mu.Unlock()
			if !errors.Is(err, paceline.ErrClosed) && ctx.Err() == nil {
				r.fail(err)
			}
			return false
		}
		return true
	}
	add(&r.remaining, q.Cost, -1)
	r.mu.Unlock()
	return true
}

// send makes one attempt: a trace in the journal first, then the request, then what it says about limits.
func (r *Run) send(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
	j := a.Request.Value.(*job)
	returned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
	// Whoever reads the results may be slow. Then no more is sent than can be kept.
	select {
	case r.room <- struct{}{}:
	case <-ctx.Done():
		return returned
	}
	j.room = true
	if r.isStopped() {
		r.release(j)
		return returned
	}
	key := r.c.Keys[a.Key]
	now := time.Now()
	if r.journal != nil {
		line := record{ID: j.r.ID, Attempt: a.Number, Key: key.Name, Nonce: a.Nonce}
		line.setCost(j.r.Cost)
		n, err := r.journal.send(line, now)
		if err != nil {
			r.release(j)
			r.fail(err)
			return returned
		}
		j.n = n
		r.wakeSyncer()
	}
	if j.doubt {
		j.repeat = true
	}
	j.key, j.at = key.Name, a.At
	went := j.hop.host // before a redirect
	j.res = r.sender.send(ctx, j.r, j.hop, &values{key: key.Secret, id: j.r.ID, nonce: a.Nonce, attempt: a.Number})
	ans, final := r.judge(j)
	j.result, j.actual = ans.Result, nil
	cost := j.r.Cost
	if ans.Metered {
		j.actual, cost = &ans.Actual, ans.Actual
	}

	r.mu.Lock()
	if j.res.written {
		if r.first.IsZero() {
			r.first = j.res.began
		}
		r.final = j.res.ended
		r.totals.Sends++
		r.busy += j.res.ended.Sub(j.res.began)
		r.totals.Cost += cost[limit.Requests]
		add(&r.spent, cost, 1)
	}
	if j.res.status != 0 {
		r.hosts.note(went, answered)
	}
	if j.res.status == http.StatusTooManyRequests {
		r.totals.Rejected++
	}
	r.mu.Unlock()
	if ans.Result == limit.Limited || ans.Misordered {
		r.tellRetreats()
	}
	if ans.RetryAfter > 0 {
		j.hold = j.res.ended.Add(ans.RetryAfter)
		r.tellHold(key.Name, j.hold, ans.Reason)
	} else {
		j.hold = time.Time{}
	}
	if !final {
		if err := r.answered(j); err != nil {
			r.fail(err)
		}
		r.release(j)
	}
	return ans
}

// mostReasons bounds the memory for reasons that all differ.
const mostReasons = 100

// tellHold tells of a wait that looks like a hang.
func (r *Run) tellHold(key string, until time.Time, reason string) {
	const long, more = 30 * time.Second, 10 * time.Second
	d := time.Until(until)
	if d < long {
		return
	}
	r.mu.Lock()
	news := until.After(r.told[key].Add(more))
	if news {
		r.told[key] = until
	}
	r.mu.Unlock()
	if news {
		r.c.Notice(fmt.Sprintf("key %s is told to stay away for %v, until %s: %s", key, d.Round(time.Second), until.Format("Mon 2 Jan 15:04:05"), reason))
	}
}

// tellRetreats tells, once, of an opt-in that proved wrong: that of the refusals before this one.
func (r *Run) tellRetreats() {
	for _, k := range r.pool.Keys() {
		for _, retreat := range k.Retreats {
			at := r.epoch.Add(time.Duration(retreat.Until))
			what := fmt.Sprintf("%s: %s of %s", k.Name, retreat.Option, retreat.Limit)
			r.mu.Lock()
			news := at.After(r.told[what])
			r.told[what] = at
			r.mu.Unlock()
			if news {
				r.c.Notice(fmt.Sprintf("key %s is wrong: requests were refused that keep to it; it is not relied on until %s", what, at.Format("15:04:05")))
			}
		}
	}
}

// DeadBecause says where the dead letters of this run are and what most of them are dead of; empty: there are none.
func (r *Run) DeadBecause() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := ""
	for reason, n := range r.reasons {
		if n > r.reasons[most] || n == r.reasons[most] && reason < most {
			most = reason
		}
	}
	if most == "" {
		return ""
	}
	where := ""
	if r.dead != nil && r.dead != r.out {
		where = " in " + r.dead.name
	}
	return fmt.Sprintf("%d dead letters%s, %d of them because: %s", r.totals.Dead, where, r.reasons[most], most)
}

// used adds up what an answer says that it used.
func (r *Run) used(u tokens.Usage, overrun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.InputTokens += u.Input
	r.totals.OutputTokens += u.Output
	if overrun {
		r.totals.Overruns++
	}
}

// answered writes the end of a job's latest send into the journal.
func (r *Run) answered(j *job) error {
	if r.journal == nil || j.n == 0 {
		return nil
	}
	counts := j.res.ended
	if j.result == limit.Unknown {
		counts = counts.Add(late)
	}
	doubt := ""
	if j.unsure {
		doubt = j.r.ID
	}
	err := r.journal.answer(j.n, j.result, counts, j.hold, doubt, j.actual)
	j.n = 0
	return err
}

func (r *Run) release(j *job) {
	if j.room {
		j.room = false
		<-r.room
	}
}

// ended writes what became of a request. It is called by the Pool, one at a time, and by the feeder.
func (r *Run) ended(e queue.Ended) {
	j := e.Request.Value.(*job)
	defer r.release(j)
	out, line := r.out, Result{
		ID: j.r.ID, State: e.State.String(), Attempts: e.Attempts, At: stamp(time.Now()), PossibleRepeat: j.repeat, Key: j.key,
		Status: j.res.status,
	}
	if !j.res.ended.IsZero() {
		line.WaitedMS = milliseconds(j.at.Sub(e.Submitted))
		line.LatencyMS = milliseconds(j.res.ended.Sub(j.res.began))
		line.Headers = interesting(j.res.header, r.keepNames, r.sender.redact)
		if j.res.status != 0 {
			line.setBody(j.res.body, j.res.cut, r.sender.redact)
		}
		if j.hop.count > 0 {
			line.Location = r.sender.redact.answer(j.hop.url.String())
		}
	}
	switch e.State {
	case queue.Done:
		line.At = stamp(j.res.ended)
	case queue.Expired:
		line.Error = "the deadline passed before it could be sent"
		if e.Attempts > 0 {
			line.Error = "the deadline passed: " + e.Reason
		}
	case queue.Dead:
		out, line.Error, line.Request = r.dead, e.Reason, j.r.Raw
	}
	err := out.append(r.c.Format.line(&line))
	if err == nil {
		if err = r.answered(j); err == nil && r.journal != nil {
			r.journal.ended(j.r.ID)
		}
		r.wakeSyncer()
		r.mu.Lock()
		d := digestOf(j.r.ID)
		if e.State == queue.Dead {
			r.totals.Dead++
			if _, known := r.reasons[e.Reason]; known || len(r.reasons) < mostReasons {
				r.reasons[e.Reason]++
			}
			if r.dead != r.out || r.dead.regular {
				r.ledger.mark(d, inDead)
			}
			r.mark(r.dead, d, backDead)
		} else {
			if e.State == queue.Done {
				r.totals.Done++
			} else {
				r.totals.Expired++
			}
			r.mark(r.out, d, backOut)
		}
		if j.repeat {
			r.totals.Repeats++
		}
	} else {
		r.mu.Lock()
		r.totals.Unwritten++
	}
	r.bytes -= j.size
	add(&r.remaining, j.r.Cost, -1)
	r.freed.Broadcast()
	r.mu.Unlock()
	if err != nil {
		r.fail(err)
	}
}

// mark notes what was written where it cannot be read back.
func (r *Run) mark(f *lineFile, d digest, flag uint64) {
	if !f.regular {
		r.ledger.mark(d, flag)
	}
}

// Lines are synced when there are this many, or this long after the first.
const (
	syncLines = 64
	syncEvery = 100 * time.Millisecond
)

func (r *Run) wakeSyncer() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// syncer makes durable in groups, results first. Where a power cut leaves an answer in the journal but not its result,
// the request is in doubt.
func (r *Run) syncer(done chan struct{}) {
	t := time.NewTicker(syncEvery)
	defer t.Stop()
	for {
		atLeast := 1
		select {
		case <-t.C:
		case <-r.kick:
			atLeast = syncLines
		case <-done:
			if err := r.sync(1); err != nil {
				r.fail(err)
			}
			return
		}
		if err := r.sync(atLeast); err != nil {
			r.fail(err)
		}
	}
}

func (r *Run) sync(atLeast int) error {
	err := errors.Join(r.out.sync(atLeast), r.dead.sync(atLeast))
	if r.journal != nil {
		err = errors.Join(err, r.journal.sync(atLeast))
	}
	return err
}

// Close reads the results and the dead letters back, compares them with the input, and closes the files.
func (r *Run) Close() (Totals, error) {
	defer r.sender.base.CloseIdleConnections()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	var err error
	for _, f := range r.files {
		_, rerr := scanResults(f, f.Name(), f.form, func(e entry, end int64) {
			switch {
			case e.State != "dead":
				r.ledger.mark(digestOf(e.ID), backOut)
			case end > f.before || !r.c.RetryDead: // else it was tried again: what counts is what came of that
				r.ledger.mark(digestOf(e.ID), backDead)
			}
		})
		err = errors.Join(err, rerr)
	}
	t := r.totals
	missing := 0
	for _, v := range r.ledger {
		if v>>flagBits != 0 && v&(backOut|backDead) == 0 {
			missing++
		}
	}
	unread := t.Input - t.Offered - t.SkippedDone - t.SkippedDead
	left := r.pool.Counts().Waiting + unread + t.Unwritten
	t.Left, t.Lost = left, missing-left
	if t.Lost < 0 {
		err = errors.Join(err, fmt.Errorf("the counts do not add up: %d requests have no end state, but %d are known to be left", missing, left))
		t.Lost = 0
	}
	if t.Seconds = r.final.Sub(r.first).Seconds(); t.Seconds > 0.001 {
		t.Rate = float64(t.Done) / t.Seconds
		t.Ceiling = r.ceiling()
		t.Percent = r.percent(r.final.Sub(r.first), false)
	}
	return t, errors.Join(err, r.closeFiles())
}

func (r *Run) closeFiles() error {
	var err error
	if r.journal != nil {
		err = errors.Join(err, r.journal.close())
	}
	if r.out != nil {
		err = errors.Join(err, r.out.close())
	}
	if r.dead != nil && r.dead != r.out {
		err = errors.Join(err, r.dead.close())
	}
	return err
}
