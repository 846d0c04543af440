package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Header fields of the proxy's own.
const (
	// FieldWaited is in every answer: the wait of the request for its turn, in milliseconds.
	FieldWaited = "Paceline-Waited"
	// FieldPartly is in answers of which a limit refused some parts, and that are not sent again for
	// those: served=1, refused=2. A number that the upstream did not state is left out.
	FieldPartly = "Paceline-Partly"
	// FieldMaxWait is in requests: the longest wait that the client accepts, as seconds or as a
	// duration (1m30s).
	FieldMaxWait = "Paceline-Max-Wait"
	// FieldKey is in requests: the client's key for the proxy.
	FieldKey = "Paceline-Key"
)

// visit is one request, from its arrival to the end of its answer. It belongs to the goroutine that
// serves it.
type visit struct {
	proxy      *Proxy
	upstream   *upstream // nil: it has none
	client     *client   // nil: not known yet
	in         *http.Request
	w          *writer // a part of the visit, so that it needs no memory of its own
	answer     writer
	within     within
	clientKey  string // the client's key for the proxy, if that names the client
	closes     bool   // the connection ends after this request
	body       *body  // nil: none
	looksAhead bool   // some of it is read while the request waits
	cancel     context.CancelCauseFunc
	again      atomic.Pointer[context.CancelCauseFunc] // as cancel, once the request is handed on
	came       time.Time
	sending    atomic.Bool // the request or its answer is in flight; otherwise it waits
	whole      bool        // its URL is whole: it came by the forward proxy
	upgraded   atomic.Bool // it has become a connection, which may last
	patience   patience
	stated     *stated // nil: nothing
	line       *line   // until it is sent; nil: its client gets no interim answers
	leave      *Leave  // another program sends it; nil: the proxy does

	waits    *paceline.WaitStats // for its turns, in all; nil: none
	attempts int
	key      string   // the name of its key
	target   string   // the name of its target
	unsent   bool     // nothing of the last attempt was sent
	banned   bool     // the last answer is a ban
	handed   bool     // another process answers it
	partly   string   // what of the last answer was served; empty: all, or nothing
	failed   *refusal // why there is no answer of the upstream; nil: there is one

	prev, next *visit // under the lock of visits
}

type visitKey struct{}

// within is the context of a visit. It is a part of the visit, and needs no memory of its own.
type within struct {
	context.Context
	visit *visit
}

// Value implements context.Context.
func (c *within) Value(key any) any {
	if key == (visitKey{}) {
		return c.visit
	}
	return c.Context.Value(key)
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// serve sends the request on and its answer back.
func (v *visit) serve() {
	v.within = within{v.in.Context(), v}
	ctx, cancel := context.WithCancelCause(&v.within)
	defer cancel(nil)
	v.cancel = cancel
	v.in = v.in.WithContext(ctx)
	v.proxy.visits.add(v)
	defer v.proxy.visits.remove(v)
	v.takeBody()
	defer v.body.close()
	defer v.w.calm()
	if v.proxy.heir.Load() != nil { // after it is among the visits: it may have come in at that moment
		v.handOn()
		return
	}
	if len(v.client.Models) != 0 {
		if refusal := v.mayAsk(); refusal != nil {
			v.refuse(refusal)
			return
		}
	}
	if v.line = v.newLine(); v.line != nil {
		v.line.enter(v)
		defer v.line.leave()
	}
	v.upstream.proxy.ServeHTTP(v.w, v.in)
}

// begins notes that an attempt is handed over: the request is not in line any more.
func (v *visit) begins() {
	if b := v.proxy.config.Begins; b != nil {
		b(v.in.Context())
	}
	v.sending.Store(true)
	if v.line != nil {
		v.line.sends()
	}
}

const (
	// read is how much of a body of known length is read before the request gets in line. So a slow
	// client delays no other client.
	read = 256 << 10
	// lookahead is how much of other bodies is read during the wait.
	lookahead = 1 << 20
)

// takeBody prepares the client's body for one or more attempts.
func (v *visit) takeBody() {
	r, b := v.in, &v.proxy.config.Bounds
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return
	}
	src := r.Body
	if b.Body > 0 {
		src = http.MaxBytesReader(v.w.ResponseWriter, r.Body, b.Body)
	}
	v.body = newBody(src, *http.NewResponseController(v.w), b, &v.proxy.keepable, v.cancel)
	v.body.streams = r.ProtoMajor > 1
	expects := strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	switch {
	case expects: // the upstream decides whether it wants the body
	case r.ContentLength > 0 && r.ContentLength <= read:
		v.body.ahead(r.ContentLength)
		return
	case r.ProtoMajor == 1: // over HTTP/2 net/http notices in any case when a client goes away
		v.looksAhead = true
	}
	// The answer may come before the end of the request. Without this, net/http would first read
	// the rest of the request.
	_ = v.body.rc.EnableFullDuplex()
}

