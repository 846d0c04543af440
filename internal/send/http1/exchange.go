package http1

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// Body is the body of an answer. Close lets other requests have its connection.
type Body interface {
	io.ReadCloser
	// Pause stops the clock of the deadline, or lets it go on.
	Pause(on bool)
}

// exchange is a connection, with the request on it and then the body of its answer. No other request has it until that body is closed.
type exchange struct {
	client  *Client
	address string
	conn    net.Conn
	raw     syscall.RawConn // nil: there is no way to see whether it is open
	look    func(fd uintptr) bool
	open    bool // look has seen that it is open
	kept    bool // it has served a request before
	since   time.Time

	ctx      context.Context // the connection ends with it
	stop     func() bool
	deadline time.Time

	out  []byte
	in   *bufio.Reader
	room int64 // how many bytes of a header may still be read

	body  io.ReadCloser // of the answer
	whole bool          // the body was read to its end
	last  bool          // no other request may follow on this connection
}

const mostHeader = 1 << 20

func newExchange(c *Client, address string, conn net.Conn) *exchange {
	x := &exchange{client: c, address: address, conn: conn, stop: func() bool { return true }}
	x.in = bufio.NewReader((*source)(x))
	if s, ok := conn.(syscall.Conn); ok {
		x.raw, _ = s.SyscallConn()
	}
	x.look = func(fd uintptr) bool {
		x.open = quiet(fd)
		return true
	}
	return x
}

// errPast is the error of a connection whose deadline has passed.
var errPast = os.ErrDeadlineExceeded

// begin has the connection end with ctx, or at the deadline. It returns false if it has ended already.
func (x *exchange) begin(ctx context.Context, deadline time.Time) bool {
	if x.ctx != ctx { // callers use one ctx for many requests, and AfterFunc is dear
		x.stop()
		x.ctx = ctx
		x.stop = context.AfterFunc(ctx, func() { _ = x.conn.SetDeadline(time.Unix(1, 0)) })
	}
	x.deadline = deadline
	// If ctx ended before this line, ctx.Err tells; if it ends later, the function above overwrites this deadline.
	return x.conn.SetDeadline(deadline) == nil && ctx.Err() == nil
}

// Pause implements Body.
func (x *exchange) Pause(on bool) {
	if on {
		x.deadline = time.Time{}.Add(time.Until(x.deadline)) // the time that is left, counted from the zero Time
		_ = x.conn.SetDeadline(time.Time{})
	} else {
		x.deadline = time.Now().Add(x.deadline.Sub(time.Time{}))
		_ = x.conn.SetDeadline(x.deadline)
	}
	if x.ctx.Err() != nil {
		_ = x.conn.SetDeadline(time.Unix(1, 0))
	}
}

// isOpen says whether a kept connection is quiet: it is not closed, and there is nothing to read, for which nobody would have asked.
func (x *exchange) isOpen() bool {
	if x.raw == nil {
		return false
	}
	x.open = false
	return x.raw.Read(x.look) == nil && x.open
}

// write writes a request. The system takes all of it at once, as it is short and nothing is in front of it.
func (x *exchange) write(req *http.Request, body []byte, fresh func() bool) (s Sent, err error) {
	x.out = append(appendHead(x.out[:0], req, len(body)), body...)
	if fresh != nil && !fresh() {
		return s, ErrLapsed
	}
	s.Began = time.Now()
	n, err := x.conn.Write(x.out)
	s.Last, s.Written = time.Now(), n > 0
	return s, err
}

// read reads an answer's header.
func (x *exchange) read(req *http.Request) (*http.Response, error) {
	longest := cmp.Or(x.client.Header, mostHeader)
	x.room = longest
	if _, err := x.in.Peek(1); err != nil {
		return nil, err
	}
	for { // answers like 100 Continue may come first
		res, err := http.ReadResponse(x.in, req)
		if err != nil {
			if x.room <= 0 {
				err = fmt.Errorf("the header of the answer is longer than %d bytes", longest)
			}
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			x.answers(res, req)
			return res, nil
		}
	}
}

// answers makes the exchange the body of an answer.
func (x *exchange) answers(res *http.Response, req *http.Request) {
	x.room = 1<<63 - 1
	x.whole, x.last = false, res.Close || res.StatusCode == http.StatusSwitchingProtocols
	x.body = res.Body
	res.Body = x // a Body
	// net/http, too, unzips an answer if the caller did not ask for gzip itself.
	if asksGzip(req) && strings.EqualFold(res.Header.Get("Content-Encoding"), "gzip") && req.Method != http.MethodHead {
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
		res.ContentLength, res.Uncompressed = -1, true
		res.Body = &unzipped{x: x}
	}
}

// Read reads the body.
func (x *exchange) Read(b []byte) (int, error) {
	if x.body == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := x.body.Read(b)
	x.whole = x.whole || err == io.EOF
	return n, err
}

// Close keeps the connection for others, if the body was read to its end.
func (x *exchange) Close() error {
	if x.body == nil { // it is closed already: kept twice, two requests would get the connection
		return nil
	}
	x.kept = true
	if x.body == http.NoBody {
		x.whole = true
	}
	x.body = nil
	if x.last || !x.whole || x.in.Buffered() > 0 || x.ctx.Err() != nil || !x.client.keep(x) {
		x.close()
	}
	return nil
}

func (x *exchange) close() {
	x.stop()
	x.conn.Close()
}

// source reads from an exchange's connection, no more than there is room for.
type source exchange

func (s *source) Read(b []byte) (int, error) {
	if s.room <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.conn.Read(b[:min(int64(len(b)), s.room)])
	s.room -= int64(n)
	return n, err
}

// unzipped is a body that came compressed. If its gzip header is wrong, the first Read fails.
type unzipped struct {
	x   *exchange
	zip *gzip.Reader
	err error
}

func (u *unzipped) Read(b []byte) (n int, err error) {
	if u.zip == nil && u.err == nil {
		u.zip, u.err = gzip.NewReader(u.x)
	}
	if u.err != nil {
		return 0, u.err
	}
	n, u.err = u.zip.Read(b)
	return n, u.err
}

func (u *unzipped) Close() error { return u.x.Close() }

// Pause implements Body.
func (u *unzipped) Pause(on bool) { u.x.Pause(on) }
