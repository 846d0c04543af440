package forward

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// KnowsUsers reports whether PeerUser can know anything on this system.
const KnowsUsers = true

// PeerUser returns the user at the other end of a connection of this machine, by the tables of the
// kernel.
func PeerUser(c net.Conn) (uid int, ok bool) { return UserAt(c.LocalAddr(), c.RemoteAddr().String()) }

// UserAt is PeerUser, by the addresses of a connection.
func UserAt(local net.Addr, remote string) (uid int, ok bool) {
	if local == nil {
		return 0, false
	}
	here, err := netip.ParseAddrPort(local.String())
	there, err2 := netip.ParseAddrPort(remote)
	if err != nil || err2 != nil {
		return 0, false
	}
	return peerUser(here, there)
}

// peerUser looks for the socket whose own end is there. Java's sockets are of IPv6, with mapped
// addresses.
func peerUser(here, there netip.AddrPort) (uid int, ok bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// sl local rem st tx:rx tr:when retrnsmt uid timeout inode …
			fields := strings.Fields(lines.Text())
			const established = "01" // in all other states a user of 0 means nothing
			if len(fields) < 10 || fields[3] != established || fields[9] == "0" {
				continue
			}
			if at, ok := socketAddress(fields[1]); !ok || at != plain(there) {
				continue
			}
			if at, ok := socketAddress(fields[2]); !ok || at != plain(here) {
				continue
			}
			if uid, err := strconv.Atoi(fields[7]); err == nil {
				f.Close()
				return uid, true
			}
		}
		f.Close()
	}
	return 0, false
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// socketAddress reads 0100007F:1F90: words of four bytes in the machine's order, and a port.
func socketAddress(s string) (netip.AddrPort, bool) {
	words, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(words)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}
