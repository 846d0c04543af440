package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A docsPage is README.md, one beside it or one of docs/, and CONTRIBUTING.md says what its blocks may say: "sh" is run, "sh long" with PACELINE_LONG=1,
// "go" is compiled, "go DIR" in the module of that folder, "go other" is not.
type docsPage struct {
	name    string
	blocks  []block
	prelude []string // <!-- go: … -->: what its Go takes for granted
}

type block struct {
	line           int
	language, word string
	text           string
	prints         []string // <!-- prints: … -->, after it
}

var comment = regexp.MustCompile(`^<!-- (go|prints): (.*) -->$`)

func pageFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v: %d pages in docs", err, len(files))
	}
	// By name: .git stands beside them, and whatever git does there would be news to go test, which would never find this tested already.
	for _, name := range []string{"ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "README", "SECURITY", "STYLE"} {
		files = append(files, "../../"+name+".md")
	}
	return files
}

func pages(t *testing.T) (all []*docsPage) {
	t.Helper()
	for _, file := range pageFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, readPage(filepath.Base(file), string(text)))
	}
	return all
}

func readPage(name, text string) *docsPage {
	p := &docsPage{name: name}
	inside := false
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		m := comment.FindStringSubmatch(line)
		switch {
		case isFence && !inside:
			b := block{line: i + 2}
			b.language, b.word, _ = strings.Cut(fence, " ")
			p.blocks = append(p.blocks, b)
			inside = true
		case isFence:
			inside = false
		case inside:
			b := &p.blocks[len(p.blocks)-1]
			b.text += line + "\n"
		case m != nil && m[1] == "go":
			p.prelude = append(p.prelude, m[2])
		case m != nil:
			b := &p.blocks[len(p.blocks)-1]
			b.prints = append(b.prints, m[2])
		}
	}
	return p
}

// TestPages: what the pages tell somebody to type works, in an empty folder, as it is written, and prints what they say.
// The addresses alone are others, so that several may run at once. TestFairPage has docs/fair.md, TestComingFromRuns has coming-from.md.
func TestPages(t *testing.T) {
	t.Parallel()
	need.Program(t, "bash")
	need.Program(t, "curl")
	env := shellEnv(t)
	for _, p := range pages(t) {
		if p.name == "fair.md" || p.name == comingFrom {
			continue
		}
		for _, b := range p.blocks {
			if b.language != "sh" {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", p.name, b.line), func(t *testing.T) {
				t.Parallel()
				b.run(t, env)
			})
		}
	}
}

var (
	elsewhere = regexp.MustCompile(`^\s*(go (install|build)|sudo|npm|npx|docker|podman|brew) `) // needs the network, or a built release
	inTheBack = regexp.MustCompile(`&\s*(#.*)?$`)
)

// portsOf are the ports that pages speak of: of servers, of the proxy, and of what is looked at of that.
var portsOf = [...]string{"9999", "7878", "7879"}

// script is the block as it is run: on ports of its own, where a server or a proxy that is started in the background is waited for.
func (b *block) script(ports [len(portsOf)]string) string {
	var s strings.Builder
	s.WriteString("set -e -o pipefail\n")
	for line := range strings.Lines(b.text) {
		if elsewhere.MatchString(line) {
			continue
		}
		for i, port := range ports {
			line = strings.ReplaceAll(line, portsOf[i], port)
		}
		s.WriteString(line)
		for i, verb := range [...]string{"paceline serve", "paceline proxy"} {
			if strings.Contains(line, verb) && inTheBack.MatchString(strings.TrimSpace(line)) {
				s.WriteString("until (exec 3<>/dev/tcp/127.0.0.1/" + ports[i] + ") 2>/dev/null; do sleep 0.02; done\n")
			}
		}
	}
	return s.String()
}

func (b *block) run(t *testing.T, env []string) {
	switch {
	case b.word == "long" && os.Getenv("PACELINE_LONG") == "":
		t.Skip("it takes minutes: PACELINE_LONG=1")
	case b.word != "long" && b.word != "":
		t.Fatalf("a block of sh %s, expected sh or sh long", b.word)
	}
	var ports [len(portsOf)]string
	for i := range ports {
		_, ports[i], _ = net.SplitHostPort(reserved(t))
	}
	wait := patient
	if b.word == "long" {
		wait = 30 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", b.script(ports))
	c.Dir = t.TempDir()
	c.Env = append(slices.Clip(env), "PACELINE_ADDR=127.0.0.1:"+ports[0], "PACELINE_LISTEN=127.0.0.1:"+ports[1], "PACELINE_ADMIN=127.0.0.1:"+ports[2], "HOME="+t.TempDir())
	c.WaitDelay = 5 * time.Second // what it started and did not end holds its output open
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, b.text, out)
	}
	for _, want := range b.prints {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q:\n%s\n%s", want, b.text, out)
		}
	}
}

// TestPagesGo: the Go of the pages compiles. A block that is no file is the body of a function, which sees what the
// blocks before it on the page declare; what is whole is a file, and if it is a test, it passes.
func TestPagesGo(t *testing.T) {
	t.Parallel()
	overlay := map[string]map[string]string{} // by module, then by path
	for _, p := range pages(t) {
		for module, files := range p.goFiles(t) {
			if overlay[module] == nil {
				overlay[module] = map[string]string{}
			}
			maps.Copy(overlay[module], files)
		}
	}
	if len(overlay["."]) < 3 {
		t.Errorf("%d pages with Go, expected three at least", len(overlay["."]))
	}
	for _, module := range slices.Sorted(maps.Keys(overlay)) {
		t.Run(module, func(t *testing.T) {
			if module != "." && module != "lab/micro" && os.Getenv(need.Require) != "1" {
				t.Skipf("what %s needs takes minutes to build: %s=1", module, need.Require)
			}
			compile(t, module, overlay[module])
		})
	}
}

