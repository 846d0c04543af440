package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// openChain is a chain whose last page earlier runs have not reached.
type openChain struct {
	page int    // the page with which the chain goes on
	next string // result of Next.keeps for that page
	seen []format.Digest
}

// chains keeps the chains that go on from earlier runs, and ids that resemble those of pages. Safe
// for concurrent use.
type chains struct {
	c      *Config
	tally  *tally.Tally
	judge  *judge
	teller *telling.Teller

	single int // results of earlier runs without a page before or after them

	mu   sync.Mutex
	open map[format.Hash]*openChain // by the id of the first page; a chain is taken out when its line is read
	// likely has the ids of the input that look like the id of a page. The key is the id of the
	// line that such a page would have.
	likely map[format.Hash]string
}

// pageOf returns the id of a page, from the second on. The first page has the id of the line.
func pageOf(id string, page int) string { return id + ".p" + strconv.Itoa(page) }

// cutPage splits an id that looks like the id of a page. It returns the id of the line, and the
// number of the page.
func cutPage(id string) (of string, page int, ok bool) {
	i := strings.LastIndex(id, ".p")
	if i <= 0 {
		return "", 0, false
	}
	page, err := strconv.Atoi(id[i+2:])
	return id[:i], page, err == nil && page >= 2 && pageOf(id[:i], page) == id
}

