package sending

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// Sender sends attempts over HTTP/1.1, each at most once.
type Sender struct {
	base        *send.Base
	direct      http.RoundTripper // nil: base
	transport   *http.Transport   // behind base
	header      []format.Template
	query       []format.Template
	timeout     time.Duration
	proxies     *outgoing.Proxies
	late        lateError // of an attempt that took longer than timeout
	watch       *send.Watch
	lines       lines
	maxResponse int64
	Memory      *memory
	files       *output.Bodies // nil: bodies are in the results, cut at maxResponse
	common      http.Header    // for requests without fields of their own; it is shared and never changed
	secrets     *format.Secrets
	places      secret.Places // where keys may follow a redirect, beside the host of the line
}

// Config describes a sender.
type Config struct {
	Header, Query []format.Template
	Secrets       *format.Secrets
	Places        secret.Places  // where keys may follow a redirect, beside the host of the line
	Files         *output.Bodies // nil: bodies are in the results, cut at MaxResponse
	MaxResponse   int64
	UserAgent     string

	Timeout     time.Duration // of an attempt
	Connections int           // kept to each host
	TLS         *tls.Config
	Dial        func(ctx context.Context, network, address string) (net.Conn, error) // nil: a net.Dialer
	Proxies     *outgoing.Proxies
	// Base, if not nil, sends in place of connections of the sender's own. It fails with an *Unsent if
	// nothing of a request was written.
	Base http.RoundTripper
}

// New returns a sender over connections of its own.
func New(c Config) *Sender {
	t := newTransport(c)
	return &Sender{
		base: send.Lines(t), direct: c.Base, transport: t, proxies: c.Proxies, files: c.Files,
		header: c.Header, query: c.Query, timeout: c.Timeout, late: lateError(fmt.Sprintf("no answer within %v", c.Timeout)),
		watch: send.NewWatch(max(c.Timeout, 1)), maxResponse: c.MaxResponse, Memory: &memory{limit: heldAnswers},
		common:  http.Header{"User-Agent": {c.UserAgent}},
		secrets: c.Secrets, places: c.Places,
	}
}

// newTransport returns the connections of a sender.
func newTransport(c Config) *http.Transport {
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
		MaxIdleConnsPerHost: max(c.Connections, 1),
		IdleConnTimeout:     90 * time.Second,
		// A server may describe its whole limit in header fields, but must not fill the memory with
		// them.
		MaxResponseHeaderBytes: 1 << 20,
	}
	c.Proxies.Set(t)
	return t
}

// Response is how one attempt ended.
type Response struct {
	Status   int // 0: no answer
	Header   http.Header
	Body     []byte
	Share    share             // of the memory for bodies
	Cut      bool              // the body is longer
	Coded    bool              // the body is in a content coding that is not read
	Saved    *output.SavedBody // the file with the whole body; nil: there is none, or not yet
	Unsaved  error             // why the body could not be written
	TooLong  bool              // the body is longer than a file may be
	Err      error
	Way      *outgoing.Error // what is wrong with the proxy on the way out; nil: nothing
	Sight    limit.Link      // evidence in err about the way to the host
	Switched bool            // to a protocol that was not asked for
	Lapsed   bool            // nothing was written, since its leave had lapsed
	Written  bool            // at least a byte may have left
	Began    time.Time       // before the first byte was written
	InLine   time.Duration   // how long it waited in a Base before
	Ended    time.Time       // after the answer was read
	RTT      time.Duration   // from after the last byte was written; 0: not known
}

// CutAt says where a secret in the body may be cut off.
func (r *Response) CutAt() secret.Cut {
	switch {
	case r.Status == http.StatusPartialContent:
		return secret.CutStart | secret.CutEnd
	case r.Cut || r.Err != nil:
		return secret.CutEnd
	}
	return secret.Whole
}

// Fresh reports, right before the first byte is written, whether the attempt may go.
type Fresh func() bool

// Fresh implements an interface of package send.
func (f Fresh) Fresh() bool { return f() }

