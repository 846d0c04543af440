package forward

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestIsPublic(t *testing.T) {
	for _, private := range []string{
		"127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
		"255.255.255.255", "168.63.129.16", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1",
		"::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "2002:7f00:1::",
		"2002:a00:1::", "2001::1", "fe80::1%eth0",
	} {
		if isPublic(netip.MustParseAddr(private)) {
			t.Error(private, "is not public")
		}
	}
	for _, public := range []string{"93.184.216.34", "1.1.1.1", "2606:4700::1111", "64:ff9b::1.1.1.1", "2002:101:101::", "::ffff:1.1.1.1"} {
		if !isPublic(netip.MustParseAddr(public)) {
			t.Error(public, "is public")
		}
	}
}

func TestIsOwn(t *testing.T) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !isOwn(p.Addr()) {
			t.Error(p, "is this machine's")
		}
	}
	if isOwn(netip.MustParseAddr("192.0.2.1")) {
		t.Error("an example's address is not this machine's")
	}
}

// FuzzSplitHost reads targets of CONNECT. Each is an error, or a host in lower case and a port that
// are dialled as they are.
func FuzzSplitHost(f *testing.F) {
	for _, s := range []string{"API.Example.com:443", "[::1]:443", "a:b:c", "user@host:1", "host.:80", ":443", "host:", "h:99999", "[::ffff:1.2.3.4]:5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := splitHost(s, "")
		if err != nil {
			return
		}
		if host == "" || port == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "@/?#% \r\n") {
			t.Errorf("%q: %q %q", s, host, port)
		}
		again, againPort, err := splitHost(net.JoinHostPort(host, port), "")
		if err != nil || again != host || againPort != port {
			t.Errorf("%q: %q, and again %q: %v", s, host, again, err)
		}
	})
}
