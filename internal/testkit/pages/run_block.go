package pages

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

var (
	// elsewhere is a line that needs the network, or a release that is built.
	elsewhere = regexp.MustCompile(`^\s*(go (install|build)|sudo|npm|npx|docker|podman|brew) `)
	inTheBack = regexp.MustCompile(`&\s*(#.*)?$`)
	lab       = regexp.MustCompile(`(?m)(^|[\s(|&;])(paceline-lab|go run ./lab/cmd/paceline-lab)\s`)
)

// Lab reports whether a block runs the laboratory's program.
func (b *Block) Lab() bool { return lab.MatchString(b.Text) }

// Env is the environment of a shell in which the program name is the test binary, and others are files by the names
// of programs. These are links and no scripts: a script that is written while other tests start programs may be open
// in one of them, and cannot be run then ("text file busy").
func Env(t *testing.T, name, asProgram string, others map[string]string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	link := func(file, name string) {
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(self, name)
	for name, file := range others {
		link(file, name)
	}
	return append(os.Environ(), asProgram+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// ports are the ports that pages speak of: of servers, of the proxy, of the proxy's page, and of its forward proxy.
var ports = [...]string{"9999", "7878", "7879", "7880"}

// script is the block as it is run: on ports of its own, where a server or a proxy that is started in the background is
// waited for.
func (b *Block) script(own [len(ports)]string) string {
	var s strings.Builder
	s.WriteString("set -e -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n") // a line may fail while a server runs
	for line := range strings.Lines(b.Text) {
		if elsewhere.MatchString(line) {
			continue
		}
		if !need.Whole() { // the test binary is that program, and is linked already
			line = strings.ReplaceAll(line, "go run ./cmd/paceline ", "paceline ")
		}
		for i, port := range own {
			line = strings.ReplaceAll(line, ports[i], port)
		}
		s.WriteString(line)
		for i, verb := range [...]string{"paceline serve", "paceline proxy"} {
			if strings.Contains(line, verb) && inTheBack.MatchString(strings.TrimSpace(line)) {
				s.WriteString("until (exec 3<>/dev/tcp/127.0.0.1/" + own[i] + ") 2>/dev/null; do sleep 0.02; done\n")
			}
		}
	}
	return s.String()
}

// Run runs the block in an empty folder, as it is written, and checks that it prints what the page
// says. The addresses alone are others, so that several blocks may run at once. A block of sh clone
// runs in root, the top of the repository.
func (b *Block) Run(t *testing.T, root string, env []string) {
	switch {
	case b.Word == "long" && !need.Long():
		t.Skip("it takes minutes: PACELINE_LONG=1")
	case !slices.Contains([]string{"", "long", "clone"}, b.Word):
		t.Fatalf("a block of sh %s, expected sh, sh long or sh clone", b.Word)
	}
	need.Program(t, "bash")
	need.Program(t, "curl")
	var own [len(ports)]string
	for i := range own {
		_, own[i], _ = net.SplitHostPort(need.Address(t))
	}
	wait := 5 * time.Minute
	if b.Word == "long" {
		wait = 30 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", b.script(own))
	c.Dir = t.TempDir()
	home := t.TempDir()
	if b.Word == "clone" { // it builds, and a home without a cache would build everything anew
		c.Dir, home = root, os.Getenv("HOME")
	}
	at := func(i int) string { return "127.0.0.1:" + own[i] }
	c.Env = append(slices.Clip(env), "HOME="+home, "XDG_RUNTIME_DIR="+t.TempDir(), "XDG_STATE_HOME=", // a daemon of its own
		"PACELINE_ADDR="+at(0))
	if !strings.Contains(b.Text, "paceline proxy --config") { // whose file has its addresses
		c.Env = append(c.Env, "PACELINE_ADMIN="+at(2))
		if !strings.Contains(b.Text, "paceline daemon") { // whose port has a key
			c.Env = append(c.Env, "PACELINE_LISTEN="+at(1))
		}
	}
	c.WaitDelay = 5 * time.Second // a process that it started and did not end holds its output open
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, b.Text, out)
	}
	for _, want := range b.Prints {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q:\n%s\n%s", want, b.Text, out)
		}
	}
}

// RunAll runs the blocks of sh that are chosen, each as a parallel test of its own.
func RunAll(t *testing.T, root string, env []string, chosen func(*Page, *Block) bool) (n int) {
	for _, p := range All(t, root) {
		for i := range p.Blocks {
			b := &p.Blocks[i]
			if b.Language != "sh" || !chosen(p, b) {
				continue
			}
			n++
			t.Run(fmt.Sprintf("%s:%d", p.Name, b.Line), func(t *testing.T) {
				t.Parallel()
				b.Run(t, root, env)
			})
		}
	}
	return n
}
