package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/hide"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/internal/send/httptext"
	"github.com/paceline-go/paceline/internal/send/neterr"
	"github.com/paceline-go/paceline/internal/send/once"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// sender sends attempts over HTTP/1.1, each at most once.
type sender struct {
	base        *once.Base
	header      []format.Template
	query       []format.Template
	timeout     time.Duration
	proxies     *outgoing.Proxies
	late        error // error of an attempt that took longer than timeout
	maxResponse int64
	memory      *memory
	files       *output.Bodies // nil: bodies are in the results, cut at maxResponse
	common      http.Header    // for requests without fields of their own; it is shared and never changed
	secrets     *format.Secrets
	places      secret.Places // where keys may follow a redirect, beside the host of the line
}

func newSender(c *Config, secrets *format.Secrets) *sender {
	return &sender{
		base: once.New(newTransport(c)), proxies: c.proxies,
		header: c.Header, query: c.Query, timeout: c.Timeout, late: fmt.Errorf("no answer within %v", c.Timeout),
		maxResponse: c.MaxResponse, memory: &memory{limit: heldAnswers},
		common:  http.Header{"User-Agent": {c.UserAgent}},
		secrets: secrets, places: c.KeyHosts,
	}
}

func newTransport(c *Config) *http.Transport {
	plain := new(http.Protocols)
	plain.SetHTTP1(true)
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: c.Timeout, KeepAlive: 30 * time.Second}).DialContext
	}
	t := &http.Transport{
		DialContext: dial,
		// HTTP/2 is left out. On its shared connections a written request may wait in the system
		// behind other bytes, for longer than the promised one-way latency of a limit.
		Protocols:           plain,
		TLSClientConfig:     c.TLS,
		TLSHandshakeTimeout: c.Timeout,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: max(c.Concurrency, 1),
		IdleConnTimeout:     90 * time.Second,
		// A server may describe its whole limit in header fields, but must not fill the memory with
		// them.
		MaxResponseHeaderBytes: 1 << 20,
	}
	c.proxies.Set(t)
	return t
}

// response is how one attempt ended.
type response struct {
	status   int // 0: no answer
	header   http.Header
	body     []byte
	share    share             // of the memory for bodies
	cut      bool              // the body is longer
	coded    bool              // the body is in a content coding that is not read
	saved    *output.SavedBody // the file with the whole body; nil: there is none, or not yet
	unsaved  error             // why the body could not be written
	tooLong  bool              // the body is longer than a file may be
	err      error
	way      *outgoing.Error // what is wrong with the proxy on the way out; nil: nothing
	sight    limit.Link      // evidence in err about the way to the host
	switched bool            // to a protocol that was not asked for
	lapsed   bool            // nothing was written, since its leave had lapsed
	written  bool            // at least a byte may have left
	began    time.Time       // before the first byte was written
	ended    time.Time       // after the answer was read
	rtt      time.Duration   // from after the last byte was written; 0: not known
}

// cutAt says where a secret in the body may be cut off.
func (r *response) cutAt() secret.Cut {
	switch {
	case r.status == http.StatusPartialContent:
		return secret.CutStart | secret.CutEnd
	case r.cut || r.err != nil:
		return secret.CutEnd
	}
	return secret.Whole
}

// patience ends an attempt after a time. Waits on this side do not count.
type patience struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	late   error
	until  time.Time
	left   time.Duration // time left during a pause
}

// past is a context whose deadline has passed.
var past, _ = context.WithDeadline(context.Background(), time.Unix(0, 0))

func (s *sender) patience(ctx context.Context) (context.Context, *patience) {
	p := &patience{late: s.late, until: time.Now().Add(s.timeout)}
	ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(s.timeout, func() { p.cancel(p.late) })
	return ctx, p
}

func (p *patience) pause(on bool) {
	if on {
		p.left = time.Until(p.until)
		p.timer.Stop()
		return
	}
	p.until = time.Now().Add(p.left)
	p.timer.Reset(p.left)
}

func (p *patience) isOver(ctx context.Context) bool { return context.Cause(ctx) == p.late }

