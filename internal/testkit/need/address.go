package need

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address returns an address of this machine at which nobody listens, and which no system gives to a program that asks
// for any: while a server is away nobody takes it.
func Address(t testing.TB) string {
	t.Helper()
	var last error
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		last = err
	}
	t.Fatal(last)
	return ""
}
