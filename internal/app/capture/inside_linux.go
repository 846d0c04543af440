package capture

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Enter makes the namespace ready, in which this process is already: see Command. Its listeners are
// then the proxy's, and what this process may do beyond its user is given up. That holds for the
// calling thread, so the caller locks its goroutine to the thread and then becomes the program.
func Enter(in Inside) error {
	for to, from := range in.Files {
		if _, err := os.Stat(to); err != nil {
			continue
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s for the program alone: %w", to, err)
		}
	}
	if err := everywhere(); err != nil {
		return err
	}
	letters, files, port, err := listeners()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err := redirect(port, in.Local); err != nil {
		return err
	}
	if err := give(in.Socket, letters, files); err != nil {
		return err
	}
	return giveUp()
}

// listeners opens what the proxy is to have. By IPv6 there may be none.
func listeners() (letters string, files []*os.File, port uint16, err error) {
	add := func(letter string, l interface{ File() (*os.File, error) }, fault error) {
		if err = errors.Join(err, fault); err != nil {
			return
		}
		f, fault := l.File()
		if fault != nil {
			err = fault
			return
		}
		letters, files = letters+letter, append(files, f)
	}
	all, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return "", nil, 0, err
	}
	defer all.Close()
	add("4", all.(*net.TCPListener), nil)
	port = uint16(all.Addr().(*net.TCPAddr).Port)
	if six, fault := net.Listen("tcp6", net.JoinHostPort("::", strconv.Itoa(int(port)))); fault == nil {
		defer six.Close()
		add("6", six.(*net.TCPListener), nil)
	}
	packets, fault := net.ListenPacket("udp", ":53")
	if fault != nil {
		return "", nil, 0, fmt.Errorf("a resolver for the program: %w", fault)
	}
	defer packets.Close()
	add("u", packets.(*net.UDPConn), nil)
	asked, fault := net.Listen("tcp", ":53")
	if fault != nil {
		return "", nil, 0, fmt.Errorf("a resolver for the program: %w", fault)
	}
	defer asked.Close()
	add("n", asked.(*net.TCPListener), nil)
	return letters, files, port, err
}

// giveUp takes from the program what made the namespace: it could otherwise undo it.
func giveUp() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if os.Getuid() == 0 { // root keeps what root has, but for networks
		return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_ADMIN, 0, 0, 0)
	}
	return nil
}
