package proxy

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstInherited is the number of the first socket from systemd.
const firstInherited = 3

// Inherited returns the listeners that systemd has opened. The one for clients is named http or is
// the first; the other one is named admin or is the second. They are nil if there are none. Call it
// once: it hides the sockets from child processes.
func Inherited(getenv func(string) string) (main, admin net.Listener, err error) {
	if pid, _ := strconv.Atoi(getenv("LISTEN_PID")); pid != os.Getpid() {
		return nil, nil, nil
	}
	n, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || n < 1 {
		return nil, nil, nil
	}
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	for i := range n {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		f := os.NewFile(uintptr(firstInherited+i), name)
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("socket %d of systemd: %w", firstInherited+i, err)
		}
		switch {
		case name == "admin" || name != "http" && main != nil && admin == nil:
			admin = l
		case main == nil:
			main = l
		default:
			l.Close()
			return nil, nil, fmt.Errorf("socket %d of systemd is called %q; expected one http and one admin "+
				"(FileDescriptorName=)", firstInherited+i, name)
		}
	}
	return main, admin, nil
}

// Notify reports the state of the proxy to systemd: READY=1, STOPPING=1. Without a socket for
// notices it does nothing.
func Notify(state string, getenv func(string) string) error {
	at := getenv("NOTIFY_SOCKET")
	if at == "" {
		return nil
	}
	if at[0] == '@' { // in the abstract name space
		at = "\x00" + at[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