func (p *patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// fresh reports, right before the first byte is written, whether the attempt may go.
type fresh func() bool

// Fresh implements an interface of package once.
func (f fresh) Fresh() bool { return f() }

// send makes one attempt. It calls leave, if not nil, right before the first write. If leave
// returns false, nothing is written and the response has lapsed.
func (s *sender) send(ctx context.Context, r *format.Request, h hop, v *format.Values, leave fresh) response {
	ctx, p := s.patience(ctx)
	defer p.end()

	q := s.request(r, h, v)
	if h.body && len(r.Body) > 0 {
		q.ContentLength = int64(len(r.Body))
		// net/http needs it if a kept connection fails before a byte was written.
		q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		q.Body, _ = q.GetBody()
	}
	a := new(once.Exchange)
	if leave != nil {
		a.Leave = leave
	}
	out := response{began: time.Now()}
	res, err := s.base.Send(q.WithContext(ctx), a)
	if out.lapsed = errors.Is(err, once.ErrLapsed); out.lapsed {
		return out
	}
	if err == nil {
		err = s.read(ctx, r, &out, res, p.pause)
	}
	out.ended = time.Now()
	if err != nil {
		if p.isOver(ctx) { // the attempt took too long, though net/http calls it cancelled
			out.err, out.sight = s.late, neterr.OfError(past, context.DeadlineExceeded)
		} else {
			out.err, out.sight = s.reason(ctx, s.secrets.Of(r), err), neterr.OfError(ctx, err)
			if out.way = s.proxies.Blame(q.URL, err); out.way != nil {
				out.err = out.way
			}
		}
	} else {
		out.way = s.proxies.Answered(q.URL, out.status)
	}
	var began time.Time
	out.written, began, out.rtt = a.Times(out.ended)
	if out.written {
		out.began = began
	}
	return out
}

// read takes in an answer.
func (s *sender) read(ctx context.Context, r *format.Request, out *response, res *http.Response,
	pause func(bool)) (err error) {
	out.status, out.header = res.StatusCode, res.Header
	if out.switched = out.status == http.StatusSwitchingProtocols && !classify.Upgrades(res.Request.Header); out.switched {
		return res.Body.Close() // what follows is in another protocol
	}
	length := res.ContentLength
	if res.Request.Method == http.MethodHead {
		length = 0 // the answer to HEAD has the length that GET would have, and no body
	}
	body := io.Reader(res.Body)
	switch codings := decode.Of(res.Header); {
	case codings.None() || length == 0:
	case codings.Known() && out.status != http.StatusPartialContent: // a part begins anywhere
		// As net/http does if it asked for gzip itself: results have the text, whoever asked.
		body, length = codings.NewReader(res.Body), -1
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
	default:
		out.coded = true
	}
	out.body, err = s.memory.read(ctx, &out.share, body, length, s.maxResponse+1, pause)
	if int64(len(out.body)) > s.maxResponse {
		if s.files != nil && err == nil && out.status/100 == 2 {
			if out.saved, err, out.unsaved = s.files.Stream(r.ID, s.secrets.Of(r), out.header,
				out.status == http.StatusPartialContent, out.body, body); errors.Is(err, output.ErrTooLong) {
				out.tooLong, err = true, nil
			}
		}
		out.body, out.cut = out.body[:s.maxResponse], true
	}
	res.Body.Close()
	return err
}

// reason makes an error fit to be shown. It says why the context ended, and has no URL and no
// secret.
func (s *sender) reason(ctx context.Context, hide hide.Finder, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	msg := withoutAddresses(err.Error())
	msg = strings.TrimPrefix(msg, "net/http: ")
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		msg = "the connection was closed before the whole answer was read"
	}
	msg, _ = hide.HideIn(msg)
	return inWordsOf{msg, err}
}

// inWordsOf is an error in words that can be shown. What it was can still be asked.
type inWordsOf struct {
	text string
	err  error
}

// inWords is the error without what it was: of that, sight and written have what counts.
func (r *response) inWords() error {
	if e, ok := r.err.(inWordsOf); ok {
		return errors.New(e.text)
	}
	return r.err
}

func (e inWordsOf) Error() string { return e.text }
func (e inWordsOf) Unwrap() error { return e.err }

// hop is the destination of an attempt: the request's own URL, or that of a redirect. foreign says
// that a server named it and that keys may not go there. A redirect from a foreign hop back home
// stays foreign, since the foreign server chose the URL.
type hop struct {
	url     *url.URL
	host    string // name under which its outage is kept
	method  string
	body    bool
	foreign bool
	count   int
}

func firstHop(r *format.Request) hop {
	h := hop{url: r.URL, host: hostOf(r.URL), method: r.Method, body: true}
	if r.URL != nil && r.URL.User != nil {
		with := *r.URL
		with.User = nil // request takes it from r, and no result shows it
		h.url = &with
	}
	return h
}

