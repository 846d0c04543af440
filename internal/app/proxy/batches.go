package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/jobs"
	"github.com/paceline-go/paceline/internal/app/run/sending"
)

// Batches keeps files and batches of clients, and sends the batches in a line of each client's own.
type Batches struct {
	// Folder has all that is kept. If empty, the paths of files and batches go to the upstream.
	Folder string
	// Keep is how long files and ended batches are kept. If zero, 30 days.
	Keep time.Duration
	// Most is how many bytes the files and batches of one client may take. If zero, 10 GiB.
	Most int64
	// Weight is the part of a client's batches, beside other clients and its own requests. If zero, 1.
	Weight float64
	// HeadStart is as that of a Client. If zero, none.
	HeadStart time.Duration
	// Reserve is the part of each limit that batches leave free for other requests: see Client. If
	// zero, none.
	Reserve float64
	// Concurrency is how many requests of a client's batches are under way at a time. If zero, 64.
	Concurrency int
}

func (b *Batches) check(u *Upstream) *ConfigError {
	switch {
	case b.Folder == "" && *b != (Batches{}):
		return wrong(".Batches.Folder", "it is empty, expected where batches are kept")
	case b.Keep < 0:
		return wrong(".Batches.Keep", "%v, expected above 0s", b.Keep)
	case b.Most < 0:
		return wrong(".Batches.Most", "%d is negative", b.Most)
	case !(b.Weight >= 0 && b.Weight <= 1e6):
		return wrong(".Batches.Weight", "%v, expected above 0 and up to a million", b.Weight)
	case !(b.Reserve >= 0 && b.Reserve <= 1):
		return wrong(".Batches.Reserve", "%v, expected 0 to 1", b.Reserve)
	case b.HeadStart < 0:
		return wrong(".Batches.HeadStart", "%v, expected 0s or more", b.HeadStart)
	case b.Concurrency < 0:
		return wrong(".Batches.Concurrency", "%d is negative", b.Concurrency)
	case b.Folder != "" && !u.hasSecret():
		return wrong(".Batches", "the upstream has no keys, and those of clients are never kept: expected keys, or a "+
			"header such as Authorization")
	}
	return nil
}

// checkBatches finds two upstreams with one folder.
func (c *Config) checkBatches() error {
	folders := map[string]string{}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		f := u.Batches.Folder
		if who := folders[f]; f != "" && who != "" {
			return wrong(fmt.Sprintf("Upstreams[%d].Batches.Folder", i), "%s is that of %s, too; expected one for each", f, who)
		}
		folders[f] = u.Name
	}
	return nil
}

// inBulk ends the name of the line of a client's batches.
const inBulk = " (batch)"

// openBatches opens the folders of all upstreams that have one.
func (p *Proxy) openBatches() error {
	for i := range p.config.Upstreams {
		u := &p.config.Upstreams[i]
		if u.Batches.Folder == "" {
			continue
		}
		s, err := jobs.Open(jobs.Config{Folder: u.Batches.Folder, Keep: u.Batches.Keep, Most: u.Batches.Most,
			Concurrency: u.Batches.Concurrency, To: u.To, Log: p.config.Log,
			Wrong: func(owner string, to *url.URL, body []byte) string {
				if x := p.latest.Load().clients.named(owner).mayBatch(to, body); x != nil {
					return x.detail
				}
				return ""
			},
			Base: func(w jobs.Way) http.RoundTripper { return &bulk{p.common, u.Name, w, false} }})
		if err != nil {
			return &ConfigError{Field: fmt.Sprintf("Upstreams[%d].Batches.Folder", i), Err: err}
		}
		p.batches[u.Name] = s
	}
	return nil
}

func (c *common) eachBatches(f func(*jobs.Store)) {
	for _, s := range c.batches {
		f(s)
	}
}

// sameBatches returns an error if next keeps batches elsewhere, for which the proxy has to start again.
func (c *Config) sameBatches(next *Config) error {
	kept := func(c *Config) map[string]Batches {
		all := map[string]Batches{}
		for _, u := range c.Upstreams {
			if b := u.Batches; b.Folder != "" {
				b.Weight, b.HeadStart, b.Reserve = 0, 0, 0 // read anew for each request
				all[u.Name] = b
			}
		}
		return all
	}
	was, now := kept(c), kept(next)
	for i, u := range next.Upstreams {
		if was[u.Name] != now[u.Name] {
			return wrong(fmt.Sprintf("Upstreams[%d].Batches", i), "it changes, for which the proxy has to be started again; "+
				"the rest is not applied either")
		}
	}
	return nil
}

// family says which APIs of batches an upstream has.
func (u *upstream) family() jobs.Family {
	switch u.Seller() {
	case "":
		return jobs.AnyFamily
	case "anthropic":
		return jobs.Anthropic
	}
	return jobs.OpenAI
}

// keeps answers a request for a file or a batch that the proxy keeps. It reports whether it is one.
func (v *visit) keeps() bool {
	s := v.proxy.batches[v.upstream.Name]
	if s == nil {
		return false
	}
	path := strings.TrimPrefix(v.in.URL.Path, v.upstream.Path)
	if !jobs.Takes(v.upstream.family(), path) {
		return false
	}
	v.sending.Store(true) // it waits for no turn
	v.proxy.visits.add(v)
	defer v.proxy.visits.remove(v)
	ctx, cancel := context.WithCancelCause(v.in.Context())
	defer cancel(nil)
	v.cancel = cancel
	r := v.in.WithContext(ctx)
	if r.Body != nil {
		r.Body = &patient{r.Body, http.NewResponseController(v.w.ResponseWriter), v.proxy.config.Bounds.Stall}
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	v.tellWaited(v.w.Header())
	v.forPage(v.w.Header())
	jobs.Serve(s, v.w, r, jobs.Call{Owner: v.client.owner, Path: path, Base: scheme + "://" + r.Host + v.upstream.Path})
	return true
}

// patient reads a body that goes to the disk. A client may send nothing for as long as a stall lasts.
type patient struct {
	io.ReadCloser
	rc    *http.ResponseController
	stall time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(p.stall))
	defer func() { _ = p.rc.SetReadDeadline(time.Time{}) }()
	return p.ReadCloser.Read(b)
}

