package direct

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

// Body is that of an answer. To Close it lets others have its connection.
type Body interface {
	io.ReadCloser
	// Pause has time stand still for the deadline.
	Pause(on bool)
}

// exchange is a connection: a request on it, and then the body of its answer. Nobody else has it until that is closed.
type exchange struct {
	client  *Client
	address string
	conn    net.Conn
	raw     syscall.RawConn // nil: it cannot be asked whether it is open
	look    func(fd uintptr) bool
	open    bool // what look has seen
	kept    bool // it has served before
	since   time.Time

	ctx      context.Context // whose end ends it
	stop     func() bool
	deadline time.Time

	out  []byte
	in   *bufio.Reader
	room int64 // what may still be read of a header

	body  io.ReadCloser // of the answer
	whole bool          // it was read to its end
	last  bool          // no other request follows
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

// errPast is what a connection says whose deadline has passed.
var errPast = os.ErrDeadlineExceeded

// begin has the connection end with ctx, or at its deadline. False: one of them has come.
func (x *exchange) begin(ctx context.Context, deadline time.Time) bool {
	if x.ctx != ctx { // once for all requests of a caller: it is dear
		x.stop()
		x.ctx = ctx
		x.stop = context.AfterFunc(ctx, func() { _ = x.conn.SetDeadline(time.Unix(1, 0)) })
	}
	x.deadline = deadline
	// What ended before has set its deadline before this; what ends after this sets it again.
	return x.conn.SetDeadline(deadline) == nil && ctx.Err() == nil
}

// Pause is that of Body.
func (x *exchange) Pause(on bool) {
	if on {
		x.deadline = time.Time{}.Add(time.Until(x.deadline)) // what is left
		_ = x.conn.SetDeadline(time.Time{})
	} else {
		x.deadline = time.Now().Add(x.deadline.Sub(time.Time{}))
		_ = x.conn.SetDeadline(x.deadline)
	}
	if x.ctx.Err() != nil {
		_ = x.conn.SetDeadline(time.Unix(1, 0))
	}
}

// isOpen says whether a kept connection is quiet: neither closed, nor has it anything to read that nobody asked for.
func (x *exchange) isOpen() bool {
	if x.in.Buffered() > 0 || x.raw == nil {
		return false
	}
	x.open = false
	return x.raw.Read(x.look) == nil && x.open
}

// write writes a request at once. The system takes all of it: it is short, and nothing is before it.
func (x *exchange) write(req *http.Request, body []byte) (s Sent, err error) {
	x.out = append(appendHead(x.out[:0], req, len(body)), body...)
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
	for { // answers that are none yet come before it
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

// answers hands out the body of an answer.
func (x *exchange) answers(res *http.Response, req *http.Request) {
	x.room = 1<<63 - 1
	x.whole, x.last = false, res.Close || req.Close || res.StatusCode == http.StatusSwitchingProtocols
	x.body = res.Body
	res.Body = x // a Body
	// As net/http does where it was net/http that asked for it.
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
	if x.body == nil { // it is: twice among those that are kept two would have it
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

// source is what an exchange reads from, no more than there is room for.
type source exchange

func (s *source) Read(b []byte) (int, error) {
	if s.room <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if int64(len(b)) > s.room {
		b = b[:s.room]
	}
	n, err := s.conn.Read(b)
	s.room -= int64(n)
	return n, err
}

// unzipped is a body that came compressed. A header that is wrong is an error of the first Read.
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

// Pause is that of Body.
func (u *unzipped) Pause(on bool) { u.x.Pause(on) }
