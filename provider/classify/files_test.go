//go:build linux

package classify_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/paceline-go/paceline/limit"
)

// Without a file left, a connect and a look-up of a name show that and nothing else. The tests of this package run one
// after the other, so none misses them.
func TestNoFilesLeft(t *testing.T) {
	to := "http://" + swallows(t, false)
	resolver := &net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = min(was.Cur, 64)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	give := func() {
		for _, f := range held {
			f.Close()
		}
		held = nil
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
	}
	defer give()
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	dialled, err := linkTo(t, context.Background(), to, &http.Transport{})
	named, nerr := linkTo(t, context.Background(), "http://some.test", &http.Transport{DialContext: resolver.DialContext})
	give()
	if dialled != limit.NoFiles {
		t.Errorf("a connect: %v: %v", dialled, err)
	}
	if named != limit.NoFiles {
		t.Errorf("a name: %v: %v", named, nerr)
	}
}
