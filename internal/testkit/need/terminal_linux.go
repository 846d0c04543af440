package need

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal of a test.
type Terminal struct {
	File   *os.File // as a program has it
	Person *os.File // what is typed, and what is seen
	t      testing.TB
}

// OpenTerminal makes a terminal. It skips the test if the machine has none.
func OpenTerminal(t testing.TB) *Terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err) // some containers have none
	}
	t.Cleanup(func() { _ = person.Close() })
	n := 0
	err = control(person, func(fd int) (err error) {
		if n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
		}
		return err
	})
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &Terminal{file, person, t}
}

// Resize gives the terminal another size.
func (x *Terminal) Resize(columns, rows uint16) {
	x.t.Helper()
	err := control(x.Person, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// TerminalState is how a terminal behaves: whether it shows what is typed, for example.
type TerminalState unix.Termios

// State returns how the terminal behaves now.
func (x *Terminal) State() (s TerminalState) {
	x.t.Helper()
	err := control(x.File, func(fd int) error {
		is, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			s = TerminalState(*is)
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// control does something with a file. After File.Fd, Close would not end a Read.
func control(file *os.File, do func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	bad := conn.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(bad, err)
}
