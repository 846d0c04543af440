package capture

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// Config is the configuration of Serve. All functions must be safe for concurrent use.
type Config struct {
	// Take gets each connection of the program, with the host and the port that it asked for. A host is a
	// name if the program asked for one, and else an address.
	Take func(c net.Conn, host, port string)
	// Named reports whether a host is an upstream's, so that it need not exist for this machine.
	Named func(host string) bool
}

// Serve waits at l for the listeners of one namespace, and serves them until ctx ends. It returns the
// error of the handover, and otherwise nil. It closes l.
func Serve(ctx context.Context, l *net.UnixListener, c Config) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	h, answer, err := take(l)
	stop()
	l.Close()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	known := &names{}
	asked := &resolver{names: known, named: c.Named, lookup: exists, pass: system}
	var all sync.WaitGroup
	servers := []*dns.Server{{PacketConn: h.names, Handler: asked}, {Listener: h.asked, Handler: asked}}
	for _, s := range servers {
		all.Go(func() { _ = s.ActivateAndServe() })
	}
	for _, l := range h.tcp {
		all.Go(func() { accept(ctx, l, known, c.Take) })
	}
	answer(nil)
	<-ctx.Done()
	for _, s := range servers {
		_ = s.Shutdown()
	}
	h.close()
	all.Wait()
	return nil
}

// accept passes connections on until ctx ends.
func accept(ctx context.Context, l net.Listener, known *names, take func(c net.Conn, host, port string)) {
	for {
		c, err := l.Accept()
		if err != nil {
			select { // such as too many open files: it passes
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		to, err := wanted(c.(*net.TCPConn))
		if err != nil {
			c.Close()
			continue
		}
		take(c, known.name(to.Addr()), strconv.Itoa(int(to.Port())))
	}
}

// wanted is where a connection was to go before it was led here.
func wanted(c *net.TCPConn) (to netip.AddrPort, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return to, err
	}
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	var fault error
	err = raw.Control(func(fd uintptr) {
		if local.Addr().Is4() {
			var m *unix.IPv6Mreq // as large as a sockaddr_in
			if m, fault = unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, unix.SO_ORIGINAL_DST); fault == nil {
				to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Multiaddr[4:8])), binary.BigEndian.Uint16(m.Multiaddr[2:4]))
			}
			return
		}
		var m *unix.IPv6MTUInfo // begins with a sockaddr_in6
		if m, fault = unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, unix.SO_ORIGINAL_DST); fault == nil {
			port := binary.NativeEndian.AppendUint16(nil, m.Addr.Port)
			to = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), binary.BigEndian.Uint16(port))
		}
	})
	if err == nil {
		err = fault
	}
	return to, err
}
