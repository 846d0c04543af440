package send

import "syscall"

// quietError is the answer of a tap that asks, while nothing has come. It is temporary, so that a
// tls.Conn goes on after it.
type quietError struct{}

func (quietError) Error() string   { return "nothing has come" }
func (quietError) Timeout() bool   { return true }
func (quietError) Temporary() bool { return true }

var errQuiet error = quietError{}

// tap is a connection of ours that can be asked whether something has come.
type tap struct {
	*conn
	raw  syscall.RawConn // nil: it cannot be asked
	asks bool            // Read does not wait
	into []byte          // of the Read under way
	n    int
	err  error
	look func(fd uintptr) bool
}

func newTap(c *conn) *tap {
	t := &tap{conn: c}
	if s, ok := c.Conn.(syscall.Conn); ok && canAsk {
		if raw, err := s.SyscallConn(); err == nil {
			t.raw, t.look = raw, t.ask
		}
	}
	return t
}

// Read reads, or asks: then it returns errQuiet rather than wait.
func (t *tap) Read(b []byte) (int, error) {
	if !t.asks {
		return t.conn.Read(b)
	}
	t.into = b
	err := t.raw.Read(t.look)
	t.into = nil
	if err != nil {
		return 0, err
	}
	return t.n, t.err
}
