package need

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address returns an address of this machine at which nobody listens, and which no system gives to a program that asks
// for any. Until the end of the test no other test gets it, of any process: they all hold the UDP port of that number.
func Address(t testing.TB) string {
	t.Helper()
	var last error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000))
		held, err := net.ListenPacket("udp", address)
		if last = err; err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if last = err; err != nil {
			held.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { held.Close() })
		return address
	}
	t.Fatal(last)
	return ""
}
