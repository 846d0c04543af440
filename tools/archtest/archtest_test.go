package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/paceline-go/paceline"

var root = filepath.Join("..", "..")

// The sources of this module, against the table.
func TestSources(t *testing.T) {
	found, err := Sources(os.DirFS(root), module, Table)
	if err != nil {
		t.Error(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// The imports of this module and of those nested in it, tests included, against the borders.
func TestCrossings(t *testing.T) {
	found, err := Crossings(os.DirFS(root), module, Borders)
	if err != nil {
		t.Error(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// The functions and folders of this module, and of those nested in it.
func TestSizes(t *testing.T) {
	found, err := Sizes(os.DirFS(root))
	if err != nil {
		t.Error(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// Few names of files are in several folders, so that a name leads to one file.
func TestSharedNames(t *testing.T) {
	shared, err := SharedNames(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d names of files are in several folders", len(shared))
	if len(shared) > mostShared {
		t.Errorf("%d names of files are in several folders, expected %d at most: %v", len(shared), mostShared, shared)
	}
	odd := fstest.MapFS{"a/doc.go": {}, "b/doc.go": {}, "a/a.go": {}, "b/a.go": {}, "a/x.go": {}, "c/x.go": {}}
	if shared, err := SharedNames(odd); err != nil || len(shared) != 1 || len(shared["x.go"]) != 2 {
		t.Errorf("of the planted names: %v, %v, expected x.go twice", shared, err)
	}
}

func TestTables(t *testing.T) {
	found, err := Tables(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
	odd := fstest.MapFS{
		"a/doc.go":   {Data: []byte("// Package a.\n//\n//\tone.go       one\n//\tone_test.go  its tests\n//\tgone.go      gone\n//\tparts_*.go   parts\npackage a\n")},
		"a/one.go":   {Data: []byte("package a\n")},
		"a/other.go": {Data: []byte("package a\n")}, "a/parts_b.go": {Data: []byte("package a\n")}, "a/one_linux.go": {Data: []byte("package a\n")},
		"b/b.go": {Data: []byte("package b\n")}, "a/one_test.go": {Data: []byte("package a\n")},
	}
	if found, err := Tables(odd); err != nil || len(found) != 2 || !strings.Contains(fmt.Sprint(found), "has gone.go, which is not there") || !strings.Contains(fmt.Sprint(found), "has no other.go") {
		t.Errorf("of the planted tables: %v, %v", found, err)
	}
	large := fstest.MapFS{} // four files and parts by system; five without a table; five with it in a main file
	for dir, names := range map[string]string{
		"four": "doc a b c c_linux c_other d d_test", "none": "doc a b c d e", "main": "a b c d main",
	} {
		for name := range strings.FieldsSeq(names) {
			large[dir+"/"+name+".go"] = &fstest.MapFile{Data: []byte("package p\n")}
		}
	}
	table := "// Command p.\n//\n//\ta.go, b.go  first\n//\tc.go, d.go  last\npackage p\n"
	large["main/main.go"] = &fstest.MapFile{Data: []byte(table)}
	want := []Violation{
		{"main/main.go", 1, "expected the table of files in doc.go"}, {"none/doc.go", 1, "expected the table of files in doc.go"},
	}
	if found, err := Tables(large); err != nil || !slices.Equal(found, want) {
		t.Errorf("of the planted packages: %v, %v, expected %v", found, err, want)
	}
}

func TestColumns(t *testing.T) {
	lines, wide, err := Columns(os.DirFS(root))
	if err != nil || lines < 50_000 {
		t.Fatalf("%d lines, %v", lines, err)
	}
	if most := lines * wideLines / 1000; len(wide) > most {
		for _, v := range wide[:10] {
			t.Log(v)
		}
		t.Errorf("%d of %d lines are too wide, more than %d", len(wide), lines, most)
	}
	odd := fstest.MapFS{
		"a.go": {Data: []byte("package a\n// " + strings.Repeat("x", 117) + "\n// " + strings.Repeat("ä", 118) + "\n")},
	}
	if n, wide, err := Columns(odd); n != 3 || len(wide) != 1 || wide[0].Line != 3 || err != nil {
		t.Errorf("%d lines, %v, %v", n, wide, err)
	}
}

// Every file that is or would be committed.
func TestText(t *testing.T) {
	found, err := Text(os.DirFS(root), files(t))
	if err != nil {
		t.Error(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// files returns what git has and what it would add: all files where git cannot tell.
func files(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		git.Dir = root
		if out, err := git.Output(); err == nil && len(out) > 0 {
			return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		}
	}
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && name == ".git" {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What a row allows must not undo what the rows it leads to forbid.
func TestTable(t *testing.T) {
	rows := map[string]Package{}
	for _, p := range Table {
		if _, twice := rows[p.Name]; twice {
			t.Errorf("%s is in the table twice", p.Name)
		}
		rows[p.Name] = p
	}
	var reach func(from string, through []string) []string
	reach = func(from string, through []string) []string {
		all := []string{from}
		for name := range strings.FieldsSeq(rows[from].Ours) {
			if slices.Contains(through, name) {
				t.Fatalf("the table allows a circle: %v", append(through, name))
			}
			if name != "any" {
				all = append(all, reach(name, append(through[:len(through):len(through)], name))...)
			}
		}
		return all
	}
	for _, p := range Table {
		for _, name := range reach(p.Name, []string{p.Name}) {
			switch {
			case rows[name].Name == "":
				t.Errorf("%s may import %s, which is not in the table", p.Name, name)
			case p.Core && !rows[name].Core:
				t.Errorf("%s is of the core and may reach %s, which is not", p.Name, name)
			}
		}
		if p.Core && (p.Modules != "" || lists(p.Std, "any") || lists(p.Ours, "any")) {
			t.Errorf("%s is of the core: the table must name what it may import, and no module of others", p.Name)
		}
	}
	for _, judge := range []string{"internal/rule", "ratetest", "ratetest/llm", "ratetest/service"} {
		for _, proven := range []string{"limit", "limit/window", "fairshare"} {
			if slices.Contains(reach(judge, nil), proven) {
				t.Errorf("%s judges %s and may reach it", judge, proven)
			}
		}
	}
}

// Each planted source must be found, at its line, in words that name it; each of the innocent must pass.
func TestPlanted(t *testing.T) {
	for _, c := range []struct {
		name string
		file string
		src  string
		want string // line: part of the message; empty: no violation
	}{
		{"nothing wrong", "limit/a.go", "package limit\nimport \"time\"\nvar d = time.Second", ""},
		{"ours, allowed", "limit/a.go", "package limit\nimport _ \"" + module + "/limit/mono\"", ""},
		{"ours, upward", "limit/a.go", "package limit\n\nimport _ \"" + module + "/internal/core/queue\"", "3: limit imports internal/core/queue of ours"},
		{"ours, the root", "limit/a.go", "package limit\nimport _ \"" + module + "\"", "2: limit imports paceline of ours"},
		{"ours, the judge", "internal/rule/a.go", "package rule\nimport _ \"" + module + "/limit\"", "2: internal/rule imports limit of ours"},
		{"ours, the judge's server", "ratetest/a.go", "package ratetest\nimport _ \"" + module + "/limit/window\"", "2: ratetest imports limit/window of ours"},
		{"in the root, allowed", "gate.go", "package paceline\nimport _ \"sync\"\nimport _ \"" + module + "/limit\"", ""},
		{"in the root, the clock is its own", "gate.go", "package paceline\nimport \"time\"\nvar base = time.Now()\nfunc f() { go f() }", ""},
		{"in the root, upward", "gate.go", "package paceline\nimport _ \"" + module + "/ratetest\"", "2: paceline imports ratetest of ours"},
		{"in the root, HTTP", "gate.go", "package paceline\nimport _ \"net/http\"", "2: paceline imports net/http; the table allows"},
		{"unknown package", "shiny/a.go", "package shiny", "1: package shiny is not in the table: add it"},
		{"unknown package below a known one", "limit/inner/a.go", "package inner", "1: package limit/inner is not in the table"},
		{"a name that another begins with", "limits/a.go", "package limits", "1: package limits is not in the table"},
		{"module of others", "limit/a.go", "package limit\nimport _ \"golang.org/x/time/rate\"", "2: limit imports golang.org/x/time/rate"},
		{"module of others, of a sister's name", "provider/a.go", "package quota\nimport _ \"github.com/dunglas/httpsfvx\"", "2: provider imports github.com/dunglas/httpsfvx"},
		{"module named in the table", "provider/a.go", "package quota\nimport _ \"github.com/dunglas/httpsfv\"", ""},
		{"module under cmd", "cmd/paceline/a.go", "package main\nimport _ \"github.com/spf13/cobra\"\nimport _ \"" + module + "/internal/app/run\"", ""},
		{"asserted", "transport/a.go", "package transport\nimport \"" + module + "/limit\"\nvar _, is = l.(limit.Keeper)",
			"3: transport asserts limit.Keeper"},
		{"asserted by a switch", "transport/a.go",
			"package transport\nimport \"" + module + "/limit\"\nfunc f() { switch l.(type) {\ncase int, limit.Keeper: } }",
			"4: transport asserts limit.Keeper"},
		{"asserted, a kind", "transport/a.go", "package transport\nimport \"" + module + "/limit\"\nvar _ = l.(*limit.Fitted)", ""},
		{"cgo", "cmd/paceline/a.go", "package main\nimport \"C\"", "2: cmd/paceline uses cgo"},
		{"std, not of the row", "limit/a.go", "package limit\nimport _ \"strconv\"", "2: limit imports strconv; the table allows"},
		{"std, of a row that may", "ratetest/latency/a.go", "package latency\nimport _ \"strconv\"", ""},
		{"unsafe", "limit/a.go", "package limit\nimport _ \"unsafe\"", "2: limit imports unsafe"},

		{"sync", "limit/a.go", "package limit\nimport \"sync\"\nvar mu sync.Mutex", "2: limit imports sync, but it decides"},
		{"sync by another name", "limit/a.go", "package limit\nimport s \"sync\"\nvar mu s.Mutex", "2: limit imports sync"},
		{"sync/atomic", "internal/core/queue/a.go", "package queue\nimport _ \"sync/atomic\"", "2: internal/core/queue imports sync/atomic, but it decides"},
		{"context", "internal/core/dispatch/a.go", "package dispatch\nimport _ \"context\"", "2: internal/core/dispatch imports context, but it decides"},
		{"os", "lab/sim/a.go", "package sim\nimport _ \"os\"", "2: lab/sim imports os, but it decides"},
		{"runtime", "limit/mono/a.go", "package mono\nimport _ \"runtime\"", "2: limit/mono imports runtime, but it decides"},

		{"time.Now", "limit/a.go", "package limit\nimport \"time\"\nvar t = time.Now()", "3: limit uses time.Now"},
		{"time.Now as a value", "limit/window/a.go", "package window\nimport \"time\"\nvar clock = time.Now", "3: limit/window uses time.Now"},
		{"time.Now by another name", "internal/rule/a.go", "package rule\nimport tm \"time\"\nvar t = tm.Now()", "3: internal/rule uses time.Now"},
		{"time.Now beside a hidden time", "limit/a.go", "package limit\nimport \"time\"\nfunc f(time fake) { time.Now() }\nvar t = time.Now()", "4: limit uses time.Now"},
		{"a parameter called time", "limit/a.go", "package limit\nimport \"time\"\nvar d time.Duration\nfunc f(time fake) { time.Now() }", ""},
		{"a method called Now", "lab/sim/a.go", "package sim\nfunc f(l *Loop) { l.Now() }", ""},
		{"time.Now by its names", "pool/backoff/a.go", "package backoff\nimport . \"time\"\nvar t = Now()", "2: pool/backoff imports the names of time into its own"},
		{"time.Since", "limit/a.go", "package limit\nimport \"time\"\nvar d = time.Since(time.Time{})", "3: limit uses time.Since"},
		{"time.Until", "limit/a.go", "package limit\nimport \"time\"\nvar d = time.Until(time.Time{})", "3: limit uses time.Until"},
		{"time.Sleep", "fairshare/a.go", "package throttle\nimport \"time\"\nfunc f() { time.Sleep(1) }", "3: fairshare uses time.Sleep"},
		{"time.After", "limit/a.go", "package limit\nimport \"time\"\nvar c = time.After(1)", "3: limit uses time.After:"},
		{"time.AfterFunc", "limit/a.go", "package limit\nimport \"time\"\nvar c = time.AfterFunc(1, nil)", "3: limit uses time.AfterFunc"},
		{"time.Tick", "limit/a.go", "package limit\nimport \"time\"\nvar c = time.Tick(1)", "3: limit uses time.Tick:"},
		{"time.NewTimer", "limit/a.go", "package limit\nimport \"time\"\nvar c = time.NewTimer(1)", "3: limit uses time.NewTimer"},
		{"time.NewTicker", "limit/a.go", "package limit\nimport \"time\"\nvar c = time.NewTicker(1)", "3: limit uses time.NewTicker"},
		{"a timer of a caller's", "limit/a.go", "package limit\nimport \"time\"\nfunc f(t *time.Timer) {}", "3: limit uses time.Timer"},
		{"under a build tag", "limit/a_windows.go", "//go:build windows && never\n\npackage limit\nimport \"time\"\nvar t = time.Now()", "5: limit uses time.Now"},
		{"in a test", "limit/a_test.go", "package limit\nimport \"time\"\nvar t = time.Now()", ""},

		{"goroutine", "internal/core/queue/a.go", "package queue\nfunc f() {\n\tgo f()\n}", "3: internal/core/queue starts a goroutine"},
		{"channel", "internal/core/queue/a.go", "package queue\ntype T struct {\n\tc <-chan int\n}", "3: internal/core/queue has a channel"},
		{"made channel", "internal/core/queue/a.go", "package queue\nvar c = make(chan int)", "2: internal/core/queue has a channel"},
		{"send", "internal/core/queue/a.go", "package queue\nfunc f() {\n\tc <- 1\n}", "3: internal/core/queue sends on a channel"},
		{"receive", "internal/core/queue/a.go", "package queue\nfunc f() {\n\t<-c\n}", "3: internal/core/queue receives from a channel"},
		{"select", "internal/core/queue/a.go", "package queue\nfunc f() {\n\tselect {}\n}", "3: internal/core/queue selects on channels"},

		{"global rand", "lab/sim/a.go", "package sim\nimport \"math/rand/v2\"\nvar x = rand.Float64()", "3: lab/sim uses rand.Float64"},
		{"global rand, generic", "lab/sim/a.go", "package sim\nimport \"math/rand/v2\"\nvar x = rand.N(7)", "3: lab/sim uses rand.N"},
		{"global rand by another name", "lab/sim/a.go", "package sim\nimport r \"math/rand/v2\"\nvar x = r.IntN(7)", "3: lab/sim uses rand.IntN"},
		{"old rand", "ratetest/latency/a.go", "package latency\nimport \"math/rand\"\nvar _ rand.Rand", "2: ratetest/latency imports math/rand;"},
		{"rand with a seed", "lab/sim/a.go", "package sim\nimport \"math/rand/v2\"\nfunc f(r *rand.Rand) { r.Float64() }\nvar r = rand.New(rand.NewPCG(1, 2))", ""},
		{"a generator called rand", "pool/backoff/a.go", "package backoff\nimport \"math/rand/v2\"\nfunc f(rand *rand.Rand) { rand.Float64() }", ""},

		{"left-over Println", "limit/a.go", "package limit\nimport \"fmt\"\nfunc f() { fmt.Println() }", "3: limit uses fmt.Println"},
		{"left-over println", "limit/a.go", "package limit\nfunc f() { println() }", "2: limit calls println"},

		{"key of a log line", "transport/a.go", "package transport\nfunc f() {\n\tt.log.Warn(\"denied\", \"host\", h,\n\t\t\"asked again in\", d)\n}", "4: the key \"asked again in\" of a log line"},
		{"key of a log line, as an attribute", "transport/a.go", "package transport\nimport \"log/slog\"\nvar a = slog.Int(\"Attempts\", 1)", "3: the key \"Attempts\""},
		{"key of a log line, after a level", "transport/a.go", "package transport\nfunc f() { t.log.Log(ctx, level, m, \"a-b\", 1) }", "2: the key \"a-b\""},
		{"keys of a log line", "transport/a.go", "package transport\nfunc f() { t.log.Warn(\"a b\", \"asked_again_in\", d, slog.Int(\"n2\", 1)); Error(\"a b\", \"c d\") }", ""},

		{"generated by nobody: testdata", "limit/testdata/a.go", "package limit\nimport _ \"sync\"", ""},
		{"nested module", "lab/micro/a.go", "package bench\nimport _ \"golang.org/x/time/rate\"", ""},
		{"hidden from the go command", "limit/_a.go", "package limit\nimport _ \"sync\"", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"go.mod":           {Data: []byte("module " + module + "\n")},
				"lab/micro/go.mod": {Data: []byte("module " + module + "/lab/micro\n")},
				c.file:             {Data: []byte(c.src)},
			}
			found, err := Sources(fsys, module, Table)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, found, c.file, c.want)
		})
	}
}

// Each import across a border must be found, in tests too; each within one, or through an opening, must pass.
func TestPlantedCrossings(t *testing.T) {
	for _, c := range []struct {
		file, imported string
		want           string // part of the message; empty: no violation
	}{
		{"limit/a.go", "lab/sim", "2: limit imports lab/sim across the border of lab: the others"},
		{"limit/a_test.go", "lab/sim", "2: limit imports lab/sim across the border of lab"},
		{"gate_test.go", "lab", "2: paceline imports lab across the border of lab"},
		{"internal/testkit/doors/a_test.go", "lab/sim/fleet", "2: internal/testkit/doors imports lab/sim/fleet across"},
		{"internal/app/run/a.go", "lab/strategy", "2: internal/app/run imports lab/strategy across"},
		{"contrib/grpc/a_test.go", "lab/sim", "2: contrib/grpc imports lab/sim across"},
		{"lab/laws/limit/a_test.go", "lab/sim", ""},
		{"labour/a.go", "lab/sim", "2: labour imports lab/sim across"},
		{"lab/sim/a.go", "labour", ""},
		{"lab/micro/run/a.go", "lab/micro/table", ""},
		{"cmd/paceline/a_test.go", "lab/sim", "2: cmd/paceline imports lab/sim across the border of lab"},

		{"gate_test.go", "contrib/xrate", "2: paceline imports contrib/xrate across the border of contrib"},
		{"cmd/paceline/a.go", "contrib/xrate", "2: cmd/paceline imports contrib/xrate across"},
		{"contrib/grpc/a.go", "contrib/xrate", ""},
		{"contrib/xrate/a.go", "limit", ""},
		{"lab/targets/a_test.go", "tools/archtest", "2: lab/targets imports tools/archtest across the border of tools"},
		{"lab/bench/a.go", "cmd/paceline", "2: lab/bench imports cmd/paceline across the border of cmd"},
		{"lab/bench/a.go", "lab/cmd/paceline-lab", ""},

		{"internal/app/run/a.go", "internal/testkit/need", "2: internal/app/run imports internal/testkit/need across the border of internal/testkit"},
		{"cmd/paceline/a.go", "internal/testkit/need", "2: cmd/paceline imports internal/testkit/need across"},
		{"cmd/paceline/a_test.go", "internal/testkit/need", ""},
		{"limit/a_test.go", "internal/testkit/golden", ""},
		{"internal/testkit/browser/a.go", "internal/testkit/need", ""},
		{"lab/proxybench/a.go", "internal/testkit/daemon", ""},
		{"tools/mutate/a.go", "internal/testkit/need", ""},
	} {
		t.Run(c.file+" imports "+c.imported, func(t *testing.T) {
			fsys := fstest.MapFS{
				"contrib/grpc/go.mod": {},
				"lab/micro/go.mod":    {},
				c.file:                {Data: []byte("package p\nimport _ \"" + module + "/" + c.imported + "\"")},
			}
			found, err := Crossings(fsys, module, Borders)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, found, c.file, c.want)
		})
	}
}

func expect(t *testing.T, found []Violation, file, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("found %v, want nothing", found)
	case want != "" && len(found) != 1:
		t.Errorf("found %v, want one violation: %s:%s", found, file, want)
	case want != "" && !strings.HasPrefix(found[0].String(), file+":"+want):
		t.Errorf("found %v, want %s:%s", found[0], file, want)
	}
}

// A file that does not parse is no reason to pass the others.
func TestUnreadable(t *testing.T) {
	fsys := fstest.MapFS{
		"limit/a.go": {Data: []byte("package limit\nfunc {")},
		"limit/b.go": {Data: []byte("package limit\nimport \"sync\"\nvar mu sync.Mutex")},
	}
	found, err := Sources(fsys, module, Table)
	if err == nil || !strings.Contains(err.Error(), "limit/a.go:2") {
		t.Errorf("error %v, want one at limit/a.go:2", err)
	}
	expect(t, found, "limit/b.go", "2: limit imports sync")
}

// Functions of just so many lines and of one more, and folders of just so many files that begin alike and of one more.
func TestPlantedSizes(t *testing.T) {
	function := func(before string, lines int) string { // from the line with before
		return "package p\n\n" + before + " {" + strings.Repeat("\n", lines-1) + "}\n"
	}
	files := func(n int, names string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(names, 'a'+i))
		}
		return all
	}
	for _, c := range []struct {
		name  string
		files []string
		src   string
		want  string
	}{
		{"a function of 100 lines", []string{"limit/a.go"}, function("func f()", 100), ""},
		{"a function of 101 lines", []string{"limit/a.go"}, function("func f()", 101), "3: f has 101 lines, more than 100"},
		{"a method", []string{"limit/a.go"}, function("func (T) f()", 101), "3: f has 101 lines"},
		{"its signature counts", []string{"limit/a.go"}, function("func f(\n\ta int,\n)", 99), "3: f has 101 lines"},
		{"a function in a variable", []string{"limit/a.go"}, function("var f = func()", 101), "3: a function without a name has 101 lines"},
		{"one in another: once", []string{"limit/a.go"}, "package p\n\nfunc g() {\n\tdefer func() {" + strings.Repeat("\n", 101) + "\t}()\n}\n", "3: g has 104 lines"},
		{"in a nested module", []string{"lab/micro/a.go"}, function("func f()", 101), "3: f has 101 lines"},
		{"in a test", []string{"limit/a_test.go"}, function("func f()", 101), ""},
		{"in testdata", []string{"limit/testdata/a.go"}, function("func f()", 101), ""},
		{"a table is no function", []string{"limit/a.go"}, function("var t = []int", 300), ""},

		{"eight files with a prefix", files(8, "limit/llm_%c.go"), "package p", ""},
		{"nine files with a prefix", files(9, "limit/llm_%c.go"), "package p", "1: 9 files of limit begin with llm, more than 8"},
		{"eight, and the one that is called so", append(files(8, "limit/llm_%c.go"), "limit/llm.go"), "package p", "1: 9 files of limit begin with llm"},
		{"the first word counts, not the next", files(9, "limit/llm_x_%c.go"), "package p", "1: 9 files of limit begin with llm"},
		{"eight, and tests", append(files(8, "limit/llm_%c.go"), files(8, "limit/llm_%c_test.go")...), "package p", ""},
		{"words that begin alike", append(files(8, "limit/llm_%c.go"), "limit/llms.go"), "package p", ""},
		{"two folders", append(files(8, "limit/llm_%c.go"), files(8, "internal/core/queue/llm_%c.go")...), "package p", ""},
		{"25 files", files(25, "share/%c.go"), "package p", ""},
		{"26 files", files(26, "share/%c.go"), "package p", "1: share has 26 files, more than 25"},
		{"26 files and their tests, where more are known", append(files(26, "provider/%c.go"), files(26, "provider/%c_test.go")...), "package p", ""},
		{"in the root", files(9, "gate_%c.go"), "package p", "1: 9 files of paceline begin with gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{"lab/micro/go.mod": {}}
			for _, name := range c.files {
				fsys[name] = &fstest.MapFile{Data: []byte(c.src)}
			}
			found, err := Sizes(fsys)
			if err != nil {
				t.Fatal(err)
			}
			file := slices.Min(c.files)
			expect(t, found, file, c.want)
		})
	}
}

func TestPlantedText(t *testing.T) {
	// In pieces, so that this file has none of what is looked for.
	home, yard, field := "/ro"+"ot/.cache", "/wo"+"rk/main", "/fa"+"rm/a"
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"a home", "README.md", "see\n" + home + "\n", "2: /ro"},
		{"a checkout", "docs/a.md", "cd " + yard, "1: /wo"},
		{"a checkout in a script", "check", "a\nb\ncd " + field, "3: /fa"},
		{"a URL's path in capitals", "README.md", "/wo" + "rk/Main", ""},
		{"part of a word", "README.md", "homewo" + "rk/main net" + "work/a", ""},
		{"a checksum", "go.sum", home, ""},
		{"a nested module's checksum", "lab/micro/go.sum", home, ""},
		{"a binary", "lab/chart/testdata/a.png", "\x89PNG\x00" + home, ""},
		{"unfinished", "limit/a.go", "package limit\n\n// TO" + "DO: all of it", "3: TO"},
		{"unfinished in a test", "limit/a_test.go", "// FIX" + "ME", "1: FIX"},
		{"the word in prose", "README.md", "TO" + "DO lists", ""},
		{"a longer word", "limit/a.go", "const TO" + "DOS = 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Text(fstest.MapFS{c.file: {Data: []byte(c.text)}}, []string{c.file, "deleted.go"})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, found, c.file, c.want)
		})
	}
}
