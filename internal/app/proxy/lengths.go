package proxy

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// A message with a Content-Length and in chunks is read by its chunks, and the connection is closed
// after it (RFC 9112, section 6.3): a server before this one may have read it by its length, and
// what follows might be no request. net/http forgets the length. So each connection counts the
// lines that begin with the name of that field.

// lengths counts lines that begin with Content-Length. Reads of a connection come one after the
// other.
type lengths struct {
	seen, known atomic.Int64
	at          int // of a line: 0: within it; n: its first n-1 bytes are those of the name
}

const lengthField = "content-length"

// scan takes in the bytes that were read.
func (l *lengths) scan(b []byte) {
	for i := 0; i < len(b); {
		if l.at == 0 {
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				return
			}
			l.at, i = 1, i+end+1
			continue
		}
		c := b[i]
		switch {
		case l.at > len(lengthField):
			if l.at = 0; c == ':' {
				l.seen.Add(1)
			}
		case c|0x20 == lengthField[l.at-1] || c == lengthField[l.at-1]:
			l.at++
			i++
		default:
			l.at = 0
		}
	}
}

type connKey struct{}

// withConn keeps the connection of a client in the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, k)
	}
	return ctx
}

// twoLengths reports whether the connection of a request must end with it, since the request may
// have a length and chunks. Over TLS nothing tells, so each request in chunks ends its connection.
func twoLengths(r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	chunked := len(r.TransferEncoding) > 0
	if r.TLS != nil {
		return chunked
	}
	k, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return chunked // nothing counts here either
	}
	if r.Header["Content-Length"] != nil {
		k.lengths.known.Add(1)
	}
	return chunked && k.lengths.seen.Load() > k.lengths.known.Load()
}
