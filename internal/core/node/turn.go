package node

import (
	"errors"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// ErrWait means that a node waits for turns of others: it does not know the ledger's time yet, or
// the book may be an old copy. Nothing is to be put.
var ErrWait = errors.New("share: the store's clock is not known yet")

// Change changes the limit for all nodes, such as by SetLimit. Turns call it until one is known to
// be put.
type Change func(l limit.Limiter, now mono.Time) error

// pending is a turn that was read and may or may not be put.
type pending struct {
	*Node
	book     *Book
	limiter  limit.Limiter
	now      mono.Time // in the ledger
	began    mono.Time // the call's beginning, by the node's clock
	bounds   bounds
	mine     Entry
	others   []Entry
	told     int // the number of answers that it reports
	changed  int
	granted  []part
	keeps    limit.Cost // the cost that it holds, without the reported answers
	goes     bool       // it leaves the book
	wantsNow bool
	number   uint64      // of the latest request in limiter
	held     *limit.Sent // the grants in the pool that yield
	kept     *limit.Sent // those that do not
	theirs   *limit.Sent // those of other nodes that do not
	shift    time.Duration
	heirs    int  // nodes that want more, including this one
	parted   bool // some nodes sent by their parts before it
	came     uint64
	// holdsBack means that mayTell alone prevents reports of some answers.
	holdsBack bool
	why       error // why nothing is granted for a while, if this turn found that out
	steady    bool
	whole     limit.Cost // of each unit; 0: it is not limited
	was       []byte     // the store's blob, if that was a book
}

// Begin notes that a turn begins. Then call Read with each reading of the store, and End when the
// store's call returns.
func (n *Node) Begin(p mono.Time) {
	n.turn++
	n.last = max(p, n.last)
	n.pace.elapsed = n.last.Sub(max(n.began, n.last.Add(-time.Minute)))
	n.began = n.last
	n.places.age(n.last)
	n.pending = nil
}

// Read makes a turn of a reading that was taken between began and read. It returns the blob to put.
// After an error nothing is to be put.
func (n *Node) Read(began, read mono.Time, r Reading) ([]byte, error) {
	n.pending = nil
	b, why, err := n.decode(&r, read)
	if err != nil {
		return nil, err
	}
	t, err := n.read(b, began, read, &r, why == errRecalled)
	var damaged *damagedState
	if errors.As(err, &damaged) {
		why = err
		t, err = n.read(n.blank(&r, n.bounds.era, b), began, read, &r, false)
	}
	if err != nil {
		return nil, err
	}
	switch why {
	case nil:
		t.was = r.Blob
	case errRecalled:
	default:
		t.why = why
	}
	n.pending = t
	return t.book.encode(), nil
}

type damagedState struct{ error }

func (e *damagedState) Error() string { return "share: the blob is damaged: " + e.error.Error() }

// decode returns the book of a reading. If the store lost it, decode returns this node's knowledge
// of it or a new book, and the reason.
func (n *Node) decode(r *Reading, read mono.Time) (b *Book, why, err error) {
	if len(r.Blob) == 0 {
		if n.recalls(nil, r, read) {
			return n.recalled(nil, r, read), errRecalled, nil
		}
		return n.blank(r, n.bounds.era, nil), ErrNew, nil
	}
	b, err = Decode(r.Blob)
	var version *VersionError
	switch {
	case errors.As(err, &version):
		return nil, nil, err
	case err != nil:
		return n.blank(r, n.bounds.era, nil), err, nil
	case b.Configuration == n.says && n.recalls(b, r, read):
		return n.recalled(b, r, read), errRecalled, nil
	case b.Incarnation != r.Incarnation:
		return n.blank(r, b.Era, b), ErrForgotten, nil
	case n.wentBack(b, r, read):
		blank := n.blank(r, b.Era, b)
		blank.WentBack = true
		return blank, ErrWentBack, nil
	case b.Configuration != n.says:
		return nil, nil, &ConfigurationError{n.says, b.Configuration}
	}
	n.latest = b.stage()
	return b, nil, nil
}

// blank returns a book in which nothing is granted until no earlier grant counts, whoever got it.
// was is the book before, or nil.
func (n *Node) blank(r *Reading, era uint64, was *Book) *Book {
	now := mono.Time(r.Wall)
	b := &Book{Incarnation: r.Incarnation, Configuration: n.says, Blank: true, Era: n.nextEra(era, r),
		Shift: time.Duration(r.Wall - r.Clock), Latest: now}
	b.Life, b.Lives = n.newLife(b, r), lineage(was, n.knows)
	b.Quiet = now.Add(n.config.TTL + n.config.Late).Add(limit.Span(n.config.New()))
	return b
}

// Rested returns the blob of a store in which no grant counts and no node is. It is for limits of which
// somebody knows that nothing was sent, and for simulations.
func Rested(c Config, r *Reading) []byte {
	b := New(c).blank(r, 0, nil)
	b.Quiet, b.Blank = b.Latest, false
	return b.encode()
}

// nextEra makes up the name of an era. No node uses it again.
func (n *Node) nextEra(era uint64, r *Reading) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(n.config.ID) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	for _, v := range []uint64{era, uint64(r.Clock), n.turn} {
		h = (h ^ v) * 1099511628211
		h ^= h >> 29
	}
	return h
}