// note takes in a result of an earlier run. The results of a chain come in the order of its pages,
// so the last one counts.
func (c *chains) note(e format.Entry) {
	if e.State != "done" {
		return
	}
	if e.Page == 0 && e.Next == "" {
		c.single++
		return
	}
	c.judge.paged.Store(true)
	id, page := e.ID, 1
	if of, n, ok := cutPage(e.ID); ok && n == e.Page {
		id, page = of, n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := format.HashOf(id)
	if e.Next == "" {
		delete(c.open, d)
		return
	}
	o := c.open[d]
	if o == nil {
		o = new(openChain)
		if c.open == nil {
			c.open = map[format.Hash]*openChain{}
		}
		c.open[d] = o
	}
	o.page, o.next = page+1, e.Next
	o.seen = append(o.seen, e.Digest)
}

// toGoOn is how many lines go on with a further page. It is for the time before Send.
func (c *chains) toGoOn() (n int) {
	for _, o := range c.open {
		if o.page <= c.c.MaxPages {
			n++
		}
	}
	return n
}

// tellSingle says that earlier runs had no further pages: this one asks for none of what they have done.
func (c *chains) tellSingle() {
	if c.c.Next != nil && c.single > 0 && !c.judge.paged.Load() {
		c.teller.Say("%s of earlier runs without a further page. If these runs had no --next, or another one, pages are "+
			"missing; the same command with another --out asks for all", text.Count(c.single, "result is", "results are"))
	}
}

// clashes returns why an id cannot be in the input together with another: one of them looks like
// the id of a page of the other. It is called for every line, with the tally's lock held; lineOf returns
// the line of an id, or 0.
func (c *chains) clashes(lineOf func(format.Hash) int, q *format.Request) string {
	if of, page, ok := cutPage(q.ID); ok {
		if line := lineOf(format.HashOf(of)); line != 0 && line != q.Line {
			return fmt.Sprintf("id %q is that of page %d of %q on line %d (--next), expected another", q.ID, page, of, line)
		}
		if c.likely == nil {
			c.likely = map[format.Hash]string{}
		}
		c.likely[format.HashOf(of)] = q.ID
	}
	if is, ok := c.likely[q.Hash]; ok {
		return fmt.Sprintf("id %q is already one of its pages (--next): %q is on line %d, expected another", q.ID, is,
			lineOf(format.HashOf(is)))
	}
	return ""
}

// resumed returns the page with which a line goes on, if earlier runs did its first pages. Nil:
// there is no such page. If the page cannot be sent, the error is a straying with the reason.
func (c *chains) resumed(line *format.Request) (*format.Request, error) {
	c.mu.Lock()
	o := c.open[line.Hash]
	delete(c.open, line.Hash)
	c.mu.Unlock()
	if c.c.Next == nil || o == nil || !c.tally.IsDone(line.Hash) {
		return nil, nil
	}
	line.Begin()
	for _, d := range o.seen {
		line.Chain.Seen[d] = true
	}
	if o.page > c.c.MaxPages {
		c.cut(line.ID)
		return nil, nil
	}
	line.Page = o.page - 1
	p, err := c.judge.page(line, sending.FirstHop(line), o.next, true)
	line.Chain.Seen[p.Digest] = true
	return p, err
}

// page makes the request for the page after q.
func (r *judge) page(q *format.Request, from sending.Hop, next string, kept bool) (*format.Request, error) {
	p, err := r.sender.Turned(r.c.Next, q, from, next, kept)
	p.Page = max(q.Page, 1) + 1
	p.ID = pageOf(q.Chain.ID, p.Page)
	p.Hash = format.HashOf(p.ID)
	if err == nil {
		p.Digest = format.NewDigest(p.Method, p.URL.String(), p.Header, p.Body)
		if q.Chain.Seen[p.Digest] {
			at, _ := r.secrets.Of(q).HideIn(secret.SanitizeURL(called(sending.HostOf(p.URL)) + p.URL.RequestURI()))
			err = sending.Straying{Class: format.DeadLoop, Reason: "not followed: the next page is one that was had before, and would be without end: " + at}
		}
	}
	p.Raw = lineOfPage(p, r.c.Next)
	return p, err
}

// lineOfPage returns a page in the form of a line of the input, for its dead letter.
func lineOfPage(q *format.Request, n *sending.Next) json.RawMessage {
	if q.Raw == nil {
		return nil // the input is not in lines of this form
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(q.Raw, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	put := func(name string, v any) { all[name], _ = json.Marshal(v) }
	if q.URL != nil {
		put("url", q.URL.String())
	}
	if n.InBody() && json.Valid(q.Body) {
		all["body"] = q.Body
	}
	delete(all, "id")
	var b strings.Builder
	id, _ := json.Marshal(q.ID)
	b.WriteString(`{"id":` + string(id))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		quoted, _ := json.Marshal(name)
		b.WriteString("," + string(quoted) + ":" + string(all[name]))
	}
	return json.RawMessage(b.String() + "}")
}

// findNext notes in the job the page after its answer. It fails if the answer does not state that
// page in the expected form.
func (r *judge) findNext(j *job) error {
	if j.next, j.stray = "", nil; r.c.Next == nil || j.res.Status/100 != 2 {
		return nil
	}
	next, err := r.c.Next.After(&j.res)
	if !r.paged.Load() && err == nil {
		r.looks(next, &j.res)
	}
	if err != nil || next == "" {
		return err
	}
	// The next request is made here, so that this page's result has all that a later run needs to
	// resume there.
	j.after, err = r.page(j.r, j.hop, next, false)
	switch why, stray := errors.AsType[sending.Straying](err); {
	case stray:
		j.stray = &why
	case err != nil:
		return err
	}
	j.next = r.c.Next.Keeps(j.after, next)
	return nil
}

// looks notes whether an answer has anything where the next page would be.
func (r *judge) looks(next string, res *sending.Response) {
	if next != "" || !r.c.Next.Lacks(res) {
		r.paged.Store(true)
	} else if n := r.unpaged.Add(1); n == fewRows {
		r.tellUnpaged(int(n))
	}
}

// tellUnpaged says that no answer so far had a next page. The flag may be wrong, and nothing else would show it.
func (r *judge) tellUnpaged(answers int) {
	r.teller.Say("no answer had a next page %s (--next), of %s; expected where the answers have it", r.c.Next,
		text.Count(answers, "answer", "answers"))
}

// turn writes the result of a page, and makes its request go on with the next page.
func (at *attempt) turn() pool.Answer {
	r, g, j, ans := at.r, at.g, at.j, at.ans
	if !endsWell(&ans) || j.next == "" {
		return ans
	}
	if max(j.r.Page, 1) >= r.c.MaxPages {
		r.chains.cut(j.r.Chain.ID)
		return ans
	}
	next, stray, now := j.after, j.stray, g.pool.Now()
	page, old := *j, *j.r
	page.r, page.size = &old, 0
	written := r.writer.endedNow(pool.Ended{State: pool.Done, Request: pool.Request{ID: old.ID, Value: &page},
		Attempts: at.a.Number, Submitted: j.submitted(at.a.Submitted)})
	*j = job{r: next, group: g, hop: sending.FirstHop(next), size: j.size, told: true}
	if !written || !r.tally.Turned(next) {
		return ans // the result is already written
	}
	if stray != nil {
		r.tally.Count(&r.tally.Totals.Offered, 1)
		j.class, j.reason = stray.Class, stray.Reason
		dead := *j
		dead.size, dead.told = 0, false
		r.writer.ended([]pool.Ended{{State: pool.Dead, Request: pool.Request{ID: next.ID, Value: &dead}, Submitted: now,
			Reason: stray.Reason}})
		return ans
	}
	next.Chain.Seen[next.Digest] = true
	r.tally.Count(&r.tally.Totals.Offered, 1)
	j.told, j.since = false, now
	_, j.repeat = r.store.History.Doubts[next.ID]
	j.waited[0] = g.waits.Until(time.Now())
	r.hosts.note(j.hop.Host, named)
	ans.More = true
	return ans
}

// submitted returns when a job's page was ready to be sent. at is when its first page was
// submitted.
func (j *job) submitted(at mono.Time) mono.Time { return max(at, j.since) }

// cut counts a chain with more pages than allowed, and reports the first to the user.
func (c *chains) cut(id string) {
	c.tally.Count(&c.tally.Totals.Cut, 1)
	if c.teller.IsFirst("cut") {
		c.teller.Say("%s has more than %s (--max-pages): the next is in its last result, and a run with a larger --max-pages "+
			"goes on there", id, text.Count(c.c.MaxPages, "page", "pages"))
	}
}
