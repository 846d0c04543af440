package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// table reads CSV.
func csvRows(t *testing.T, text string) [][]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return all
}

// There is a row for each answer, with any content. A failed selection is empty and counted; dead
// requests are in the file beside it.
func TestRunSelect(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Query().Get("id") {
		case "1":
			fmt.Fprint(w, `{"name":"two\nlines, \"quoted\"","n":12345678901234567890}`)
		case "2":
			fmt.Fprint(w, `{"name":"=1+1","n":{"a":[1]}}`)
		case "3":
			fmt.Fprint(w, `no JSON`)
		case "4":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, `{"name":"é"}`)
		}
	})
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	in := write(t, "in.jsonl", numbered(5, lib.URL))
	args := []string{"run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", in, "--out", at("p.csv")}
	selects := append(slices.Clone(args), "--select", "id=.id, name=.body.name, n=.body.n")
	code, stdout, stderr := paceline("", selects...)
	const want = "id,name,n\n0,é,\n1,\"two\nlines, \"\"quoted\"\"\",12345678901234567890\n2,=1+1,\"{\"\"a\"\":[1]}\"\n3,,\n"
	if got := read(t, at("p.csv")); code != 3 || stdout != "" || got != want || !strings.Contains(stderr, "1 answer of which --select failed (--retry-dead=unselected)") ||
		!strings.Contains(stderr, `--select name=.body.name: expected an object but got: string ("no JSON"), of the answer to "3": the field is empty`) {
		t.Fatalf("%d %s%s\n%s", code, stdout, stderr, got)
	}
	if dead := results(t, at("p.csv.dead.jsonl")); len(dead) != 1 || dead[0].ID != "4" {
		t.Errorf("%+v", dead)
	}
	if code, _, stderr = paceline("", selects...); code != 3 || lib.count() != 5 || read(t, at("p.csv")) != want {
		t.Errorf("again: %d asked %d %s%s", code, lib.count(), stderr, read(t, at("p.csv")))
	}
	if err := os.WriteFile(at("q.csv"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = paceline("", append(slices.Clone(args), "--out", at("q.csv"), "--select", "id=.id")...)
	if beside, _ := filepath.Glob(at("q.*")); code != 1 || !strings.Contains(stderr, "q.csv is there, and "+at("q.csv.rows")) || len(beside) != 1 {
		t.Errorf("refused: %d %s; it leaves %q", code, stderr, beside)
	}
	for _, c := range []struct {
		name   string
		text   string // of the table
		args   []string
		code   int
		says   string
		become string
	}{
		{"the same, written otherwise", want, append(slices.Clone(args), "--select", "{id, name: .body.name, n: .body.n}"), 3, "4 done before", want},
		{"removed", "", selects, 3, "4 done before", want},
		{"cut short", want[:30], selects, 3, "4 done before", want},
		{"NULs of a power cut", want[:30] + "\x00\x00\x00", selects, 3, "4 done before", want},
		{"edited", strings.Replace(want, "é", "e", 1), selects, 1, "p.csv is not what was written there, from byte 12 on: it was changed", strings.Replace(want, "é", "e", 1)},
		{"more of it", want + "5,mine,\n", selects, 1, "is not what was written there, from byte " + strconv.Itoa(len(want)), want + "5,mine,\n"},
		{"another selection", want, append(slices.Clone(args), "--select", "id=.id"), 4,
			`p.csv was begun with "id=.id, name=.body.name, n=.body.n as csv", and this is "id=.id as csv": expected the same, or another --out; nothing was sent`, want},
		{"in order", want, append(selects, "--ordered"), 4, `and this is "id=.id, name=.body.name, n=.body.n as csv, in the order of the input"`, want},
	} {
		if err := os.WriteFile(at("p.csv"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := paceline("", c.args...)
		if got := read(t, at("p.csv")); code != c.code || !strings.Contains(stderr, c.says) || got != c.become || lib.count() != 5 {
			t.Errorf("%s: %d asked %d %s%s", c.name, code, lib.count(), stderr, got)
		}
	}
	if err := os.Remove(at("p.csv.rows")); err != nil {
		t.Fatal(err)
	}
	before := read(t, at("p.csv"))
	if code, _, stderr = paceline("", selects...); code != 1 || !strings.Contains(stderr, "p.csv is there, and "+at("p.csv.rows")+", by which a run goes on with it, is not") || read(t, at("p.csv")) != before {
		t.Errorf("without its rows: %d %s", code, stderr)
	}
	if _, err := os.Stat(at("p.csv.rows")); !os.IsNotExist(err) {
		t.Errorf("without its rows: they are made, %v", err)
	}
}

// Answers from which --select cannot take its fields are no silent success: the exit code is 3, and the end names a way
// on. --success makes dead letters of such answers.
func TestRunUnselected(t *testing.T) {
	t.Parallel()
	lib := newLibrary(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"text":"no JSON"}`) })
	in := write(t, "in.jsonl", numbered(3, lib.URL))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--select", "id=.id, label=(.body.text|fromjson|.label)"}, 3,
			"--select failed on 3 answers: the rows have empty fields, and the requests count as done; --retry-dead=unselected " +
				"asks for them again, and --success EXPRESSION"},
		{[]string{"--select", "id=.id, label=(.body.text|fromjson|.label)", "--success", `.text == "no JSON"`}, 3,
			"a stricter --success with another --out makes dead letters"},
		{[]string{"--select", "id=.id, label=(.body.text|fromjson|.label)", "--success", ".text | fromjson | .label", "--attempts", "1"}, 3,
			"0 done, 0 rejected, 0 expired, 3 dead"},
		{[]string{"--select", "id=.id, label=.body.text"}, 0, "3 done, 0 rejected"},
	} {
		args := append([]string{"run", "--limit", "500/s", in, "--out", filepath.Join(t.TempDir(), "p.csv")}, c.args...)
		code, _, stderr := paceline("", args...)
		if code != c.code || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "--select failed") != strings.Contains(c.says, "--s") {
			t.Errorf("%q: %d, want %d\n%s", c.args, code, c.code, stderr)
		}
	}
}

// On standard output rows come as they are; what has none keeps its line, where there is a place
// for it.
func TestRunSelectOut(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("id") == "1" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{"name":"a\u001bb"}`)
	})
	in := write(t, "in.jsonl", numbered(3, lib.URL))
	args := []string{"run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", in}
	code, stdout, _ := paceline("", append(args, "--select", ".body.name")...)
	lines := strings.Split(stdout, "\n")
	if code != 3 || len(lines) != 4 || lines[0] != `"a\u001bb"` || !strings.HasPrefix(lines[1], `{"id":"1","state":"dead","status":404`) || lines[2] != lines[0] {
		t.Errorf("%d %s", code, stdout)
	}
	for _, ordered := range []string{"--ordered=false", "--ordered"} {
		dead := filepath.Join(t.TempDir(), "dead")
		if code, stdout, stderr := paceline("", append(args, "--select", "{id, url}", "--out-format", "tsv", "--dead", dead, ordered)...); code != 3 ||
			stdout != "id\turl\n0\t"+lib.URL+"?id=0\n2\t"+lib.URL+"?id=2\n" || len(results(t, dead)) != 1 {
			t.Errorf("%s: %d %s%s", ordered, code, stdout, stderr)
		}
	}
	if code, stdout, _ = paceline("", append(args, "--select", "{id}", "--ordered")...); code != 3 ||
		!strings.HasPrefix(stdout, "{\"id\":\"0\"}\n{\"id\":\"1\",\"state\":\"dead\",") || !strings.HasSuffix(stdout, "}\n{\"id\":\"2\"}\n") {
		t.Errorf("%d %s", code, stdout)
	}
}