// compile lays files into a folder of a module that is not there, and tests it.
func compile(t *testing.T, module string, files map[string]string) {
	root, err := filepath.Abs("../../" + module)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace, folders := map[string]string{}, []string{}
	for name, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "pages", name)] = at
		folders = append(folders, "./pages/"+filepath.Dir(name))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir, c.Env = root, append(os.Environ(), "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	slices.Sort(folders)
	for i, folder := range slices.Compact(folders) { // go vet and go test want to be in folders that are there
		if _, isTest := files[strings.TrimPrefix(folder, "./pages/")+"/page_test.go"]; isTest {
			bin := filepath.Join(dir, fmt.Sprint("test", i))
			run("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, folder)
			run(bin)
		} else {
			run("go", "build", "-overlay", overlay, "-o", os.DevNull, folder) // of a program nothing is to be left
		}
	}
}

// goFiles are the files that a page's blocks make, by module.
func (p *docsPage) goFiles(t *testing.T) map[string]map[string]string {
	all := map[string]map[string]string{}
	bodies := map[string][]block{}
	for _, b := range p.blocks {
		module := b.word
		switch {
		case b.language != "go" || module == "other":
			continue
		case module == "":
			module = "."
		}
		if all[module] == nil {
			all[module] = map[string]string{}
		}
		if !strings.HasPrefix(b.text, "package ") {
			bodies[module] = append(bodies[module], b)
			continue
		}
		name := fmt.Sprintf("%s%d/page", strings.TrimSuffix(p.name, ".md"), b.line)
		if strings.Contains(b.text, "*testing.T") {
			name += "_test"
		}
		all[module][name+".go"] = b.text
	}
	for module, list := range bodies {
		all[module][strings.TrimSuffix(p.name, ".md")+"/page.go"] = p.function(t, list)
	}
	return all
}

// known are the packages whose names the pages use without importing them.
var known = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "rand": "math/rand/v2", "time": "time", "os": "os",
	"rate": "golang.org/x/time/rate", "ratelimit": "go.uber.org/ratelimit", "failsafe": "github.com/failsafe-go/failsafe-go",
	"ratelimiter": "github.com/failsafe-go/failsafe-go/ratelimiter", "retrypolicy": "github.com/failsafe-go/failsafe-go/retrypolicy",
	"paceline": module, "grpc": "google.golang.org/grpc", "pacegrpc": module + "/contrib/grpc",
}

const module = "github.com/paceline-go/paceline"

var (
	qualifier = regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`)
	remark    = regexp.MustCompile(`//.*`)
)

// function is a file whose one function has the blocks, each in a scope within that of the one before.
func (p *docsPage) function(t *testing.T, list []block) string {
	var text strings.Builder
	text.WriteString(strings.Join(p.prelude, "\n") + "\nfunc typed() error {\n")
	for _, b := range list {
		text.WriteString(b.text + used(t, p.name, &b) + "{\n")
	}
	text.WriteString(strings.Repeat("}\n", len(list)) + "return nil\n}\n")
	imports, folders := map[string]bool{}, publicFolders()
	for _, m := range qualifier.FindAllStringSubmatch(remark.ReplaceAllString(text.String(), ""), -1) {
		if path, ok := known[m[1]]; ok {
			imports[path] = true
		} else if folder := folders[m[1]]; folder != "" {
			imports[module+"/"+folder] = true
		}
	}
	var head strings.Builder
	head.WriteString("package page\n")
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		head.WriteString(fmt.Sprintf("import %q\n", path))
	}
	return head.String() + text.String()
}

// publicFolders has the folders of the packages that a user may import, by name.
var publicFolders = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	root := os.DirFS("../..")
	fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{"internal", "lab", "cmd", "tools", "testdata", ".git"}, d.Name()):
			return fs.SkipDir
		}
		if files, _ := fs.Glob(root, path.Join(name, "*.go")); len(files) > 0 {
			all[d.Name()] = name
		}
		return nil
	})
	return all
})

// used says of each variable that a block declares that it is used, which on a page it need not be.
func used(t *testing.T, page string, b *block) string {
	file, err := parser.ParseFile(token.NewFileSet(), page, "package p\nfunc f() {\n"+b.text+"}\n", 0)
	if err != nil {
		t.Errorf("%s:%d: %v", page, b.line, err)
		return ""
	}
	var names bytes.Buffer
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if assign, ok := s.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
			for _, v := range assign.Lhs {
				if id, ok := v.(*ast.Ident); ok && id.Name != "_" {
					fmt.Fprintf(&names, "_ = %s\n", id.Name)
				}
			}
		}
	}
	return names.String()
}

// Go on a page is formatted as all Go is.
func TestPagesFormatted(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" {
				continue
			}
			if got, err := format.Source([]byte(b.text)); err != nil || string(got) != b.text {
				t.Errorf("%s:%d: %v, expected\n%s", p.name, b.line, err, got)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links lead to files that are there, and to headings that they have.
func TestPagesLinks(t *testing.T) {
	for _, file := range pageFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := filepath.Join(filepath.Dir(file), to)
			if to == "" {
				at = file
			}
			there, err := os.ReadFile(at)
			if info, e := os.Stat(at); e == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			} else if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s: %s has no heading #%s", filepath.Base(file), at, anchor)
			}
		}
	}
}

var notInAnchors = regexp.MustCompile(`[^\w\- ]`)

// anchors are the names that headings get on a page.
func anchors(text string) (all []string) {
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all = append(all, strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-"))
		}
	}
	return all
}