// Send makes one attempt, and overwrites out with how it ended. It calls leave, if not nil, right before the
// first write. If leave returns false, nothing is written and the response has lapsed.
func (s *Sender) Send(ctx context.Context, r *format.Request, h Hop, v *format.Values, leave Fresh, out *Response) {
	p := &patience{s: s, wire: send.Exchange{Expires: true, Body: true}}
	if p.wire.Interim = p; leave != nil {
		p.wire.Leave = leave
	}
	if s.direct != nil {
		ctx, p.cancel = context.WithCancelCause(ctx)
		defer p.cancel(nil)
	}
	*out = Response{Began: time.Now()}
	p.begin(out.Began)
	defer p.end()

	var q http.Request // it stays on the stack
	s.request(&q, r, h, v)
	if h.body && len(r.Body) > 0 {
		q.ContentLength = int64(len(r.Body))
		// net/http needs it if a kept connection fails before a byte was written.
		q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		q.Body, _ = q.GetBody()
	}
	res, err := s.trip(ctx, &q, &p.wire, out)
	if out.Lapsed = p.lapsed(err) || errors.Is(err, send.ErrLapsed); out.Lapsed {
		return
	}
	if err == nil {
		err = s.read(ctx, r, out, res, p.pause)
	}
	out.Ended = time.Now()
	if err != nil {
		if p.over.Load() { // the attempt took too long, though net/http calls it cancelled
			out.Err, out.Sight = s.late, classify.LinkOf(past, context.DeadlineExceeded)
		} else {
			out.Err, out.Sight = s.reason(ctx, s.secrets.Of(r), err), classify.LinkOf(ctx, err)
			if out.Way = s.proxies.Blame(q.URL, err); out.Way != nil {
				out.Err = out.Way
			}
		}
	} else {
		out.Way = s.proxies.Answered(q.URL, out.Status)
	}
	s.wrote(&p.wire, out)
	p.timed(out)
}

// read takes in an answer.
func (s *Sender) read(ctx context.Context, r *format.Request, out *Response, res *http.Response,
	pause func(bool)) (err error) {
	out.Status, out.Header = res.StatusCode, res.Header
	if out.Switched = out.Status == http.StatusSwitchingProtocols && !classify.Upgrades(res.Request.Header); out.Switched {
		return res.Body.Close() // what follows is in another protocol
	}
	length := res.ContentLength
	if res.Request.Method == http.MethodHead {
		length = 0 // the answer to HEAD has the length that GET would have, and no body
	}
	body := io.Reader(res.Body)
	switch codings := decode.Of(res.Header); {
	case codings.None() || length == 0:
	case codings.Known() && out.Status != http.StatusPartialContent: // a part begins anywhere
		// As net/http does if it asked for gzip itself: results have the text, whoever asked.
		body, length = codings.NewReader(res.Body), -1
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
	default:
		out.Coded = true
	}
	out.Body, err = s.Memory.read(ctx, &out.Share, body, length, s.maxResponse+1, pause)
	if int64(len(out.Body)) > s.maxResponse {
		if s.files != nil && err == nil && out.Status/100 == 2 {
			if out.Saved, err, out.Unsaved = s.files.Stream(r.ID, s.secrets.Of(r), out.Header,
				out.Status == http.StatusPartialContent, out.Body, body); errors.Is(err, output.ErrTooLong) {
				out.TooLong, err = true, nil
			}
		}
		out.Body, out.Cut = out.Body[:s.maxResponse], true
	}
	res.Body.Close()
	return err
}