// However often a run is killed: each answer has one row, in order if that was asked, and nothing
// is sent again that has its row.
func TestRunRowsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9")
	}
	const n = 400
	for _, c := range []struct {
		name, out string
		args      []string
	}{
		{"rows", "p.csv", []string{"--select", "id=.id, text=.body"}},
		{"rows in order", "p.csv", []string{"--select", "id=.id, text=.body", "--ordered"}},
		{"lines in order", "p.jsonl", []string{"--ordered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
				id := q.URL.Query().Get("id")
				if strings.HasSuffix(id, "9") {
					time.Sleep(20 * time.Millisecond)
				}
				fmt.Fprint(w, "two\nlines of "+id)
			})
			out := filepath.Join(t.TempDir(), c.out)
			args := append([]string{"run", "--limit", "none", "--concurrency", "8", "--progress", "off", "--out", out, write(t, "in.jsonl", numbered(n, lib.URL))}, c.args...)
			shown := func() (ids []string) {
				if _, err := os.Stat(out); err != nil {
					return nil
				}
				text := read(t, out)
				if strings.HasSuffix(out, ".jsonl") {
					for line := range strings.Lines(text) {
						var r format.Result
						if !strings.HasSuffix(line, "\n") {
							break // in the middle of which it was killed
						}
						if err := json.Unmarshal([]byte(line), &r); err != nil {
							t.Fatal(err)
						}
						ids = append(ids, r.ID)
					}
					return ids
				}
				whole := max(strings.LastIndex(text, "\"\n")+2, strings.LastIndex(text, "id,text\n")+1+len("id,text"))
				for i, row := range csvRows(t, text[:min(whole, len(text))]) {
					if i > 0 && (len(row) != 2 || row[1] != "two\nlines of "+row[0]) || i == 0 && row[0] != "id" {
						t.Fatalf("row %d is %q", i, row)
					}
					if i > 0 {
						ids = append(ids, row[0])
					}
				}
				return ids
			}
			kills := killedUntilDone(t, lib, shown, args...)
			got := shown()
			inOrder := slices.IsSortedFunc(got, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
			once := len(slices.Compact(slices.Sorted(slices.Values(got)))) == n
			if len(got) != n || !once || strings.Contains(c.name, "order") != inOrder {
				t.Errorf("%d rows, each once: %v, in order: %v", len(got), once, inOrder)
			}
			t.Log(kills, "kills,", lib.count(), "sends of", n)
		})
	}
}

