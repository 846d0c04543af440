// Package outgoing finds the HTTP or SOCKS proxy through which requests leave this machine's
// network. It also distinguishes the errors of that proxy from those of the server behind it.
//
// Environment variables contain the proxy's address: HTTP_PROXY for http URLs, HTTPS_PROXY for
// https URLs. If one of the two is not set, ALL_PROXY counts in its place. NO_PROXY lists the hosts
// that need no proxy. Requests to localhost and to loopback addresses never go through a proxy. The
// names may be in lower case, too, as in http_proxy. If both forms are set, the one in capitals
// counts.
//
// If the proxy's address is malformed, FromEnvironment fails at once, since each request would fail
// for it later. The address may contain a password, so no error shows the whole value. The error
// about a malformed address shows only the name of the variable. Later errors show the name, and
// the proxy's host and port.
//
// Package outgoing starts no goroutine and owns no clock. A Proxies, the value that FromEnvironment
// returns, is safe for concurrent use.
package outgoing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxies are the proxies of the environment. The zero value and nil have none.
type Proxies struct {
	of        func(*url.URL) (*url.URL, error)
	variables map[string]string // for each address of a proxy, the variable that names it
}

// FromEnvironment reads the variables of the environment. Its error names the variable, and neither
// its value nor a part of it.
func FromEnvironment() (*Proxies, error) {
	p := &Proxies{variables: map[string]string{}}
	config := httpproxy.FromEnvironment()
	for prefix, proxy := range map[string]*string{"HTTP": &config.HTTPProxy, "HTTPS": &config.HTTPSProxy} {
		*proxy = ""
		name, value := first(prefix+"_PROXY", "ALL_PROXY")
		if value == "" || prefix == "HTTP" && config.CGI { // the client's field Proxy may be HTTP_PROXY then
			continue
		}
		u, err := check(value)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		*proxy, p.variables[address(u)] = u.String(), name
	}
	config.CGI = false
	p.of = config.ProxyFunc()
	return p, nil
}

// first returns the first of the variables that is set, in capitals or not, and its value.
func first(names ...string) (name, value string) {
	for _, name := range names {
		for _, name := range []string{name, strings.ToLower(name)} {
			if value := os.Getenv(name); value != "" {
				return name, value
			}
		}
	}
	return "", ""
}

// schemes are those of proxies that net/http speaks to.
var schemes = []string{"http", "https", "socks5", "socks5h"}

// check returns the URL of a proxy in the form that net/http takes.
func check(v string) (*url.URL, error) {
	if !strings.Contains(v, "://") {
		v = "http://" + v
	}
	if rest, ok := strings.CutPrefix(v, "socks://"); ok { // as desktops write it
		v = "socks5://" + rest
	}
	u, err := url.Parse(v)
	switch {
	case err != nil, u.Hostname() == "", u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("is no address of a proxy, such as http://user:password@host:8080; in a password, @ : / ? # " +
			"and % are written as %40 %3A %2F %3F %23 and %25")
	case !slices.Contains(schemes, strings.ToLower(u.Scheme)):
		return nil, fmt.Errorf("has another scheme, expected one of %s", strings.Join(schemes, ", "))
	}
	u.Scheme = strings.ToLower(u.Scheme)
	return u, nil
}

// For returns the proxy of a URL, for http.Transport.Proxy; nil: there is none.
func (p *Proxies) For(u *url.URL) *url.URL {
	if p == nil || p.of == nil || u == nil {
		return nil
	}
	via, err := p.of(u)
	if err != nil { // cannot be: its address was checked
		return nil
	}
	return via
}

// Set makes a transport send through the proxies. Errors of the way to them, and of what they answer
// to CONNECT, hold an Error.
func (p *Proxies) Set(t *http.Transport) {
	t.Proxy = func(r *http.Request) (*url.URL, error) { return p.For(r.URL), nil }
	if p == nil {
		return
	}
	t.OnProxyConnectResponse = p.connected
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if variable := p.variables[address]; err != nil && variable != "" {
			err = &Error{Proxy: address, Variable: variable, Why: "cannot be reached: " + innermost(err), Err: err}
		}
		return c, err
	}
}

// connected is an http.Transport.OnProxyConnectResponse. Its error has the type that errors of the
// way to a proxy have, so that it is known that nothing of the request was written.
func (p *Proxies) connected(_ context.Context, via *url.URL, to *http.Request, r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return nil
	}
	e := p.failed(via, errors.New(r.Status))
	if r.StatusCode == http.StatusProxyAuthRequired {
		e.password(via)
	} else {
		e.Why = fmt.Sprintf("answers %q where it was asked for the way to %s", r.Status, to.Host)
		e.Forbids = r.StatusCode >= 400 && r.StatusCode < 500 && r.StatusCode != http.StatusRequestTimeout &&
			r.StatusCode != http.StatusTooManyRequests
	}
	return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: e}
}

// Prefix is how each text of an Error begins.
const Prefix = "the proxy "

// Error is a failure of a proxy, or on the way to it. Its text has the proxy's host and the
// variable that names it.
type Error struct {
	Proxy    string // its host and port
	Variable string // the variable of the environment that names it
	Why      string
	// Refuses means that it refuses all: it wants a user and a password, or others than it got.
	Refuses bool
	// Forbids means that it does not let this request out.
	Forbids bool
	Err     error
}

func (e *Error) Error() string { return Prefix + e.Proxy + " (" + e.Variable + ") " + e.Why }
func (e *Error) Unwrap() error { return e.Err }

const socks = "socks connect"

// Blame returns the failure of a proxy that an error of a request to u shows; nil: it shows none.
func (p *Proxies) Blame(u *url.URL, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	op, ok := errors.AsType[*net.OpError](err)
	via := p.For(u)
	if !ok || op.Op != socks || via == nil {
		return nil
	}
	e := p.failed(via, err)
	if said := op.Err.Error(); strings.Contains(said, "authentication") {
		e.password(via)
	} else {
		e.Why = fmt.Sprintf("does not reach %s: %s", u.Host, strings.TrimPrefix(said, "unknown error "))
	}
	return e
}

// Answered returns the failure of the proxy that an answer to a request to u shows; nil: it shows
// none. Over http a proxy answers in place of the server.
func (p *Proxies) Answered(u *url.URL, code int) *Error {
	if code != http.StatusProxyAuthRequired || u.Scheme != "http" {
		return nil
	}
	via := p.For(u)
	if via == nil || !strings.HasPrefix(via.Scheme, "http") {
		return nil
	}
	e := p.failed(via, nil)
	e.password(via)
	return e
}

func (p *Proxies) failed(via *url.URL, err error) *Error {
	return &Error{Proxy: via.Host, Variable: p.variables[address(via)], Err: err}
}

// password says that the proxy wants a user and a password.
func (e *Error) password(via *url.URL) {
	e.Refuses = true
	if e.Why = "wants a user and a password (407)"; via.User != nil {
		e.Why = "refuses the user and the password of that variable (407)"
	}
}

// address returns the host and port of a proxy, as it is dialled.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(port, "1080"))
}

// innermost is the text of the cause of an error, without the addresses around it.
func innermost(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name cannot be resolved: " + name.Err
	}
	for {
		op, ok := errors.AsType[*net.OpError](err)
		if !ok {
			break
		}
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err.Error()
}
