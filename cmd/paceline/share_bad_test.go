package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// nextVersion makes a blob one of the next version of the format.
func nextVersion(was []byte) []byte {
	b := append([]byte(nil), was[:len(was)-4]...)
	b[1] = 8
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// Run and the proxy report a damaged blob on standard error. No request goes until the earlier
// grants can no longer count; then requests go on.
func TestShareDamaged(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"run", "proxy"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
			ripeStore(t, address, "api", perSecondKeeper(20))
			putStore(t, address, "api", func(was []byte) []byte { return was[:len(was)-1] })
			s := serveStrictly(t, 20, time.Second)
			began := time.Now()
			flags := []string{"--limit", "20/s", "--share", address, "--share-name", "api"}
			var says string
			if verb == "run" {
				c, errs := process(t, append([]string{"run", urlFile(t, s.URL, 3), "--out", filepath.Join(t.TempDir(), "out.jsonl")}, flags...)...)
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
				says = errs.String()
			} else {
				log := filepath.Join(t.TempDir(), "log.txt")
				addr, _ := proxyLogging(t, log, append([]string{"--to", s.URL}, flags...)...)
				resp, err := http.Get(addr + "/x")
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%v, %v", resp, err)
				}
				resp.Body.Close()
				text, _ := os.ReadFile(log)
				says = string(text)
			}
			if d := time.Since(began); d < 8*time.Second {
				t.Errorf("something was sent after %v", d)
			}
			if strings.Count(says, "nothing is sent for ") != 1 || !strings.Contains(says, `limit=api error="share: the blob is damaged: of `) || !strings.Contains(says, "level=WARN") {
				t.Errorf("it says\n%s", says)
			}
			if served, refused := s.count(); served == 0 || refused > 0 {
				t.Errorf("%d served, %d refused", served, refused)
			}
		})
	}
}

// A process in a time namespace of its own, whose clock has another zero, does not share a SQLite
// file: run and proxy are refused, and name both.
func TestShareTimeNamespace(t *testing.T) {
	unshare := []string{"unshare", "--time", "--boottime", "1000"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no time namespace can be made here: %s: %v %s", strings.Join(unshare, " "), err, out)
	}
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, "api", perSecondKeeper(20))
	s := serveStrictly(t, 20, time.Second)
	for _, verb := range []string{"run " + urlFile(t, s.URL, 3) + " --out out.jsonl", "proxy --to " + s.URL + " --listen 127.0.0.1:0 --admin off"} {
		c := another(t, append(strings.Fields(verb), "--limit", "20/s", "--share", address, "--share-name", "api")...)
		c.Args = append(unshare, append([]string{c.Path}, c.Args[1:]...)...)
		c.Path, _ = exec.LookPath(unshare[0])
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != cli.ExitConfig || !strings.Contains(string(out), "a process in another time namespace uses it") {
			t.Errorf("%s: %v\n%s", verb, err, out)
		}
	}
	if served, refused := s.count(); served+refused > 0 {
		t.Errorf("%d were sent", served+refused)
	}
}

// proxyLogging starts a proxy whose standard error goes to a file, and returns its address.
func proxyLogging(t *testing.T, log string, flags ...string) (addr string, c *exec.Cmd) {
	t.Helper()
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c = another(t, append([]string{"proxy", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off"}, flags...)...)
	c.Stderr = f
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(log)
		if _, rest, ok := strings.Cut(string(text), "from "); ok && strings.Contains(rest, " ") {
			addr, _, _ = strings.Cut(rest, " ")
			return addr, c
		}
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("the proxy says %q", text)
	return "", nil
}

// A store that is silent is an error in plain words. Other errors stay as they are.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	late, other := fmt.Errorf("share/postgres: %w", context.DeadlineExceeded), errors.New("other")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{over, late, "no answer within 10s: expected the address of a server that runs"},
		{over, other, "other"}, {t.Context(), late, late.Error()},
	} {
		if got := silent(c.ctx, c.err, 10*time.Second); got.Error() != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}
