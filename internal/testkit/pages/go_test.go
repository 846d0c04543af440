package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

const top = "../../.."

// TestPagesGo: the Go of the pages compiles. A block that is no file is the body of a function. It
// can use the declarations of earlier blocks on the page. A whole block is a file, and if it is a
// test, it passes.
func TestPagesGo(t *testing.T) {
	t.Parallel()
	overlay := map[string]map[string]string{} // by module, then by path
	for _, p := range All(t, top) {
		for module, files := range goFiles(t, p) {
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
			if module != "." && module != "lab/micro" && !need.Whole() {
				t.Skipf("what %s needs takes minutes to build: %s=1", module, need.Require)
			}
			compile(t, module, overlay[module])
		})
	}
}

// compile lays files into a folder of a module that is not there, and tests it.
func compile(t *testing.T, module string, files map[string]string) {
	at, err := filepath.Abs(filepath.Join(top, module))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace, folders := map[string]string{}, []string{}
	for name, text := range files {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(at, "pages", name)] = file
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
	work := "off"
	if module != "." { // beside this module, and not with it as a dependency, whose packages would be compiled again
		work = filepath.Join(dir, "go.work")
	}
	run := func(program string, args ...string) bool {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir, c.Env = at, append(os.Environ(), "GOWORK="+work)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return err == nil
	}
	if module != "." && !run("go", "work", "init", ".", filepath.Join(at, strings.Repeat("../", 1+strings.Count(module, "/")))) {
		return
	}
	slices.Sort(folders)
	// One command has all folders: each command loads the module anew. list -export compiles a program, and links nothing.
	// go vet and go test want to be in folders that are there.
	var tests, others []string
	for _, folder := range slices.Compact(folders) {
		if _, isTest := files[strings.TrimPrefix(folder, "./pages/")+"/page_test.go"]; isTest {
			tests = append(tests, folder)
		} else {
			others = append(others, folder)
		}
	}
	if len(others) > 0 {
		run("go", slices.Concat([]string{"list", "-export", "-overlay", overlay}, others)...)
	}
	if len(tests) > 0 && run("go", slices.Concat([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", dir}, tests)...) {
		for _, folder := range tests {
			run(filepath.Join(dir, filepath.Base(folder)+".test"))
		}
	}
}

// goFiles are the files that a page's blocks make, by module.
func goFiles(t *testing.T, p *Page) map[string]map[string]string {
	all := map[string]map[string]string{}
	bodies := map[string][]Block{}
	for _, b := range p.Blocks {
		module := b.Word
		switch {
		case b.Language != "go" || module == "other":
			continue
		case module == "":
			module = "."
		}
		if all[module] == nil {
			all[module] = map[string]string{}
		}
		if !strings.HasPrefix(b.Text, "package ") {
			bodies[module] = append(bodies[module], b)
			continue
		}
		name := fmt.Sprintf("%s%d/page", strings.TrimSuffix(p.Name, ".md"), b.Line)
		if strings.Contains(b.Text, "*testing.T") {
			name += "_test"
		}
		all[module][name+".go"] = b.Text
	}
	for module, list := range bodies {
		all[module][strings.TrimSuffix(p.Name, ".md")+"/page.go"] = function(t, p, list)
	}
	return all
}

// known are the packages whose names the pages use without importing them.
var known = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "rand": "math/rand/v2", "time": "time", "os": "os",
	"rate": "golang.org/x/time/rate", "ratelimit": "go.uber.org/ratelimit", "failsafe": "github.com/failsafe-go/failsafe-go",
	"ratelimiter": "github.com/failsafe-go/failsafe-go/ratelimiter", "retrypolicy": "github.com/failsafe-go/failsafe-go/retrypolicy",
	"paceline": module, "grpc": "google.golang.org/grpc", "pacegrpc": module + "/contrib/grpc",
	"river": "github.com/riverqueue/river", "rivertype": "github.com/riverqueue/river/rivertype",
	"paceriver": module + "/contrib/river", "asynq": "github.com/hibiken/asynq", "paceasynq": module + "/contrib/asynq",
}

const module = "github.com/paceline-go/paceline"

var (
	qualifier = regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`)
	remark    = regexp.MustCompile(`//.*`)
)

// function is a file whose one function has the blocks, each in a scope within that of the one
// before.
func function(t *testing.T, p *Page, list []Block) string {
	var text strings.Builder
	text.WriteString(strings.Join(p.Prelude, "\n") + "\nfunc typed() error {\n")
	for _, b := range list {
		text.WriteString(b.Text + used(t, p.Name, &b) + "{\n")
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

// publicFolders has the folders of the packages that a user may import, by name. It also looks into internal folders: go
// test has to hear of a change there, since what the pages are compiled from is no part of this test's binary.
var publicFolders = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	module := os.DirFS(top)
	fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{"lab", "cmd", "tools", "testdata", ".git"}, d.Name()):
			return fs.SkipDir
		}
		files, _ := fs.Glob(module, path.Join(name, "*.go"))
		if len(files) > 0 && !strings.Contains("/"+name+"/", "/internal/") {
			all[d.Name()] = name
		}
		return nil
	})
	return all
})

// used says of each variable that a block declares that it is used, which on a page it need not be.
func used(t *testing.T, page string, b *Block) string {
	file, err := parser.ParseFile(token.NewFileSet(), page, "package p\nfunc f() {\n"+b.Text+"}\n", 0)
	if err != nil {
		t.Errorf("%s:%d: %v", page, b.Line, err)
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
	for _, p := range All(t, top) {
		for _, b := range p.Blocks {
			if b.Language != "go" {
				continue
			}
			if got, err := format.Source([]byte(b.Text)); err != nil || string(got) != b.Text {
				t.Errorf("%s:%d: %v, expected\n%s", p.Name, b.Line, err, got)
			}
		}
	}
}
