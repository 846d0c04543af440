package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/ratetest/service"
)

// greeted runs a verb of serve until the test ends, and returns what it says at start.
func greeted(t *testing.T, args ...string) string {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	stderr := &written{line: make(chan string, 1)}
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, append([]string{"serve"}, args...), strings.NewReader(""), new(bytes.Buffer), stderr)
	}()
	t.Cleanup(func() { interrupt(); <-done })
	select {
	case text := <-stderr.line:
		return text
	case <-time.After(patient):
		t.Fatalf("paceline serve %s says nothing", strings.Join(args, " "))
	}
	return ""
}

// TestServeSaysWhatToTry pastes what servers say into a shell, where paceline is this test.
func TestServeSaysWhatToTry(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "seq", "sed", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no shell to paste into: ", err)
		}
	}
	env := shellEnv(t)
	for _, args := range [][]string{
		{"exchange", "--latency", "constant:1ms"}, {"exchange", "--keys", "a b", "--limit", "50"}, {"gcra", "--limit", "36000", "--level", "100"}, {"openai", "--first", "constant:1ms"},
		{"anthropic", "--keys", "secret", "--window", "2m", "--first", "constant:1ms"}, {"github"}, {"x-ratelimit-epoch"}, {"okx"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			text := greeted(t, append(args, "--addr", ":0")...)
			if !regexp.MustCompile(`^serving http://127\.0\.0\.1:[1-9]\d*/`).MatchString(text) {
				t.Errorf("no address that can be sent to in %q", text)
			}
			curls, runs := 0, 0
			for line := range strings.Lines(text) {
				command, isCommand := strings.CutPrefix(line, "  ")
				if !isCommand {
					continue
				}
				c := exec.Command("sh", "-c", command)
				c.Env = env
				said, err := c.CombinedOutput()
				if err != nil {
					t.Errorf("%s%v\n%s", command, err, said)
				}
				switch {
				case strings.HasPrefix(command, "curl "):
					curls++
					if !regexp.MustCompile(`HTTP/1.1 200 |"req_id":17,"status":"OK"`).Match(said) {
						t.Errorf("%s says %s", command, said)
					}
				case strings.Contains(command, "paceline run "):
					runs++
					if !bytes.Contains(said, []byte(" 0 rejected, 0 expired, 0 dead, 0 lost")) || bytes.Contains(said, []byte("\n0 to send")) {
						t.Errorf("%s says %s", command, said)
					}
				}
			}
			if curls != 1 || runs != 1 {
				t.Errorf("%d commands with curl and %d with paceline run in\n%s", curls, runs, text)
			}
		})
	}
}

// The command that tries the server of a provider is refused nothing, at any of its presets.
func TestTryOfEachProvider(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`seq -f '?(\S+?)%g'? ([123]) \| paceline run (.*) -\n`)
	for _, p := range service.All() {
		for _, preset := range p.Presets {
			t.Run(preset, func(t *testing.T) {
				t.Parallel()
				m := command.FindStringSubmatch(greeted(t, p.Name, "--preset", preset, "--latency-after", "constant:100ms", "--addr", "127.0.0.1:0"))
				if m == nil {
					t.Fatal("no such command")
				}
				n, _ := strconv.Atoi(m[2])
				var in strings.Builder
				for i := range n {
					fmt.Fprintf(&in, "%s%d\n", m[1], i+1)
				}
				code, stdout, stderr := paceline(in.String(), append(append([]string{"run"}, strings.Fields(m[3])...), "-")...)
				if code != 0 || !strings.Contains(stderr, m[2]+" done, 0 rejected") || strings.Count(stdout, `"attempts":1,`) != n {
					t.Errorf("%s: exit %d: %s%s", m[3], code, stderr, stdout)
				}
			})
		}
	}
}

func TestServeWhereItCannotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		addr string
		code int
		says []string
	}{
		{l.Addr().String(), cli.ExitFailure, []string{l.Addr().String() + " is in use, maybe by another paceline serve", "lsof -i :", "--addr 127.0.0.1:0, which is any free port"}},
		{"9999", cli.ExitUsage, []string{`--addr "9999", expected HOST:PORT such as 127.0.0.1:9999`}},
		{"127.0.0.1:99999", cli.ExitFailure, []string{"--addr: ", "99999"}},
	} {
		code, _, stderr := paceline("", "serve", "exchange", "--addr", c.addr)
		for _, want := range c.says {
			if code != c.code || !strings.Contains(stderr, want) {
				t.Errorf("--addr %s: exit %d with %q, want %d with %q", c.addr, code, stderr, c.code, want)
			}
		}
	}
}
