package boottime_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paceline-go/paceline/internal/boottime"
)

// TestMain is the child of TestEnded where the environment says so: it tells its name and waits.
func TestMain(m *testing.M) {
	if os.Getenv("PACELINE_TELL_NAME") != "" {
		fmt.Println(boottime.Process())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	m.Run()
}

// A process has ended once it was killed, also while its parent has not waited for it. Its number is not its name.
// Of other machines nothing is known.
func TestProcessEnded(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PACELINE_TELL_NAME=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimSpace(name)
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		t.Fatalf("the child is %q, expected three parts", name)
	}
	check := func(when, name string, want bool) {
		t.Helper()
		if got := boottime.ProcessEnded(name); got != want {
			t.Errorf("%s, %q has ended: %v, want %v", when, name, got, want)
		}
	}
	check("while it runs", name, false)
	check("while it runs", parts[0]+"-"+parts[1]+"-1", true) // one that had its number before
	check("while it runs", boottime.Process(), false)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, child.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	check("before its parent waits", name, true)
	_ = child.Wait()
	check("afterwards", name, true)
	check("elsewhere", "0-"+parts[1]+"-"+parts[2], false)
	for _, none := range []string{"", "--", parts[0], parts[0] + "-x-1"} {
		check("of no process", none, false)
	}
}
