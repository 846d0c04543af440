package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/jobs"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/transport"
)

// Proxy is an http.Handler that passes requests on within limits. New makes it. It is safe for
// concurrent use.
type Proxy struct {
	config  Config
	routes  routes
	clients *clients
	*common
}

// common is shared by a Proxy and all its successors through Apply.
type common struct {
	latest    atomic.Pointer[Proxy] // for requests that come now
	applying  sync.Mutex
	former    []former // under applying
	turns     turns
	clientele *clientele
	state     *state           // nil: no state file
	sent      *journal.SentLog // nil: no file of attempts
	keepable  atomic.Int64     // how many more bytes of bodies may be kept
	stopping  atomic.Bool
	heir      atomic.Pointer[heir] // the next process, if that has taken over
	drained   atomic.Bool          // no request waits any more
	visits    visits
	flushes   *send.Watch             // over parts of answers
	interims  *send.Watch             // over requests in line
	hangups   hangups                 // of clients in line
	numbers   numbers                 // of keys with a {nonce}
	mounts    map[string]http.Handler // by pattern, at the admin listener
	forms     string                  // the path there that gets POSTs; empty: none
	batches   map[string]*jobs.Store  // by the upstream's name; does not change
}

// New returns a Proxy, or a *ConfigError.
func New(c Config) (*Proxy, error) {
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	all, err := newClientele(&c)
	if err != nil {
		return nil, err
	}
	p := &Proxy{config: c, clients: newClients(&c, all),
		common: &common{clientele: all, flushes: send.NewWatch(flushed), interims: send.NewWatch(interimEvery), mounts: map[string]http.Handler{},
			batches: map[string]*jobs.Store{}}}
	p.keepable.Store(c.Bounds.KeptInAll)
	if err := p.openSent(); err != nil {
		return nil, err
	}
	if note := newBeside(&c); c.State != "" || note != nil {
		path := cmp.Or(c.State, note.path())
		if p.state, err = openState(path, c.kept(), c.slowest(), c.Taken, c.Log, c.clock); err != nil {
			note.drop()
			p.sent.Close()
			return nil, &ConfigError{Field: "State", Err: err}
		}
		note.of(p.common)
		all.keyName = func(r *http.Request) string { return p.state.keyName(transport.CredentialOf(r)) }
	}
	err = p.build(nil)
	if err == nil {
		err = p.openBatches()
	}
	if err != nil {
		p.eachBatches((*jobs.Store).Stop)
		p.close()
		return nil, err
	}
	p.turns.base = p.config
	p.latest.Store(p)
	if p.state != nil {
		p.state.beside.look(time.Now())
	}
	return p, nil
}

// build makes the upstreams. An upstream in before that goes on keeps its way to the server.
func (p *Proxy) build(before routes) error {
	var all []*upstream
	for i := range p.config.Upstreams {
		u, err := newUpstream(p.config.Upstreams[i], &p.config, before, p.common)
		if err != nil {
			return &ConfigError{Field: fmt.Sprintf("Upstreams[%d]", i), Err: err}
		}
		all = append(all, u)
	}
	p.routes = newRoutes(all)
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.visited(w, r, false) }

// visited serves a request, with a whole URL if it came by the forward proxy.
func (p *Proxy) visited(w http.ResponseWriter, r *http.Request, whole bool) *visit {
	v := &visit{proxy: p.latest.Load(), in: r, came: time.Now(), whole: whole}
	p.visit(w, v)
	return v
}

func (p *Proxy) visit(w http.ResponseWriter, v *visit) {
	r, whole := v.in, v.whole
	v.answer.ResponseWriter, v.answer.asks, v.w = w, r.Header["Expect"] != nil, &v.answer
	defer v.log()
	v.closes = twoLengths(r)
	if !whole && v.preflight() {
		return
	}
	if p.heir.Load() != nil {
		v.serve()
		return
	}
	if refusal := v.enter(); refusal != nil {
		if r.ContentLength != 0 {
			leave(http.NewResponseController(w))
		}
		v.refuse(refusal)
		return
	}
	if len(v.proxy.batches) > 0 && v.keeps() {
		return
	}
	v.serve()
}