// reason makes an error fit to be shown. It says why the context ended, and has no URL and no
// secret.
func (s *Sender) reason(ctx context.Context, hide format.Finder, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	msg := withoutAddresses(err.Error())
	if errors.Is(err, context.Canceled) {
		msg = "the run broke it off before its answer"
	}
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

// InWords is the error without what it was: of that, sight and written have what counts.
func (r *Response) InWords() error {
	if e, ok := r.Err.(inWordsOf); ok {
		return errors.New(e.text)
	}
	return r.Err
}

func (e inWordsOf) Error() string { return e.text }
func (e inWordsOf) Unwrap() error { return e.err }

// Hop is the destination of an attempt: the request's own URL, or that of a redirect. foreign says
// that a server named it and that keys may not go there. A redirect from a foreign hop back home
// stays foreign, since the foreign server chose the URL.
type Hop struct {
	URL     *url.URL
	Host    string // name under which its outage is kept
	Method  string
	body    bool
	Foreign bool
	Count   int
}

func FirstHop(r *format.Request) Hop {
	h := Hop{URL: r.URL, Host: HostOf(r.URL), Method: r.Method, body: true}
	if r.URL != nil && r.URL.User != nil {
		with := *r.URL
		with.User = nil // request takes it from r, and no result shows it
		h.URL = &with
	}
	return h
}

// user returns the user and the password in the URL of a request, if they belong to a hop: to the
// host of that URL and to no other, whatever hosts get the keys.
func (h *Hop) user(r *format.Request) *url.Userinfo {
	if r.URL.User == nil || h.Foreign || !(secret.Places{secret.PlaceOf(r.URL)}).Have(h.URL) {
		return nil
	}
	return r.URL.User
}

// request makes q the HTTP request that is sent, without its body.
func (s *Sender) request(q *http.Request, r *format.Request, h Hop, v *format.Values) {
	header, query := s.header, s.query
	if h.Foreign {
		header, query = nil, nil
	}
	u := h.URL
	if raw := send.ASCIIQuery(u.RawQuery); len(query) > 0 || len(raw) > len(u.RawQuery) {
		with := *u
		with.RawQuery = format.SetQuery(raw, query, v)
		u = &with
	}
	*q = http.Request{Method: h.Method, URL: u, Header: s.common, Host: u.Host}
	user := h.user(r)
	if len(header) == 0 && len(r.Header) == 0 && user == nil {
		return
	}
	q.Header = http.Header{}
	for name, all := range r.Header {
		switch {
		case name == "Host":
			if !h.Foreign {
				q.Host = all[0]
			}
		case h.Foreign && slices.ContainsFunc(all, func(v string) bool { return s.secrets.Of(r).StaysHome(name, v) }):
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
}

// Follow returns the hop to which res redirects from h. Its method and body follow the rules of
// browsers.
func (s *Sender) Follow(r *format.Request, h Hop, res *Response) (Hop, error) {
	location := res.Header.Get("Location")
	to, err := h.URL.Parse(location)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		// Characters of a key that may not be in a URL can be the reason.
		if key, found := s.secrets.Of(r).Holds(location); found {
			return h, fmt.Errorf("not followed: where it leads has the value of %s, and is no URL", key)
		}
		return h, errors.New("redirected to no http or https URL")
	}
	to.Fragment, to.RawFragment, to.User = "", "", nil
	n := h
	n.URL, n.Host = to, HostOf(to)
	n.Count++
	n.Foreign = h.Foreign || !append(secret.Places{secret.PlaceOf(r.URL)}, s.places...).Keep(h.URL, to)
	switch res.Status {
	case http.StatusSeeOther:
		if h.Method != http.MethodHead {
			n.Method = http.MethodGet
		}
		n.body = false
	case http.StatusMovedPermanently, http.StatusFound:
		if h.Method == http.MethodPost {
			n.Method, n.body = http.MethodGet, false
		}
	}
	if n.Foreign {
		err = s.leave(r, &n)
	}
	return n, err
}

// KeyStays is the reason why a redirect is not followed. With --key-host it would be.
type KeyStays struct{ error }

// leave removes from a hop to a foreign host all that this host must not see. It fails if keys are
// left that cannot be removed.
func (s *Sender) leave(r *format.Request, n *Hop) error {
	refuse := func(what, key string) error {
		host, _ := s.secrets.Of(r).HideIn(n.URL.Host)
		return KeyStays{fmt.Errorf("not followed to %s: %s has the value of %s (--key-host)", host, what, key)}
	}
	n.URL.RawQuery = s.secrets.Of(r).WithoutKeys(n.URL.RawQuery)
	if key, found := s.secrets.Of(r).Holds(n.URL.String()); found {
		return refuse("its URL", key)
	}
	if key, found := s.secrets.Of(r).Holds(string(r.Body)); found && n.body {
		return refuse("the body", key)
	}
	return nil
}

// Through wraps the connections with with. Tests use it for networks of their own.
func (s *Sender) Through(with func(*http.Transport) http.RoundTripper) {
	s.base = send.NewBase(with(s.transport))
}

// Close closes the connections that are idle.
func (s *Sender) Close() { s.base.CloseIdleConnections() }

func IsRedirect(status int) bool { return slices.Contains([]int{301, 302, 303, 307, 308}, status) }

var addresses = regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]?( [^ ]+)?: | on [^ ]+:\d+\b`)

// withoutAddresses removes from an error of package net the addresses, whose ports differ each
// time.
func withoutAddresses(msg string) string { return addresses.ReplaceAllString(msg, "") }

// Unanswered returns in a word or two why there was no answer.
func (res *Response) Unanswered() string {
	_, isLate := errors.AsType[lateError](res.Err)
	var waited net.Error
	switch {
	case isLate, errors.Is(res.Err, os.ErrDeadlineExceeded), errors.As(res.Err, &waited) &&
		waited.Timeout():
		return "timeout"
	case res.Sight == limit.NoName:
		return "unknown host"
	case res.Sight == limit.BadCertificate:
		return "TLS handshake"
	case res.Sight == limit.NoFiles:
		return "no files left here"
	case errors.Is(res.Err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(res.Err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(res.Err, io.EOF), errors.Is(res.Err, io.ErrUnexpectedEOF):
		return "connection closed"
	}
	if e, ok := errors.AsType[syscall.Errno](res.Err); ok {
		return e.Error() // as the system says it: no route to host, network is unreachable
	}
	return "no answer"
}

// HostOf names the server of a URL.
func HostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Sample returns a request as the sender would make it with the first key. The key's name stands in
// place of its value.
func (s *Sender) Sample(q *format.Request, key string) format.PlanRequest {
	s.secrets.Conceal(q)
	place := "[" + key + "]"
	var sent http.Request
	s.request(&sent, q, FirstHop(q),
		&format.Values{Key: place, Token: "[token]", ID: q.ID, Attempt: 1, IsShown: true, Cells: q.Cell})
	return s.secrets.Sample(q, &sent, place)
}