// locate finds the ledger's time, and corrects the book if the store's clock was set.
func (n *Node) locate(b *Book, began, read mono.Time, r *Reading) (now mono.Time, known bounds, err error) {
	now = mono.Time(r.Clock).Add(b.Shift)
	switch {
	case b.Turn == 0: // the book is new
	case n.bounds.known && n.bounds.era == b.Era:
		known = n.bounds.slacken(b.Slack)
		at, unsure := known.check(began, read, now)
		if at != now || unsure > 0 {
			b.Shift += at.Sub(now)
			b.Slack += unsure
			now, known = at, known.slacken(b.Slack)
		}
	case r.Steady:
	case n.alone(b):
		n.newEra(b, &now, r)
	default:
		s := n.seen
		if s == nil || s.incarnation != r.Incarnation || s.era != b.Era || !s.agrees(began, read, r.Clock) {
			n.seen = &sight{began, read, r.Clock, r.Incarnation, b.Era, b.Turn}
			return 0, known, ErrWait
		}
		if b.Turn < s.turn || b.Turn > s.turn && b.Latest.Add(n.config.TTL) < mono.Time(s.clock).Add(b.Shift) {
			// The store went back in time: no turn since the sight vouches for its clock.
			n.seen = &sight{began, read, r.Clock, r.Incarnation, b.Era, b.Turn}
			return 0, known, ErrWait
		}
		if b.Turn == s.turn {
			// Some node may be there that knows the book, if the store loses it.
			if began.Sub(s.read) < n.config.presence() {
				return 0, known, ErrWait
			}
			n.newEra(b, &now, r)
		}
	}
	return now, known.with(sampled(began, read, now, b)), nil
}

// alone reports whether no other node is in the book.
func (n *Node) alone(b *Book) bool {
	for i := range b.Nodes {
		if b.Nodes[i].ID != n.config.ID {
			return false
		}
	}
	return true
}

// newEra begins an era. No node that knows the time of the last era is there. So the store's clock
// is believed, unless it was set back.
func (n *Node) newEra(b *Book, now *mono.Time, r *Reading) {
	if *now < b.Latest {
		b.Shift += b.Latest.Sub(*now)
		*now = b.Latest
	}
	b.Era, b.Slack = n.nextEra(b.Era, r), 0
}

// agrees reports whether nobody can have set the store's clock between two readings.
func (s *sight) agrees(began, read mono.Time, clock int64) bool {
	d := time.Duration(clock - s.clock)
	least, most := began.Sub(s.read), read.Sub(s.began)
	return d >= least-least/drift-1 && d <= most+most/drift+1
}