// A slow request delays only the lines of the others, not the requests. A dead one delays no line.
func TestRunOrdered(t *testing.T) {
	release := make(chan struct{})
	tries := 0
	lib := newLibrary(t, nil)
	lib.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		lib.mu.Lock()
		id := q.URL.Query().Get("id")
		lib.asked[id]++
		if lib.asked["29"] > 0 && lib.asked["2"] > 0 {
			select {
			case <-release:
			default:
				close(release)
			}
		}
		tries++
		lib.mu.Unlock()
		switch id {
		case "2": // answered when all others were asked
			<-release
		case "5":
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, id)
	})
	in := write(t, "in.jsonl", numbered(30, lib.URL))
	out := filepath.Join(t.TempDir(), "r.jsonl")
	ids := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			_, rest, _ := strings.Cut(line, `{"id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			all = append(all, id)
		}
		return all
	}
	var want []string
	for i := range 30 {
		want = append(want, strconv.Itoa(i))
	}
	args := []string{"run", "--limit", "none", "--concurrency", "4", "--progress", "off", "--ordered", in}
	if code, stdout, stderr := paceline("", args...); code != 3 || !slices.Equal(ids(stdout), want) {
		t.Errorf("%d %s%q", code, stderr, ids(stdout))
	}
	without := slices.Delete(slices.Clone(want), 5, 6)
	if code, _, stderr := paceline("", append(args, "--out", out)...); code != 3 || !slices.Equal(ids(read(t, out)), without) {
		t.Errorf("%d %s%q", code, stderr, ids(read(t, out)))
	}
	// A dead request gets its place when its answer comes.
	lib.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "now") })
	if code, _, stderr := paceline("", append(args, "--out", out, "--retry-dead")...); code != 0 || !slices.Equal(ids(read(t, out)), want) {
		t.Errorf("%d %s%q", code, stderr, ids(read(t, out)))
	}
}