// user returns the user and the password in the URL of a request, if they belong to a hop: to the
// host of that URL and to no other, whatever hosts get the keys.
func (h *hop) user(r *format.Request) *url.Userinfo {
	if r.URL.User == nil || h.foreign || !(secret.Places{secret.PlaceOf(r.URL)}).Have(h.url) {
		return nil
	}
	return r.URL.User
}

// request returns the HTTP request that is sent, without its body.
func (s *sender) request(r *format.Request, h hop, v *format.Values) *http.Request {
	header, query := s.header, s.query
	if h.foreign {
		header, query = nil, nil
	}
	u := h.url
	if raw := httptext.ASCIIQuery(u.RawQuery); len(query) > 0 || len(raw) > len(u.RawQuery) {
		with := *u
		with.RawQuery = format.SetQuery(raw, query, v)
		u = &with
	}
	q := &http.Request{Method: h.method, URL: u, Header: s.common, Host: u.Host}
	user := h.user(r)
	if len(header) == 0 && len(r.Header) == 0 && user == nil {
		return q
	}
	q.Header = http.Header{}
	for name, all := range r.Header {
		switch {
		case name == "Host":
			if !h.foreign {
				q.Host = all[0]
			}
		case h.foreign && slices.ContainsFunc(all, func(v string) bool { return s.secrets.Of(r).StaysHome(name, v) }):
		case !h.body && name == "Content-Type":
		default:
			q.Header[name] = all
		}
	}
	if q.Header["User-Agent"] == nil {
		q.Header["User-Agent"] = s.common["User-Agent"]
	}
	for _, t := range header {
		if http.CanonicalHeaderKey(t.Name()) == "Host" {
			q.Host = t.Fill(v)
			continue
		}
		q.Header.Set(t.Name(), t.Fill(v))
	}
	if user != nil && q.Header["Authorization"] == nil {
		password, _ := user.Password()
		q.SetBasicAuth(user.Username(), password)
	}
	return q
}

// follow returns the hop to which res redirects from h. Its method and body follow the rules of
// browsers.
func (s *sender) follow(r *format.Request, h hop, res *response) (hop, error) {
	location := res.header.Get("Location")
	to, err := h.url.Parse(location)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		// Characters of a key that may not be in a URL can be the reason.
		if key, found := s.secrets.Of(r).Holds(location); found {
			return h, fmt.Errorf("not followed: where it leads has the value of %s, and is no URL", key)
		}
		return h, errors.New("redirected to no http or https URL")
	}
	to.Fragment, to.RawFragment, to.User = "", "", nil
	n := h
	n.url, n.host = to, hostOf(to)
	n.count++
	n.foreign = h.foreign || !append(secret.Places{secret.PlaceOf(r.URL)}, s.places...).Keep(h.url, to)
	switch res.status {
	case http.StatusSeeOther:
		if h.method != http.MethodHead {
			n.method = http.MethodGet
		}
		n.body = false
	case http.StatusMovedPermanently, http.StatusFound:
		if h.method == http.MethodPost {
			n.method, n.body = http.MethodGet, false
		}
	}
	if n.foreign {
		err = s.leave(r, &n)
	}
	return n, err
}

// keyStays is the reason why a redirect is not followed. With --key-host it would be.
type keyStays struct{ error }

// leave removes from a hop to a foreign host all that this host must not see. It fails if keys are
// left that cannot be removed.
func (s *sender) leave(r *format.Request, n *hop) error {
	refuse := func(what, key string) error {
		host, _ := s.secrets.Of(r).HideIn(n.url.Host)
		return keyStays{fmt.Errorf("not followed to %s: %s has the value of %s (--key-host)", host, what, key)}
	}
	n.url.RawQuery = s.secrets.Of(r).WithoutKeys(n.url.RawQuery)
	if key, found := s.secrets.Of(r).Holds(n.url.String()); found {
		return refuse("its URL", key)
	}
	if key, found := s.secrets.Of(r).Holds(string(r.Body)); found && n.body {
		return refuse("the body", key)
	}
	return nil
}

func isRedirect(status int) bool { return slices.Contains([]int{301, 302, 303, 307, 308}, status) }

var addresses = regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]?( [^ ]+)?: | on [^ ]+:\d+\b`)

// withoutAddresses removes from an error of package net the addresses, whose ports differ each
// time.
func withoutAddresses(msg string) string { return addresses.ReplaceAllString(msg, "") }
