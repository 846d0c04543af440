//go:build !linux

package capture

import (
	"context"
	"fmt"
	"net"
	"runtime"
)

// Config is the configuration of Serve.
type Config struct {
	Take  func(c net.Conn, host, port string)
	Named func(host string) bool
}

func not() error {
	return fmt.Errorf("%w: %s has no namespaces of networks; Linux has", ErrNot, runtime.GOOS)
}

// Serve returns ErrNot.
func Serve(context.Context, *net.UnixListener, Config) error { return not() }

// Enter returns ErrNot.
func Enter(Inside) error { return not() }

// Command returns ErrNot.
func Command(...string) (path string, args []string, err error) { return "", nil, not() }