// enter finds the client and the upstream of the request, or returns a refusal.
func (v *visit) enter() *refusal {
	r, p := v.in, v.proxy
	if p.stopping.Load() {
		return stopping()
	}
	if bad := p.target(r, v.whole); bad != nil {
		return bad
	}
	who, key := p.clients.of(r, v.whole)
	if who == nil {
		return noKey()
	}
	v.client, v.clientKey = who, key
	who.seen.Store(true)
	p.tellNeverUsed(v.came)
	if bad := v.find(); bad != nil {
		return bad
	}
	if bad := who.mayReach(v.upstream); bad != nil {
		return bad
	}
	if most := p.config.Bounds.Body; most > 0 && r.ContentLength > most {
		return tooLong(most)
	}
	most := p.config.MaxWait
	if who.MaxWait != 0 {
		most = who.MaxWait
	}
	var err error
	if v.patience, err = patienceOf(r.Header, most); err != nil {
		return badField(err)
	}
	if r.Header[FieldCost] == nil { // so it is with most requests
		return nil
	}
	if v.stated, err = statedOf(r.Header); err != nil {
		return badField(err)
	}
	return v.maySay()
}

// find finds the upstream, or returns a refusal.
func (v *visit) find() *refusal {
	all := v.proxy.routes
	if v.whole {
		inside := false
		v.upstream, inside = all.of(v.in.URL)
		if v.upstream == nil || !inside && v.upstream.spends { // the first: the file has changed since CONNECT
			v.upstream = nil
			return noUpstream(all)
		}
		return v.inTheClear()
	}
	if v.upstream = all.find(v.in); v.upstream == nil {
		return noUpstream(all)
	}
	if len(all) > 1 && all.leadsAside(v.in, v.upstream) {
		return badPath("a path that may be one of another upstream")
	}
	return v.fromPage()
}

// Line is the way to an upstream of a program that has its requests in memory, such as `paceline run`. An
// attempt waits for its turn, for servers that are away and for keys, until waits ends. Then it fails
// with a *sending.Unsent. It uses path and query of a request, and no host. The Proxy needs no Server.
func (p *Proxy) Line(upstream, client string, waits context.Context) http.RoundTripper {
	return &bulk{p.common, upstream, jobs.Way{Owner: client, Waits: waits}, true}
}

// Close ends a Proxy that has no Server, after its last request.
func (p *Proxy) Close() { p.latest.Load().close() }

// close closes what is open: idle connections, and the state file.
func (p *Proxy) close() {
	for _, u := range p.routes {
		u.closeIdle()
	}
	p.eachBatches((*jobs.Store).Wait)
	if p.state != nil {
		p.state.close()
	}
	p.sent.Close()
}

// kept is how long the state file keeps a sent request. A live configuration may later get a longer
// window.
func (c *Config) kept() (longest time.Duration) {
	longest = time.Minute
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		longest = max(longest, u.counted(c))
		if c.Live && !c.Flags {
			longest = max(longest, u.remembered(c))
		}
	}
	return longest + longest/8
}

// Counts is how long a request may count that is sent now, with all that is not known of its arrival.
func (p *Proxy) Counts() (longest time.Duration) {
	c := &p.latest.Load().config
	for i := range c.Upstreams {
		longest = max(longest, c.Upstreams[i].counted(c))
	}
	return longest + journal.Late
}

// slowest is the longest time of an attempt; 0: any time.
func (c *Config) slowest() (longest time.Duration) {
	for i := range c.Upstreams {
		if c.Upstreams[i].AnswerTimeout < 0 {
			return 0
		}
		longest = max(longest, c.Upstreams[i].AnswerTimeout)
	}
	return longest
}