// read is Read with a book. recalled means that the store had lost it.
func (n *Node) read(b *Book, began, read mono.Time, r *Reading, recalled bool) (*pending, error) {
	now, known, err := n.locate(b, began, read, r)
	if err == nil && recalled {
		err = n.recall(b, now)
	}
	if err == nil && !recalled && n.waitsForOthers(b, now, read, r.Steady) {
		err = ErrWait
	}
	if err == nil {
		err = n.gather(b, now, read)
	}
	if err != nil {
		return nil, err
	}
	t := &pending{Node: n, book: b, now: now, began: began, bounds: known, mine: Entry{ID: n.config.ID}, steady: r.Steady}
	there := false
	t.came = nobody
	t.others = slices.Grow(t.others, len(b.Nodes))
	for i := range b.Nodes {
		if e := &b.Nodes[i]; e.ID == n.config.ID {
			there, t.mine = true, *e
		} else {
			t.others = append(t.others, *e)
		}
	}
	switch {
	case there:
		if t.came = n.came; !n.in {
			t.came = t.mine.At
		}
		n.wasPut(t.mine.Turn, t.mine.At)
		t.leastMost()
		t.returned(read)
	case n.in: // given up, or lost with the book
		n.lapse()
	}
	if b.From != 0 { // its own turn will be the last in the book, which has no report of these
		for i := range n.answers {
			n.answers[i].told = 0
		}
	}
	if err := t.settle(); err != nil {
		return nil, err
	}
	t.endSplit()
	t.divide()
	t.write()
	return t, nil
}

// wasPut drops the answers that were reported in a turn that is known to have been put. That turn
// was turn in of the book at the latest.
func (n *Node) wasPut(turn, in uint64) {
	kept := n.answers[:0]
	var told limit.Cost
	for _, a := range n.answers {
		if a.told == 0 || a.told > turn {
			kept = append(kept, a)
		} else {
			minus(&n.flight, &a.cost)
			plus(&told, &a.cost)
		}
	}
	n.answers = kept
	n.note(in, told)
}

// lapse gives up all grants that were not written.
func (n *Node) lapse() {
	n.in = false
	n.pieces++
	n.pool.parts = nil
	for i := range n.answers {
		n.answers[i].told = 0
	}
}

// settle makes the limiter with all open costs, and settles those with news.
func (t *pending) settle() error {
	t.limiter = t.config.New()
	var open, theirs limit.Cost
	type gone struct {
		sent *limit.Sent
		at   mono.Time
	}
	var dead []gone
	left := t.others[:0]
	for _, e := range t.others {
		if end := t.givenUp(&e); end <= t.now {
			dead = append(dead, gone{t.admit(mono.Min, e.Open), end})
			continue
		}
		plus(&open, &e.Open)
		plus(&theirs, &e.Keeps)
		left = append(left, e)
	}
	t.others = left
	t.told = t.ripe()
	t.keeps = t.flight
	sent := make([]*limit.Sent, t.told)
	for i := range sent {
		minus(&t.keeps, &t.answers[i].cost)
		sent[i] = t.admit(mono.Min, t.answers[i].cost)
	}
	plus(&open, &t.keeps)
	t.trimPool()
	minus(&open, &theirs)
	t.admit(mono.Min, open)
	t.theirs, t.kept = t.admit(mono.Min, theirs), t.admit(mono.Min, t.pool.kind(false))
	t.held = t.admit(mono.Min, t.pool.kind(true))
	if len(t.book.State) > 0 {
		if err := limit.Restore(t.limiter, t.book.State); err != nil {
			return &damagedState{err}
		}
	}
	for _, g := range dead {
		t.limiter.Settle(t.now, g.sent, &limit.Outcome{Result: limit.Failed, ArrivedAgo: ago(t.now, g.at)})
	}
	for i, s := range sent {
		t.limiter.Settle(t.now, s, new(t.outcome(&t.answers[i])))
	}
	for _, f := range t.changes {
		if t.book.From == 0 && f(configured(t.limiter), t.now) == nil {
			t.changed++
		}
	}
	return nil
}

// admit makes a cost count in the turn's limiter.
func (t *pending) admit(now mono.Time, cost limit.Cost) *limit.Sent {
	t.number++
	s := &limit.Sent{At: now, Number: t.number, Cost: cost}
	t.limiter.Admit(s)
	return s
}

// outcome returns the report of an answer: by when its request had arrived, in the ledger's time.
func (t *pending) outcome(a *answer) limit.Outcome {
	o := a.outcome
	_, hi := t.bounds.by(a.at)
	at := a.at.Add(hi)
	switch {
	case o.ArrivedAgo != 0:
		at = at.Add(-o.ArrivedAgo)
	case o.Result == limit.Unknown:
		at = at.Add(t.config.Late)
	}
	o.ArrivedAgo = ago(t.now, t.grained(at))
	o.RTT = 0
	return o
}

