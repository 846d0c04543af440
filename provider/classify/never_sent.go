package classify

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// NeverSent reports whether an error of an http.RoundTripper or http.Client proves that nothing of
// a request was written. There was no name, no route or no connection, not even to a proxy, or no
// TLS on it. The error is about its own try alone. An http.Transport with a kept connection may
// have tried before, if the request is idempotent. So if every byte matters, watch the connection
// and set Evidence.Wrote.
func NeverSent(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Op == "dial" || e.Op == "proxyconnect" || e.Op == "socks connect"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return e.Conn != nil // the first error of a read; if Conn is nil, the handshake was over
	}
	return isBadCertificate(err) || errors.Is(err, http.ErrSchemeMismatch) || strings.HasSuffix(err.Error(), "net/http: TLS handshake timeout")
}
