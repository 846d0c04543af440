package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Another user of this machine has no answer of the daemon: its folder is closed, and were it open, the
// kernel still names the user at the other end.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	runtime := placed(t)
	s, ended := served(t, nil)
	asks := func(uid uint32) (string, error) {
		c := exec.Command(need.Program(t, "curl"), "-s", "-m", "20", "--unix-socket", s.Place().Socket(), Base+"/v1/daemon")
		c.Dir, c.Env = "/", []string{"PATH=/usr/bin:/bin"}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		b, err := c.Output()
		return string(b), err
	}
	if said, err := asks(0); err != nil || said == "" {
		t.Errorf("its own user: %v, %s", err, said)
	}
	if said, err := asks(65534); err == nil || said != "" {
		t.Errorf("another user, as it is: %v, %s", err, said)
	}
	for at, mode := range map[string]os.FileMode{filepath.Dir(runtime): 0o755, runtime: 0o755, s.Place().Folder: 0o755, s.Place().Socket(): 0o666} {
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := asks(65534); err == nil || said != "" {
		t.Errorf("another user, in an open folder: %v, %s", err, said)
	}
	s.Stop(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
