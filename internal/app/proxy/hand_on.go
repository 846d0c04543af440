package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/transport"
)

// fieldHanded is in requests of the former process to the next one: a passage. A client's own field of
// this name does not get there.
const fieldHanded = "Paceline-Handed"

// passage is what the former process knows of a request beside its text.
type passage struct {
	Remote     string        `json:"remote"`
	TLS        bool          `json:"tls,omitempty"`
	HTTP10     bool          `json:"http10,omitempty"`
	Scheme     string        `json:"scheme,omitempty"` // of a whole URL
	Host       string        `json:"host,omitempty"`
	Credential string        `json:"credential,omitempty"` // by which it reached the forward proxy
	Waited     time.Duration `json:"waited"`
	Ago        time.Duration `json:"ago"` // when it came
}

// heir is the way to the process that has taken over.
type heir struct {
	proxy        *httputil.ReverseProxy
	plain, multi *http.Transport // for requests of HTTP/1 and HTTP/2
}

// newHeir returns the way to the process that listens at a path, whichever that is by then.
func newHeir(path string, log *slog.Logger) *heir {
	h := &heir{plain: wayTo(path), multi: wayTo(path)}
	h.multi.Protocols.SetHTTP1(false)
	h.multi.Protocols.SetUnencryptedHTTP2(true)
	h.proxy = &httputil.ReverseProxy{
		Rewrite: rewriteHanded, Transport: h, BufferPool: buffers{}, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode != http.StatusSwitchingProtocols {
				r.Header.Set("Connection", "close") // the client's next connection leads to the next process
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			log.Debug("a request is not handed on", "err", err)
			visitOf(r.Context()).unreached()
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return h
}

// wayTo is a transport of HTTP/1 to a Unix socket.
func wayTo(path string) *http.Transport {
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return daemon.DialHandover(ctx, path) },
		DisableCompression: true, ExpectContinueTimeout: time.Second, MaxIdleConnsPerHost: 1024,
		IdleConnTimeout: 10 * time.Second, // well before the other end's
		Protocols:       new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// RoundTrip implements http.RoundTripper.
func (h *heir) RoundTrip(r *http.Request) (*http.Response, error) {
	if visitOf(r.Context()).in.ProtoMajor > 1 {
		return h.multi.RoundTrip(r)
	}
	return h.plain.RoundTrip(r)
}

func (h *heir) closeIdle() {
	h.plain.CloseIdleConnections()
	h.multi.CloseIdleConnections()
}

// goesOn reports whether the next process has to send a request that failed with err here. Nothing of
// it is at the server.
func (v *visit) goesOn(err error) bool {
	return v.proxy.heir.Load() != nil && !v.handed && v.body.whole() && v.within.Err() == nil &&
		(errors.Is(err, transport.ErrTakenOver) || errors.Is(context.Cause(v.in.Context()), transport.ErrTakenOver) && (!v.sending.Load() || v.unsent))
}

// handOn has the next process answer the request.
func (v *visit) handOn() {
	v.handed = true
	v.sending.Store(true) // it is not in line here
	v.newLine().hands(v.w.ResponseWriter)
	ctx, cancel := context.WithCancelCause(&v.within)
	defer cancel(nil)
	v.again.Store(&cancel)
	v.in = v.in.WithContext(ctx)
	v.proxy.heir.Load().proxy.ServeHTTP(v.w, v.in)
}

// rewriteHanded makes the request for the next process: as it came.
func rewriteHanded(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	v := visitOf(in.Context())
	out.URL = &url.URL{Scheme: "http", Host: "paceline", Path: in.URL.Path, RawPath: in.URL.RawPath,
		RawQuery: in.URL.RawQuery, ForceQuery: in.URL.ForceQuery}
	out.Host = in.Host
	forward.KeepForwarded(pr)
	p := passage{Remote: in.RemoteAddr, TLS: in.TLS != nil, HTTP10: !in.ProtoAtLeast(1, 1), Waited: v.waited(),
		Ago: time.Since(v.came)}
	if v.whole {
		p.Scheme, p.Host, p.Credential = in.URL.Scheme, in.URL.Host, forward.CredentialOf(in.Context())
	}
	text, _ := json.Marshal(p) // cannot fail: every field has a JSON form
	out.Header.Set(fieldHanded, string(text))
	if v.body == nil {
		out.Body, out.GetBody = nil, nil
		return
	}
	out.Body, _ = v.body.again(in.Trailer, out.Trailer)
	out.GetBody = func() (io.ReadCloser, error) { return v.body.again(in.Trailer, out.Trailer) }
}

// serveHanded serves a request that the former process has handed on.
func (p *Proxy) serveHanded(w http.ResponseWriter, r *http.Request) {
	var from passage
	if err := json.Unmarshal([]byte(r.Header.Get(fieldHanded)), &from); err != nil {
		http.Error(w, "expected "+fieldHanded, http.StatusBadRequest)
		return
	}
	r.Header.Del(fieldHanded)
	ctx := r.Context()
	whole := from.Scheme != ""
	if whole {
		ctx = forward.WithCredential(ctx, from.Credential)
	}
	r = r.WithContext(ctx)
	if r.RemoteAddr = from.Remote; whole {
		at := *r.URL
		at.Scheme, at.Host = from.Scheme, from.Host
		r.URL = &at
	}
	if from.TLS {
		r.TLS = &tls.ConnectionState{}
	}
	if from.HTTP10 {
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
	}
	v := &visit{proxy: p.latest.Load(), in: r, came: time.Now().Add(-from.Ago), whole: whole}
	v.waitsMore(paceline.WaitStats{Waited: from.Waited})
	p.visit(w, v)
}

// unreached answers a request that did not reach the next process.
func (v *visit) unreached() {
	if v.within.Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	v.handed = false
	v.refuse(stopping())
}
