package capture_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/capture"
)

// The test's binary is also what runs inside: it enters, and becomes a program that asks.
const insideOf, asksFor = "PACELINE_TEST_INSIDE", "PACELINE_TEST_ASKS"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(insideOf) != "":
		runtime.LockOSThread()
		var in capture.Inside
		err := json.Unmarshal([]byte(os.Getenv(insideOf)), &in)
		if err == nil {
			err = capture.Enter(in)
		}
		if err == nil {
			os.Unsetenv(insideOf)
			err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		}
		fmt.Println("not inside:", err)
		os.Exit(1)
	case os.Getenv(asksFor) != "":
		for at := range strings.FieldsSeq(os.Getenv(asksFor)) {
			fmt.Println(at, "->", asked(at))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asked is what a program sees at an address: the first line that it gets there.
func asked(at string) string {
	if path, ok := strings.CutPrefix(at, "file:"); ok {
		b, _ := os.ReadFile(path)
		return string(b)
	}
	if at == "rights" {
		b, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(b)) {
			if rights, ok := strings.CutPrefix(line, "CapEff:\t"); ok {
				return strings.TrimSpace(rights)
			}
		}
	}
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", at)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil && err != io.EOF {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// inside runs asks in a namespace, as a user, and returns what it printed line by line.
func inside(t *testing.T, uid uint32, in capture.Inside, asks ...string) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "capture") // where another user may come
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self := filepath.Join(dir, "self")
	copyFile(t, self)
	in.Socket = filepath.Join(dir, "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: in.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, in.Socket} {
		if err := os.Chown(path, int(uid), -1); err != nil {
			t.Fatal(err)
		}
	}
	var served sync.WaitGroup
	served.Go(func() {
		err := capture.Serve(t.Context(), l, capture.Config{
			Named: func(host string) bool { return strings.HasSuffix(host, ".test") },
			Take: func(c net.Conn, host, port string) {
				fmt.Fprintf(c, "%s port %s\n", host, port)
				c.Close()
			},
		})
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(served.Wait)
	told, _ := json.Marshal(in)
	env := append(os.Environ(), insideOf+"="+string(told), asksFor+"="+strings.Join(asks, " "))
	path, args, err := capture.Command(self)
	if err != nil {
		t.Skip(err)
	}
	if uid != 0 && os.Getuid() == 0 { // what another user may do, that user has to find out
		args = slices.Concat([]string{"unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "--"}, []string{self})
	}
	c := &exec.Cmd{Path: path, Args: args, Env: env}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func copyFile(t *testing.T, to string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every connection of a program comes to the proxy, by name and by address, at every port.
func TestEverything(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, []byte("replaced"), 0o644); err != nil {
		t.Fatal(err)
	}
	for who, uid := range map[string]uint32{"this user": uint32(os.Getuid()), "nobody": 65534} {
		t.Run(who, func(t *testing.T) {
			if uid == 65534 && os.Getuid() != 0 {
				t.Skip("only root runs as another user")
			}
			in := capture.Inside{Local: []uint16{9999}, Files: map[string]string{"/etc/hostname": own, "/no/such/file": own}}
			if uid != uint32(os.Getuid()) {
				in.Files = nil // its folder is this user's
			}
			got := inside(t, uid, in, "api.test:443", "API.test:80", "api.test:25", "192.0.2.7:8443", "[2001:db8::7]:443",
				"127.0.0.1:9999", "127.0.0.1:9998", "file:/etc/hostname", "rights")
			want := []string{"api.test:443 -> api.test port 443", "API.test:80 -> api.test port 80", "api.test:25 -> api.test port 25",
				"192.0.2.7:8443 -> 192.0.2.7 port 8443", "[2001:db8::7]:443 -> 2001:db8::7 port 443",
				"127.0.0.1:9999 -> 127.0.0.1 port 9999",
				"127.0.0.1:9998 -> dial tcp 127.0.0.1:9998: connect: connection refused"}
			if uid == uint32(os.Getuid()) {
				want = append(want, "file:/etc/hostname -> replaced")
			}
			for i, w := range want {
				if i >= len(got) || got[i] != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
			if last := got[len(got)-1]; uid != 0 && last != "rights -> 0000000000000000" {
				t.Errorf("the program may %s", last)
			}
		})
	}
}

// The listeners of a stranger, and none at all, are errors on both sides.
func TestHandover(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	for letters, want := range map[string]string{"4": `0 listeners came with the letters "4"`} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- capture.Serve(t.Context(), l, capture.Config{}) }()
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, letters)
		said, _ := io.ReadAll(c)
		if err := <-ended; string(said) != want || err == nil || err.Error() != want {
			t.Errorf("said %q, returned %v; want %q", said, err, want)
		}
	}
}
