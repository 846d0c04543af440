package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// answersWith is a resolver whose server answers each question for an address of IPv4 with the next of
// these lists, and the last one for ever.
func answersWith(t *testing.T, lists ...[]string) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(answered(b[:n], &lists), from)
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// answered is a question with its answers. Of IPv6 there are none.
func answered(question []byte, lists *[][]string) []byte {
	const header = 12
	end := header
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5 // the zero, the type and the class
	b := append([]byte(nil), question[:end]...)
	binary.BigEndian.PutUint16(b[2:], 0x8180)
	clear(b[6:header])
	if binary.BigEndian.Uint16(b[end-4:]) != 1 {
		return b
	}
	all := (*lists)[0]
	if len(*lists) > 1 {
		*lists = (*lists)[1:]
	}
	binary.BigEndian.PutUint16(b[6:], uint16(len(all)))
	for _, a := range all {
		b = append(b, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		b = append(b, netip.MustParseAddr(a).AsSlice()...)
	}
	return b
}

// A name of the public network that leads to this machine, at once or after a while, or beside another
// network's address, reaches nothing here: the address is checked when it is dialled.
func TestRebinding(t *testing.T) {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Error("a private address was reached")
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for name, lists := range map[string][][]string{
		"at once": {{"127.0.0.1"}},
		"mixed":   {{"10.0.0.1", "127.0.0.1", "192.168.0.1"}},
		"later":   {{"10.0.0.1"}, {"127.0.0.1"}},
	} {
		d := New(Config{Named: func(string, string) bool { return false }, Tunnels: PublicTunnels,
			Server: serverOf, Log: discarded})
		d.dialer.Resolver = answersWith(t, lists...)
		for range 3 {
			c, err := d.reach("rebinds.example.org", port)
			if err == nil {
				c.Close()
				t.Errorf("%s: a connection", name)
			} else if !errors.Is(err, errNotPublic) {
				t.Errorf("%s: %v", name, err)
			}
		}
		d.Shutdown(context.Background())
	}
}
