package classify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// A request without an answer is sent again if that does no harm. It counts as nothing if nothing
// was written. In all combinations.
func TestUnanswered(t *testing.T) {
	for _, wrote := range []classify.Wrote{classify.Nothing, classify.Unclear, classify.Something} {
		for _, idempotent := range []bool{false, true} {
			for _, repeat := range []bool{false, true} {
				p := classify.Policy{Repeat: repeat}
				v := p.Of(&classify.Evidence{Err: errors.New("reset by peer"), Wrote: wrote, Idempotent: idempotent, Now: noon})
				unsent := wrote == classify.Nothing
				harmless := unsent || idempotent || repeat
				want := limit.Unknown
				if unsent {
					want = limit.Unsent
				}
				if v.Result != want || v.Invalid == harmless || v.Again != harmless || v.Status != 0 {
					t.Errorf("wrote %v, idempotent %v, repeat %v: %v, invalid %v, again %v", wrote, idempotent, repeat, v.Result, v.Invalid, v.Again)
				}
			}
		}
	}
}

// The law of what may have been served is one for all doors: it does not depend on whether a repeat
// does harm, nor on who decides about one.
func TestMayHaveServed(t *testing.T) {
	cut := errors.New("unexpected EOF")
	yes := map[string]classify.Evidence{
		"no answer": {Err: cut, Wrote: classify.Something}, "half of one": {Status: 200, Err: cut}, "an empty one, broken off": {Status: 204, Err: cut},
		"a redirect, broken off": {Status: 302, Err: cut}, "101, not asked for": {Status: 101}, "503": {Status: 503}, "529": {Status: 529},
		"400 in words of an overload": {Status: 503, Provider: dialect("anthropic"), Body: []byte(`{"type":"error","error":{"type":"overloaded_error"}}`)},
	}
	for _, status := range []int{408, 500, 502, 504, 507, 508, 511, 520, 521, 522, 523, 524, 525, 527, 530, 598, 599} {
		yes[fmt.Sprint(status)] = classify.Evidence{Status: status}
	}
	no := map[string]classify.Evidence{
		"never sent": {Err: cut, Wrote: classify.Nothing}, "whole": {Status: 200}, "101, asked for": {Status: 101, Upgrade: true}, "425": {Status: 425},
		"429": {Status: 429}, "429, broken off": {Status: 429, Err: cut}, "503 with Retry-After": {Status: 503, Header: header("Retry-After", "1")},
		"a lock": {Status: 423}, "a nonce": {Status: 200, Provider: dialect("kraken"), Header: header("Content-Type", "application/json"), Body: []byte(`{"error":["EAPI:Invalid nonce"]}`)},
	}
	for _, status := range []int{400, 401, 403, 404, 409, 410, 413, 422, 501, 505} {
		no[fmt.Sprint(status)] = classify.Evidence{Status: status}
	}
	for want, all := range map[bool]map[string]classify.Evidence{true: yes, false: no} {
		for name, in := range all {
			for i := range 8 {
				in.Idempotent, in.Last, in.Once, in.Now = i&1 != 0, i&2 != 0, i&4 != 0, noon
				for _, repeat := range []bool{false, true} {
					p := classify.Policy{Repeat: repeat}
					v := p.Of(&in)
					if v.Doubt != want {
						t.Errorf("%s, %d, repeat %v: doubt %v", name, i, repeat, v.Doubt)
					}
					if v.Doubt && v.Again && !in.Idempotent && !repeat {
						t.Errorf("%s, %d: sent again though it may have been served", name, i)
					}
				}
			}
		}
	}
}

