package transport

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider/classify"
)

// manyFailed requests in a row that were denied their own credential are told.
const manyFailed = 3

// deniedRow is the requests in a row that were denied a credential of their own.
type deniedRow struct {
	count int
	told  bool // once
}

// ownDenials are rows of requests with credentials of their own, by Partition.Key.
type ownDenials struct {
	any  atomic.Bool           // there is a row
	rows map[string]*deniedRow // under the Transport's lock
}

// mostDenied bounds the credentials that have a row.
const mostDenied = 64

// helps is what ends such a row.
const helps = "a key that the server knows, and that may send such requests"

// deniedWords are an answer, without the credential of the request, as it came and as it was sent. Its body is still to be read by the client.
func (c *call) deniedWords(s *sent, in *classify.Evidence, resp *http.Response) string {
	said, body := fmt.Sprintf("%d %s", in.Status, http.StatusText(in.Status)), in.Body
	if len(body) == 0 && resp.Body != nil { // a verdict does not need that of a 401
		body = c.words(s, resp)
	}
	words := string(body[:min(len(body), 200)])
	for _, r := range []*http.Request{c.req, s.went} {
		if r == nil {
			continue
		}
		if own := CredentialOf(r); own != "" {
			words = strings.ReplaceAll(words, own[strings.LastIndexByte(own, ' ')+1:], "…")
		}
	}
	if words = strings.TrimSpace(words); words != "" {
		said += ": " + text.Sanitize(words)
	}
	return said
}

// notesDenial notes that a key was denied. If the request can ask no other key, all were.
func (c *call) notesDenial(s *sent, in *classify.Evidence, resp *http.Response, last bool) {
	c.blame(s, &s.verdict)
	for k := range c.leaf.ways() {
		w := c.leaf.by(k)
		if !last && c.getBody != nil && c.ctx.Err() == nil && w.account != nil && c.isOpen(w) {
			return
		}
	}
	c.t.deniedByAll(s, in.Status, c.deniedWords(s, in, resp))
}

// deniedByAll takes in that the server of an attempt denied its request with every key. After too many in a row
// no request waits for this server's keys, until a request may try them again: see keyring.Row.
func (t *Transport) deniedByAll(s *sent, status int, said string) {
	_, sent, _ := s.wire.Times(s.headed)
	n := s.way.server
	t.mu.Lock()
	defer t.mu.Unlock()
	_, again := n.row.Away()
	away := n.row.Denied(t.at(), mono.Of(t.group.Time(0), sent))
	if away == 0 {
		return
	}
	n.denial = said
	t.group.Update(func(now mono.Time) {
		n.stack.Begin(now) // after the pause one request goes alone
		n.denies = true
		n.shutIf(true)
	}, n.limit)
	if !again {
		t.log.Warn("all keys are denied", "host", n.in().Host, "status", status, "answer", n.denial,
			"asked_again_in", away)
		t.note(observe.EventPaused, *n.in(), "no request goes with any key, which the server denied: "+n.denial)
	}
}

// keysServe ends what deniedByAll began: a key was served, or somebody says that the keys are in order.
func (n *node) keysServe(ended bool) {
	if !ended {
		return
	}
	n.t.group.Update(func(now mono.Time) {
		n.denies = false
		n.shutIf(false)
	}, n.limit)
	n.t.note(observe.EventBack, *n.in(), "requests go with the keys again")
}

// deniedUntil reports whether the server of a node denies requests with every key, and when one of them asks again.
func (n *node) deniedUntil() (err *Error) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	until, on := n.row.Away()
	if !on || until <= n.t.at() {
		return nil
	}
	return &Error{Partition: *n.in(), Ready: n.t.group.Time(until),
		Err: fmt.Errorf("%w: the server denied requests with every key (%s); one asks again in %s", ErrKeys, n.denial,
			text.Span(until.Sub(n.t.at()).Round(time.Millisecond)))}
}

// shown is the state of a key, with the servers that deny requests with every key.
func (t *Transport) shown(k observe.KeyState, a *account) observe.KeyState {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, n := range t.nodes {
		if until, on := n.row.Away(); on && k.State == observe.KeyOK && (a.target == "" || a.target == p.Target) {
			k.State, k.Until = observe.KeyDenied, t.group.Time(until)
			k.Why = p.Host + " denies requests with every key: " + n.denial
		}
	}
	return k
}

// judgeOwn notes what an answer shows of a credential that is the request's own.
func (c *call) judgeOwn(s *sent, in *classify.Evidence, resp *http.Response) {
	t, served := c.t, s.verdict.Result == limit.Accepted
	if served && !t.own.any.Load() || !served && !s.verdict.Answer().Denied {
		return
	}
	p := s.way.on(s.leaf)
	said, tells := "", false
	if !served {
		said = c.deniedWords(s, in, resp)
	}
	t.mu.Lock()
	row := t.own.rows[p.Key]
	switch {
	case row != nil && served:
		row.count = 0
	case row != nil:
		row.count++
		tells = row.count >= manyFailed && !row.told
		row.told = row.told || tells
	case !served && len(t.own.rows) < mostDenied:
		if t.own.rows == nil {
			t.own.rows = map[string]*deniedRow{}
		}
		t.own.rows[strings.Clone(p.Key)] = &deniedRow{count: 1}
		t.own.any.Store(true)
	}
	t.mu.Unlock()
	if tells {
		t.log.Warn("requests are denied, each of the last ones with this key", "host", p.Host, "key", p.Key, "client", p.Client,
			"status", in.Status, "answer", said, "helps", helps)
		t.note(observe.EventDenied, p, said)
	}
}