// grained rounds an instant up. So arrivals at about one time take one entry of a limiter's memory,
// whichever node reported them.
func (t *pending) grained(at mono.Time) mono.Time {
	grain := mono.Time(t.grain)
	if over := at % grain; over > 0 {
		at += grain - over
	} else {
		at -= over
	}
	return at
}

// ago converts an instant to the form of limit.Outcome, where 0 means none.
func ago(now, at mono.Time) time.Duration {
	if at == now {
		return -1
	}
	return now.Sub(at)
}

// write writes the book.
func (t *pending) write() {
	b := t.book
	t.addLives(b)
	b.Turn++
	b.Blank = b.Blank && t.now < b.Quiet
	b.Latest = max(b.Latest, t.now)
	b.State = limit.AppendState(nil, t.limiter)
	e := &t.mine
	e.Name, e.Turn, e.Splits, e.Weight, e.Least = t.config.Name, t.turn, t.config.Split, uint64(t.config.Weight*1000),
		uint64(t.config.Least*1000)
	e.Brisk = t.began.Sub(t.put) < t.config.TTL/4
	e.At, e.Open = b.Turn, t.keeps
	all := t.pool.sum()
	plus(&e.Open, &all)
	e.Keeps = t.pool.kind(false)
	for i := range t.granted {
		plus(&e.Open, &t.granted[i].cost)
		if !t.granted[i].yields {
			plus(&e.Keeps, &t.granted[i].cost)
		}
	}
	e.Until = t.now.Add(t.config.TTL - t.leavesSooner())
	poll := t.poll(t.heirs)
	t.shift = t.apart(poll)
	e.Next = t.now.Add(poll + t.shift + t.took)
	e.Mean = t.mean()
	t.goes = e.Open == (limit.Cost{}) && !t.wantsNow
	b.Nodes = t.others
	if !t.goes {
		b.Nodes = append(b.Nodes, *e)
	}
}

// End notes how a turn ended. err is nil if it was put, or Read's error. Any other error is the
// store's, and the outcome is unknown.
func (n *Node) End(p mono.Time, err error) {
	n.last = max(p, n.last)
	t := n.pending
	n.pending = nil
	switch {
	case err == nil && t != nil:
		n.commit(t)
		n.pace.put(n.last.Sub(n.began), t.shift, t.heirs-1)
	case errors.Is(err, ErrWait):
		n.pace.waits++
	default:
		n.pace.failed()
		if Away(err) {
			n.failedAlone(n.last, t != nil)
		}
		if t == nil {
			break
		}
		n.unsure(t)
		for i := range n.answers[:t.told] {
			if a := &n.answers[i]; a.told == 0 {
				a.told = n.turn
			}
		}
	}
}

func (n *Node) commit(t *pending) {
	n.bounds, n.seen, n.overdue, n.split = t.bounds, nil, nil, nil
	n.putTurn, n.since = n.turn, min(n.since, t.began)
	if n.put = t.began; !n.in || t.parted { // other nodes' parts are not known before they have come
		n.joined = t.began
	}
	if !n.wanted {
		n.wantedFrom = t.began
	}
	n.in, n.wanted = !t.goes, t.wantsNow
	n.came, n.heldBack = min(t.came, t.book.Turn), t.holdsBack
	n.until = t.began.Add(n.holding())
	n.served = t.mine.Served
	n.fresh = t.limiter
	n.knows, n.latest, n.mayHold, n.doubts = t.book, t.book.stage(), t.mine.Most, false
	n.view = View{Book: t.book, Quiet: n.silence(t)}
	var told limit.Cost
	for i := range n.answers[:t.told] {
		minus(&n.flight, &n.answers[i].cost)
		plus(&told, &n.answers[i].cost)
	}
	n.note(t.book.Turn, told)
	n.answers = append(n.answers[:0], n.answers[t.told:]...)
	n.changes = n.changes[t.changed:]
	for _, g := range t.granted {
		n.pool.add(g)
	}
	n.asks = false // the driver asks again for waiting tickets
}

// Telling returns the number of answers that the turn under way reports.
func (n *Node) Telling() int {
	if n.pending == nil {
		return 0
	}
	return n.pending.told
}

// HeldBack reports whether the last turn held answers back, as others had no turns since those
// before.
func (n *Node) HeldBack() bool { return n.heldBack }

// Alter makes a change for all nodes, in the next turn.
func (n *Node) Alter(f Change) { n.changes = append(n.changes, f) }