// rewrite makes the request for the upstream.
func (u *upstream) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	v := visitOf(in.Context())
	out.Host = ""
	switch {
	case v.whole:
		out.URL = wholeOf(in.URL)
		if !u.Forwarded {
			forward.KeepForwarded(pr)
		}
	default:
		out.URL = u.outgoing(in.URL)
		if u.KeepHost {
			out.Host = in.Host
		}
	}
	for _, name := range [...]string{FieldMaxWait, FieldCost, v.proxy.config.Clients.Header} {
		if name != "" {
			out.Header.Del(name)
		}
	}
	v.withhold(out)
	dropTunnel(out.Header)
	u.dress(out)
	if u.Forwarded {
		pr.SetXForwarded()
	}
	if v.body == nil {
		out.Body, out.GetBody = nil, nil
		return
	}
	v.withholdForm(out)
	again := func() (io.ReadCloser, error) { return v.body.again(in.Trailer, out.Trailer) }
	out.Body, _ = again() // it is unread, so it is whole
	out.GetBody = again
	if v.looksAhead {
		go v.body.ahead(lookahead) // not before: in's trailers, which come with the end of the body, are cloned by now
	}
}

// dress sets the fields and parameters that every request gets.
func (u *Upstream) dress(out *http.Request) {
	for _, f := range u.Header {
		if !f.perKey() {
			out.Header.Set(f.Name, string(f.Value))
		}
	}
	out.URL.RawQuery = setQuery(out.URL.RawQuery, u.Query, words{}, false)
}

// dropTunnel removes an upgrade to HTTP/2 within a connection. Requests inside it would pass
// neither limits nor target. Clients of HTTP/2 speak it from the beginning (RFC 9113 has no Upgrade
// to it any more), so nothing is lost.
func dropTunnel(h http.Header) {
	if strings.Contains(strings.ToLower(h.Get("Upgrade")), "h2c") { // the only value that ReverseProxy left
		h.Del("Upgrade")
		h.Del("Connection")
	}
	h.Del("Http2-Settings")
}

// ended notes the outcome of an attempt.
func (v *visit) ended(a transport.Attempt) {
	v.attempts, v.key, v.target = a.Number, a.Key, a.Partition.Target
	v.waitsMore(a.Waits)
	if a.Again {
		v.sending.Store(false)
		switch {
		case v.proxy.drained.Load():
			v.cancel(errStopping)
		case v.proxy.heir.Load() != nil:
			v.cancel(transport.ErrTakenOver)
		}
		v.line.enter(v)
	}
	v.upstream.note(func(l *Limit) bool { return l.applies(a.Partition, v.upstream.Limits) })
	v.unsent, v.partly = a.Result == limit.Unsent, ""
	v.upstream.lag.note(v, &a)
	v.banned = a.Said.Refusal == provider.Banned
	if a.Said.Partly {
		v.partly = a.Said.Parts.String()
	}
}

// answered adds the proxy's own fields to an answer of the upstream. It returns an error if the
// answer is not the upstream's, but that of the proxy on the way out.
func (v *visit) answered(r *http.Response) error {
	if v.line != nil {
		v.line.leave()
	}
	if r.StatusCode == http.StatusSwitchingProtocols {
		v.upgraded.Store(true)
	}
	if way := v.proxy.config.proxies.Answered(r.Request.URL, r.StatusCode); way != nil {
		return way
	}
	if v.closes || v.proxy.heir.Load() != nil {
		r.Header.Set("Connection", "close")
	}
	if v.whole {
		r.Header.Del("Alt-Svc") // the client would leave, for HTTP/3
	}
	v.lead(r.Header)
	v.leadPages(r)
	if r.ContentLength >= 0 { // ReverseProxy flushes others
		v.w.flushes = v.proxy.flushes
	}
	v.tellWaited(r.Header)
	if v.partly != "" {
		r.Header.Set(FieldPartly, v.partly)
	}
	return nil
}

// waitsMore adds a wait. Most requests have none, and need no memory for it.
func (v *visit) waitsMore(more paceline.WaitStats) {
	switch {
	case more.Waited == 0:
	case v.waits == nil:
		first := more // the address of more would cost each request memory
		v.waits = &first
	default:
		*v.waits = v.waits.Add(more)
	}
}

// waited is for how long the request was in line, in all.
func (v *visit) waited() time.Duration {
	if v.waits == nil {
		return 0
	}
	return v.waits.Waited
}

func (v *visit) tellWaited(h http.Header) {
	h.Set(FieldWaited, strconv.FormatInt(v.waited().Milliseconds(), 10))
}

// setQuery sets the parameters whose values depend on the key if keyed, and the others if not.
func setQuery(raw string, all []Field, fill words, keyed bool) string {
	var set []send.Param
	for _, f := range all {
		if f.perKey() == keyed {
			set = append(set, send.Param{Name: f.Name, Value: f.fill(fill)})
		}
	}
	return send.SetQuery(raw, set)
}

// release ends a visit that is not in flight, or that may last for ever.
func (v *visit) release() {
	if !v.sending.Load() || v.upgraded.Load() {
		v.cancel(errStopping)
	}
}

// breakOff ends a visit, whatever it does.
func (v *visit) breakOff() {
	v.cancel(errStopping)
	if again := v.again.Load(); again != nil {
		(*again)(errStopping)
	}
}
