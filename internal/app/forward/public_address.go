package forward

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// reserved are addresses that are nobody's on the public network, beside those that netip knows.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network (RFC 791)
	netip.MustParsePrefix("100.64.0.0/10"),    // of providers (RFC 6598)
	netip.MustParsePrefix("192.0.0.0/24"),     // of protocols (RFC 6890)
	netip.MustParsePrefix("198.18.0.0/15"),    // of benchmarks (RFC 2544)
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's service of a host, for its machines alone
	netip.MustParsePrefix("240.0.0.0/4"),      // class E, with the broadcast address
	netip.MustParsePrefix("::/96"),            // with an address of IPv4 in it, deprecated (RFC 4291)
	netip.MustParsePrefix("64:ff9b:1::/48"),   // of a network's own translation (RFC 8215)
	netip.MustParsePrefix("100::/64"),         // discarded (RFC 6666)
	netip.MustParsePrefix("2001::/23"),        // of protocols, with Teredo (RFC 4380)
	netip.MustParsePrefix("fec0::/10"),        // of a site, deprecated (RFC 3879)
	netip.MustParsePrefix("5f00::/16"),        // of segment routing (RFC 9602)
}

// Prefixes with an address of IPv4 in them, and the byte at which it begins.
var translated = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, // NAT64 (RFC 6052)
	netip.MustParsePrefix("2002::/16"):    2,  // 6to4 (RFC 3056)
}

var errNotPublic = errors.New("its address is not on the public network")

// isPublic reports whether an address is on the public network. An address that has one of IPv4 in
// it is as public as that one.
func isPublic(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	for p, at := range translated {
		if p.Contains(a) {
			b := a.As16()
			return isPublic(netip.AddrFrom4([4]byte(b[at : at+4])))
		}
	}
	return true
}

// publicOnly is a net.Dialer.Control. It sees the address after its name was resolved, so a name
// that changes its address between a check and the dial gains nothing.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, errNotPublic)
	}
	if !isPublic(at.Addr()) || isOwn(at.Addr()) {
		return fmt.Errorf("%s: %w", at.Addr(), errNotPublic)
	}
	return nil
}

// isOwn reports whether an address is this machine's.
func isOwn(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // not known, so not allowed
	}
	for _, own := range all {
		if n, ok := own.(*net.IPNet); ok {
			if o, ok := netip.AddrFromSlice(n.IP); ok && o.Unmap() == a.WithZone("").Unmap() {
				return true
			}
		}
	}
	return false
}
