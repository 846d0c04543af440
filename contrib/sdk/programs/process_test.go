package programs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/ratetest/llm"
)

// TestMain removes what the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared != "" {
		os.RemoveAll(shared)
	}
	os.Exit(code)
}

var shared string

// built is the command line, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "paceline-sdk")
	if err != nil {
		return "", err
	}
	shared = dir
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "paceline"), "./cmd/paceline")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "paceline"), nil
})

// A process is a verb of the command line that serves.
type process struct {
	url, admin string
	cmd        *exec.Cmd
	out        bytes.Buffer
	said       sync.WaitGroup // until standard error has ended
	errs       []string       // its lines after the greeting
}

var (
	address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	look    = regexp.MustCompile(`to look at: (http://127\.0\.0\.1:\d+)/`)
)

func start(t *testing.T, args ...string) *process {
	t.Helper()
	paceline, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(paceline, args...)}
	p.cmd.Stdout = &p.out
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() }) // of one that has ended it does nothing
	lines := bufio.NewReader(stderr)
	greeting, _ := lines.ReadString('\n')
	if p.url = address.FindString(greeting); p.url == "" {
		t.Fatalf("%v: %s", args, greeting)
	}
	if m := look.FindStringSubmatch(greeting); m != nil {
		p.admin = m[1]
	}
	p.said.Go(func() {
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				p.errs = append(p.errs, line)
			}
			if err != nil {
				return
			}
		}
	})
	return p
}

// stopped ends a process in good order.
func (p *process) stopped(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(os.Interrupt)
	p.said.Wait()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %v: %s", p.cmd.Args, err, strings.Join(p.errs, ""))
	}
}

// serve starts a server of the command line.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, append([]string{"serve"}, append(args, "--addr", "127.0.0.1:0", "-o", "json")...)...)
}

// ended ends a server and reads what its judge says.
func (p *process) ended(t *testing.T) (r llm.Report) {
	t.Helper()
	p.stopped(t)
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil || r.Wrong != 0 {
		t.Errorf("%v: %s", err, p.out.String())
	}
	return r
}

// A told line is what a program says of one call: see node/say.mjs.
type told struct {
	SDK, Call, Prompt, Text string
	Size                    int
	Input, Output           int64
	MS                      int64
	Error                   *thrown
}

// thrown is an error as the SDK throws it.
type thrown struct {
	Class, Type, Param, Message string
	Code                        any // Gemini's is a number
	Status                      int
	Retryable                   *bool
}

// A gate is where programs wait for each other, once they are ready: how long they take to begin is no matter of limits.
type gate struct {
	yet    sync.WaitGroup
	once   sync.Once
	opened time.Time
}

func newGate(programs int) *gate {
	g := &gate{}
	g.yet.Add(programs)
	return g
}

// pass waits until all are here.
func (g *gate) pass() {
	g.yet.Done()
	g.yet.Wait()
	g.once.Do(func() { g.opened = time.Now() })
}

// said runs a program in a folder, with an environment of nothing but env, and returns what it says, in order.
func said(within time.Duration, at *gate, dir string, env []string, argv ...string) (all []told, err error) {
	out, err := output(within, at, dir, env, argv...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		var l told
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, fmt.Errorf("%v said %q: %w", argv, line, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// output is what a program writes. With a gate it first says that it is ready, and waits for a line. One that fails, or takes longer than
// within, is an error that says what it wrote.
func output(within time.Duration, at *gate, dir string, env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = time.Second // what it started holds its output open
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		if at != nil {
			at.pass()
		}
		return "", err
	}
	lines := bufio.NewReader(stdout)
	ready := "ready\n"
	if at != nil {
		ready, _ = lines.ReadString('\n')
		at.pass()
	}
	fmt.Fprintln(stdin)
	stdin.Close()
	out, read := io.ReadAll(lines)
	if err := errors.Join(cmd.Wait(), read, ctx.Err()); err != nil || ready != "ready\n" {
		return "", fmt.Errorf("%v: %w: %s%s%s", argv, err, ready, out, stderr.String())
	}
	return string(out), nil
}
