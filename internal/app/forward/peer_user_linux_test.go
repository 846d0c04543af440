package forward

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

func TestPeerUser(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Log(err) // no IPv6
			continue
		}
		defer l.Close()
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if uid, ok := PeerUser(c); !ok || uid != os.Getuid() {
			t.Errorf("%s: %d %v, want %d", at, uid, ok, os.Getuid())
		}
	}
	nobody := netip.MustParseAddrPort("192.0.2.1:1")
	if _, ok := peerUser(nobody, nobody); ok {
		t.Error("a connection that is not there has a user")
	}
}

func TestSocketAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"0000000000000000FFFF00000100007F:01BB": "127.0.0.1:443",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0100007F":                              "", "x:1": "", "": "", "01007F:1": "",
	} {
		got, ok := socketAddress(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v %v, want %s", text, got, ok, want)
		}
	}
}