// bulk is the way of a client's batches to an upstream, whatever the configuration is by now.
type bulk struct {
	*common
	upstream string
	way      jobs.Way
	only     bool // the client has nothing else: this is its own line
}

// RoundTrip implements http.RoundTripper. It waits as long as the batch goes on: for a turn, for an
// upstream that is down, and for keys.
func (b *bulk) RoundTrip(q *http.Request) (*http.Response, error) {
	const first, most = time.Second, 30 * time.Second
	for rest := first; ; rest = min(2*rest, most) {
		v := b.visit(q)
		if v != nil {
			x := v.client.mayReach(v.upstream)
			if x == nil {
				x = v.client.mayBatch(q.URL, bodyOf(q))
			}
			if x != nil { // the file has changed since the batch was checked
				return x.inBulk(q), nil
			}
			resp, x, err := v.sendsInBulk(b, q)
			switch {
			case err == nil:
				return resp, nil
			case x == nil || x.kind == stopping().kind:
				return nil, v.gaveUp(err)
			case !v.unsent && v.attempts > 0:
				return nil, err
			case x.pointless && x.kind != "no-key-left":
				return x.inBulk(q), nil
			}
			rest = max(rest, min(x.wait, most))
		}
		t := time.NewTimer(rest)
		select {
		case <-t.C:
		case <-b.way.Waits.Done():
			t.Stop()
			return nil, &sending.Unsent{Err: errStopping}
		case <-q.Context().Done():
			t.Stop()
			return nil, &sending.Unsent{Err: q.Context().Err()}
		}
	}
}

// bodyOf returns the body of a request of the engine, which has it in memory.
func bodyOf(q *http.Request) (body []byte) {
	if q.GetBody == nil {
		return nil
	}
	if r, err := q.GetBody(); err == nil {
		body, _ = io.ReadAll(r)
	}
	return body
}

// visit is a request of the batches at the upstream as it is configured now; nil: there is none.
func (b *bulk) visit(q *http.Request) *visit {
	p := b.latest.Load()
	i := slices.IndexFunc(p.routes, func(u *upstream) bool { return u.Name == b.upstream })
	if i < 0 {
		return nil
	}
	u := p.routes[i]
	who := p.clients.named(b.way.Owner)
	line := *who
	if !b.only {
		line.asker.CountsAs, line.asker.Name = who.asker.Name, who.asker.Name+inBulk
		line.asker.Weight, line.asker.HeadStart = cmp.Or(u.Batches.Weight, 1), u.Batches.HeadStart
		line.asker.Reserve = max(u.Batches.Reserve, who.asker.Reserve)
	}
	in := &http.Request{Method: q.Method, URL: u.incoming(q.URL), Header: q.Header, Host: u.To.Host}
	v := &visit{proxy: p, upstream: u, client: &line, in: in, came: time.Now(), patience: patience{most: longest}}
	v.w = &v.answer
	return v
}

// sendsInBulk sends a request, until it has an answer, or until the batch must not wait any more. It
// returns why there is none, too; nil: the engine has given up.
func (v *visit) sendsInBulk(b *bulk, q *http.Request) (*http.Response, *refusal, error) {
	v.within = within{q.Context(), v}
	ctx, cancel := context.WithCancelCause(&v.within)
	v.cancel = cancel
	v.in = v.in.WithContext(ctx)
	v.proxy.visits.add(v)
	stop := context.AfterFunc(b.way.Waits, v.release)
	end := sync.OnceFunc(func() {
		stop()
		v.proxy.visits.remove(v)
		cancel(nil)
		v.log()
	})
	if v.proxy.stopping.Load() { // after add: Stop releases those that it finds
		cancel(errStopping)
	}
	out := q.Clone(ctx)
	out.URL, out.Host = v.upstream.outgoing(v.in.URL), ""
	v.upstream.dress(out)
	if q.GetBody != nil {
		out.Body, _ = q.GetBody() // it is in memory
	}
	resp, err := v.upstream.transport.RoundTrip(out)
	if err != nil {
		x := v.why(err)
		v.w.status = statusGone
		if x != nil {
			v.w.status, v.failed = x.status, x
		}
		end()
		return nil, x, err
	}
	v.w.status = resp.StatusCode
	resp.Body = &closing{resp.Body, end}
	return resp, nil, nil
}

// gaveUp is the error of a request whose batch stops.
func (v *visit) gaveUp(err error) error {
	if v.unsent || v.attempts == 0 {
		return &sending.Unsent{Err: err}
	}
	return err
}

// closing calls end at the end of a body.
type closing struct {
	io.ReadCloser
	end func()
}

func (e *closing) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// inBulk is a refusal as the answer to a line of a batch. Its status blames no key.
func (x *refusal) inBulk(q *http.Request) *http.Response {
	text, err := json.Marshal(map[string]any{"type": "error", "error": forPeople{"paceline: " + x.detail,
		"paceline_" + strings.ReplaceAll(x.kind, "-", "_"), x.kind}})
	if err != nil {
		panic(err) // cannot fail: every field has a JSON form
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: q}
}

// named returns the client with a name, for requests that it made before.
func (c *clients) named(name string) *client {
	for _, k := range c.listed {
		if k.Name == name {
			return k
		}
	}
	return c.other(name)
}