// A configured provider, or one known by the host, counts whatever an answer looks like. One that
// has shown itself does not.
func TestWhoIsBelieved(t *testing.T) {
	coinbase := dialect("coinbase")
	for _, c := range []struct {
		policy  classify.Policy
		attempt classify.Evidence
		want    string
	}{
		{classify.Policy{Dialect: coinbase}, classify.Evidence{Provider: dialect("slack")}, "coinbase"},
		{classify.Policy{}, classify.Evidence{Provider: coinbase, Shown: dialect("slack")}, "coinbase"},
		{classify.Policy{}, classify.Evidence{Shown: coinbase}, "okx"},
		{classify.Policy{}, classify.Evidence{}, "okx"},
	} {
		c.attempt.Status, c.attempt.Now, c.attempt.Body = 429, noon, []byte(`{"code":"50061"}`)
		if v := c.policy.Of(&c.attempt); v.Said.Dialect != c.want || v.Shown != nil {
			t.Errorf("read as %q, want %q; shown %v", v.Said.Dialect, c.want, v.Shown)
		}
	}
}

// A wait beyond the deadline ends the attempts.
func TestInTime(t *testing.T) {
	var p classify.Policy
	v := p.Of(&classify.Evidence{Status: 429, Header: header("Retry-After", "3"), Now: noon})
	if v.InTime(v.RetryAfter, 3*time.Second); !v.Again {
		t.Errorf("it would be in time: %q", v.Why)
	}
	if v.InTime(v.RetryAfter, 3*time.Second-1); v.Again || !strings.Contains(v.Why, "3s") {
		t.Errorf("again %v, %q", v.Again, v.Why)
	}
}

// Errors that prove that nothing was sent, from a real http.Client.
func TestNeverSent(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }))
	closing.Config.ErrorLog = nil
	defer closing.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	defer secure.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		name, url string
		want      bool
	}{
		{"nobody listens", gone.URL, true},
		{"no such name", "http://no.such.host.invalid/", true},
		{"a certificate nobody knows", secure.URL, true},
		{"no TLS there", strings.Replace(plain.URL, "http:", "https:", 1), true},
		{"closed after reading", closing.URL, false},
	} {
		transport := &http.Transport{}
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodPost, c.url, strings.NewReader("x")))
		transport.CloseIdleConnections()
		if err == nil {
			t.Errorf("%s: it was answered", c.name)
		}
		if got := classify.NeverSent(err); got != c.want {
			t.Errorf("%s: %v: %T %v", c.name, got, err, err)
		}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{context.DeadlineExceeded, false},
		{&net.OpError{Op: "read", Err: io.EOF}, false},
		{&net.OpError{Op: "write", Err: io.EOF}, false},
		{&net.OpError{Op: "proxyconnect", Err: io.EOF}, true},
		{&net.DNSError{Err: "no such host"}, true},
		{&tls.CertificateVerificationError{Err: io.EOF}, true},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, true},
		{x509.UnknownAuthorityError{}, true},
		{x509.CertificateInvalidError{Reason: x509.Expired}, true},
		{tls.RecordHeaderError{Msg: "not TLS"}, false}, // after the handshake
		{errors.New("net/http: TLS handshake timeout"), true},
	} {
		if got := classify.NeverSent(c.err); got != c.want {
			t.Errorf("%T %v: %v", c.err, c.err, got)
		}
	}
}

func TestFrom(t *testing.T) {
	get := httptest.NewRequest(http.MethodGet, "https://api.openai.com/v1/models", nil)
	a := classify.From(get, &http.Response{StatusCode: 429, Header: header("Retry-After", "1")}, nil)
	if a.Status != 429 || !a.Idempotent || a.Once || a.Ended || a.Provider == nil || a.Provider.Name() != "openai" {
		t.Errorf("%+v", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	post := httptest.NewRequest(http.MethodPost, "http://a.test/", strings.NewReader("x")).WithContext(ctx)
	post.GetBody = nil
	a = classify.From(post, nil, io.EOF)
	if a.Status != 0 || a.Err != io.EOF || a.Idempotent || !a.Once || !a.Ended || a.Provider != nil {
		t.Errorf("%+v", a)
	}
	post.Header["Idempotency-Key"] = nil
	if !classify.Idempotent(post) {
		t.Error("the key is there")
	}
}
