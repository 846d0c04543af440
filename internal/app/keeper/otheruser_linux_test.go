package keeper

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// asked runs curl as a user, and returns the status of its answer and curl's exit code.
func asked(t *testing.T, uid uint32, args ...string) string {
	t.Helper()
	c := exec.Command(need.Program(t, "curl"), append([]string{"-s", "-o", "/dev/null", "-m", "20", "--noproxy", "", "-w", "%{http_connect} %{http_code}"}, args...)...)
	c.Dir, c.Env = "/", []string{"PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	b, err := c.Output()
	code := 0
	if e, ok := err.(*exec.ExitError); ok {
		code = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, exit %d", b, code)
}

// Another user of this machine does not come through the entrance of a run: not without a token, as Java
// does for its own user, and not through a port that leads to one host.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	s := server(t)
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	r := joined(t, k, run(t, "100/s", s.URL))
	defer k.Leave(t.Context(), r)
	at := r.made.URL[strings.IndexByte(r.made.URL, '@')+1:]
	host := strings.TrimPrefix(s.URL, "http://")
	named := net.JoinHostPort("127.0.0.1", fmt.Sprint(r.made.Named[host]))
	const nobody = 65534
	for _, row := range []struct {
		name string
		uid  uint32
		args []string
		want string
	}{
		{"its own, as Java", 0, []string{"-A", "Java/17", "-x", "http://" + at, s.URL}, "000 200, exit 0"},
		{"its own, by CONNECT", 0, []string{"-A", "", "-p", "-x", "http://" + at, s.URL}, "200 200, exit 0"},
		{"its own, with the token", 0, []string{"-x", r.made.URL, s.URL}, "000 200, exit 0"},
		{"its own, without one", 0, []string{"-x", "http://" + at, s.URL}, "000 407, exit 0"},
		{"its own, at the port of a host", 0, []string{"-H", "Host: " + host, "http://" + named}, "000 200, exit 0"},
		{"another, as Java", nobody, []string{"-A", "Java/17", "-x", "http://" + at, s.URL}, "000 407, exit 0"},
		{"another, by CONNECT", nobody, []string{"-A", "", "-p", "-x", "http://" + at, s.URL}, "407 000, exit 56"},
		{"another, at the port of a host", nobody, []string{"-H", "Host: " + host, "http://" + named}, "000 000, exit 52"},
	} {
		got := asked(t, row.uid, row.args...)
		if row.want == "000 000, exit 52" { // closed before or after the request is written
			got = strings.ReplaceAll(got, "exit 56", "exit 52")
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
