package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/paceline-go/paceline/limit"
)

// linkOfStatus returns what an answer shows of the way to a server, by its status.
func linkOfStatus(status int) limit.Link {
	if status >= http.StatusInternalServerError {
		return limit.Broken
	}
	return limit.Working
}

// Away reports whether an answer may stand for a server that is away: 502 and 503, which a gateway or a
// balancer gives in its place. A 500 may be the fault of its request. A 504 comes only after the
// gateway's own patience, and so may be that of one slow request.
func Away(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable
}

// LinkOf returns what a failed attempt shows of the way to a server, as limit.Outcome has it. The
// error comes from net/http, or from code that dials and writes by itself. LinkOf looks at types and
// numbers, not at words.
//
// ctx is the context of the attempt. A cancelled context shows nothing. A context whose deadline came
// shows only that nothing had come by then. Whether anything was sent is another question: a server
// may refuse a certificate after the request has left. Only the writer knows.
func LinkOf(ctx context.Context, err error) limit.Link {
	switch {
	case err == nil:
		return limit.Implied
	case local(err):
		return limit.NoFiles
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, context.Canceled):
		return limit.Implied
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return past(ctx, limit.NoName)
	}
	if isBadCertificate(err) {
		return limit.BadCertificate
	}
	// It does not speak TLS.
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return limit.Unreachable
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		switch op.Op {
		case "dial", "proxyconnect", "socks connect":
			return past(ctx, limit.Unreachable)
		case "remote error": // a TLS alert: the server refuses our side
			return limit.BadCertificate
		}
	}
	for _, no := range unreachable {
		if errors.Is(err, no) {
			return limit.Unreachable
		}
	}
	return limit.Silent
}

// past returns Silent if the caller's deadline came before any sign of the network.
func past(ctx context.Context, s limit.Link) limit.Link {
	if ctx.Err() != nil {
		return limit.Silent
	}
	return s
}

var unreachable = []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH}

// local reports whether this machine ran out of something: files, or ports to connect from.
func local(err error) bool {
	name, looked := errors.AsType[*net.DNSError](err)
	for _, none := range exhausted {
		// A look-up keeps only the words of the error that stood in its way.
		if errors.Is(err, none) || looked && strings.HasSuffix(name.Err, none.Error()) {
			return true
		}
	}
	return false
}

// isBadCertificate reports whether this side refused the server's certificate, so that there was no
// connection.
func isBadCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok
}
