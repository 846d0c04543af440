// Package neterr says what an error of net/http, or of whatever dials and writes by itself, shows of the way to a server: for
// package breaker, by limit.Outcome.Link. It looks at types and numbers, not at words.
//
// Whether anything was sent is another question, and not this package's: a certificate may be refused by the server when the
// request has left. Only who writes knows.
package neterr

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

// OfStatus returns what an answer shows, by its status.
func OfStatus(status int) limit.Link {
	if status >= http.StatusInternalServerError {
		return limit.Broken
	}
	return limit.Working
}

// OfError returns what a failed attempt shows. ctx is the context it was made with: a caller who gave up shows nothing, and
// one whose deadline came no more than that nothing had come by then.
func OfError(ctx context.Context, err error) limit.Link {
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
	if IsBadCertificate(err) {
		return limit.BadCertificate
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) { // it does not speak TLS
		return limit.Unreachable
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		switch op.Op {
		case "dial", "proxyconnect":
			return past(ctx, limit.Unreachable)
		case "remote error": // an alert of TLS: it does not like ours
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

// past is Silent where the caller's deadline came before the network said anything.
func past(ctx context.Context, s limit.Link) limit.Link {
	if ctx.Err() != nil {
		return limit.Silent
	}
	return s
}

var unreachable = []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH}

// local tells of what this machine had none left of: files, or ports to connect from.
func local(err error) bool {
	name, looked := errors.AsType[*net.DNSError](err)
	for _, none := range exhausted {
		// A look-up keeps nothing but the words of what stood in its way.
		if errors.Is(err, none) || looked && strings.HasSuffix(name.Err, none.Error()) {
			return true
		}
	}
	return false
}

// IsBadCertificate tells whether the server's certificate was refused here, so that no connection came to be.
func IsBadCertificate(err error) bool {
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
