package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// parquetRows returns the columns of a file of Parquet as "name TYPE", and its rows as "a|b|c".
func parquetRows(t *testing.T, path string) (columns, all []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Schema().Fields() {
		columns = append(columns, c.Name()+" "+c.Type().String())
	}
	for _, g := range file.RowGroups() {
		rows := make([]parquet.Row, g.NumRows())
		r := g.Rows()
		if n, err := r.ReadRows(rows); int64(n) != g.NumRows() {
			t.Fatal(n, err)
		}
		for _, row := range rows {
			var cells []string
			for _, v := range row {
				cells = append(cells, v.String())
			}
			all = append(all, strings.Join(cells, "|"))
		}
		r.Close()
	}
	return columns, all
}

// Each answer has its rows, in columns that have a type each. A rerun makes the file of all rows, and
// leaves it alone if there are no new ones.
func TestRunParquet(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Query().Get("id") {
		case "0":
			fmt.Fprint(w, `{"n":9007199254740992,"of":["a","b"],"at":[1.50]}`)
		case "1":
			w.WriteHeader(http.StatusNotFound)
		case "2":
			fmt.Fprint(w, `{"n":0.5,"of":[],"at":{"b":null}}`)
		}
	})
	dir := t.TempDir()
	out := filepath.Join(dir, "r.parquet")
	args := []string{"run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", write(t, "in.jsonl",
		numbered(3, lib.URL)),
		"--out", out, "--select", "id=.id, the n=.body.n, of=.body.of[], A.b=.body.at"}
	code, stdout, stderr := paceline("", args...)
	columns, rows := parquetRows(t, out)
	want := []string{"0|9.007199254740992e+15|a|[1.50]", "0|9.007199254740992e+15|b|[1.50]", `2|0.5|<null>|{"b":null}`}
	if code != 3 || stdout != "" || strings.Join(columns,
		", ") != "id STRING, the n DOUBLE, of STRING, A.b JSON" || !slices.Equal(rows, want) {
		t.Fatalf("%d %s%s\n%q\n%s", code, stdout, stderr, columns, strings.Join(rows, "\n"))
	}
	if got := names(t, dir); strings.Join(got,
		" ") != "r.parquet r.parquet.dead.jsonl r.parquet.rows r.parquet.rows.journal" {
		t.Errorf("there are %q", got)
	}
	if info, err := os.Stat(out); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	lib.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w,
			`{"n":9007199254740993,"of":["late"]}`)
	})
	want = []string{"0|9007199254740992|a|[1.50]", "0|9007199254740992|b|[1.50]", `2|0.5|<null>|{"b":null}`,
		"1|9007199254740993|late|<null>"}
	var made os.FileInfo
	for range 2 {
		code, _, stderr = paceline("", append(args, "--retry-dead")...)
		if columns, rows = parquetRows(t,
			out); code != 0 || lib.count() != 3 || columns[1] != "the n STRING" || !slices.Equal(rows, want) {
			t.Errorf("again: %d asked %d %s\n%q\n%s", code, lib.count(), stderr, columns, strings.Join(rows, "\n"))
		}
		info, err := os.Stat(out)
		if err != nil || made != nil && !os.SameFile(made, info) {
			t.Errorf("it was made again, of nothing new: %v", err)
		}
		made = info
	}
}

// Without --select there is a column for each field of results.
func TestRunParquetWhole(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		if q.URL.Query().Get("id") == "1" {
			_, _ = w.Write([]byte{0xff, 0})
			return
		}
		fmt.Fprint(w, "text")
	})
	in := write(t, "in.jsonl", numbered(2,
		lib.URL)+`{"id":"old","url":"`+lib.URL+`?id=2","deadline":"2020-01-01T00:00:00Z"}`+"\n")
	out := filepath.Join(t.TempDir(), "results")
	began := time.Now()
	code, _, stderr := paceline("", "run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", in,
		"--out", out, "--out-format", "parquet")
	columns, rows := parquetRows(t, out)
	slices.Sort(rows)
	if code != 3 || len(rows) != 3 {
		t.Fatalf("%d %s\n%s", code, stderr, strings.Join(rows, "\n"))
	}
	for name, want := range map[string]string{
		"id STRING": "0 1 old", "state STRING": "done done expired", "status INT(64,true)": "200 200 <null>",
		"body STRING": "text <null> <null>", "body_base64 STRING": "<null> /wA= <null>",
		"possible_repeat BOOLEAN": "false false false",
		"refused INT(64,true)":    "<null> <null> <null>", "attempts INT(64,true)": "1 1 0",
	} {
		var got []string
		i := slices.Index(columns, name)
		for _, row := range rows {
			if i >= 0 {
				got = append(got, strings.Split(row, "|")[i])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %s; the columns are %q", name, got, want, columns)
		}
	}
	var at int64
	i := slices.Index(columns, "at TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS)")
	if i < 0 || !strings.Contains(rows[0], `|{"content-type":"text/plain; charset=utf-8","x-request-id":"r1"}|`) {
		t.Fatalf("%q\n%s", columns, rows[0])
	}
	if _, err := fmt.Sscan(strings.Split(rows[0], "|")[i],
		&at); err != nil || time.UnixMilli(at).Sub(began).Abs() > time.Hour {
		t.Errorf("at is %d, %v", at, err)
	}
}

// What cannot go on is refused, with what, where and what is expected; nothing is sent, and no file is touched.
func TestRunParquetRefused(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "text") })
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	in := write(t, "in.jsonl", numbered(2, lib.URL))
	begun := []string{"run", "--limit", "500/s", "--progress", "off", in, "--out", at("r.parquet")}
	if code, _, stderr := paceline("", begun...); code != 0 {
		t.Fatal(code, stderr)
	}
	file, rows := read(t, at("r.parquet")), read(t, at("r.parquet.rows"))
	foreign := "r.parquet was not made of " + at("r.parquet.rows") + ": " +
		"move it away, and the same command makes it anew"
	for _, c := range []struct {
		name, file, rows string
		args             []string
		code             int
		says             string
	}{
		{"the file is gone", "", rows, nil, 0, "2 done before"},
		{"its results are gone", file, "", nil, 1,
			"r.parquet is there, and " + at("r.parquet.rows") + ", by which a run goes on with it, is not"},
		{"results were changed", file, strings.Replace(rows, "text", "tent", 1), nil, 1,
			"r.parquet has rows that were not made of " + at("r.parquet.rows") + ", " +
				"which was changed: move the table away"},
		{"results were cut short", file, rows[:strings.Index(rows, "\n")+1], nil, 1,
			"r.parquet has rows that were not made of "},
		{"no such file", "no file of Parquet, but a text", rows, nil, 1, foreign},
		{"too short", "PAR1", rows, nil, 1, foreign},
		{"without its footer", "PAR1\xff\xff\xff\x7fPAR1", rows, nil, 1, foreign},
		{"edited by another program", strings.Replace(file, "paceline.source", "another.program", 1), rows, nil, 1,
			foreign},
		{"a selection", file, rows, []string{"--select", "id=.id"}, 4,
			`r.parquet was begun with "whole lines as parquet", and this is "id=.id as parquet": ` +
				"expected the same, or another --out"},
		{"ordered", file, rows, []string{"--ordered"}, 2, "a table has no order; expected ORDER BY"},
		{"two names that are one", file, rows, []string{"--select", "id=.id, ID=.id"}, 2,
			`names "ID" twice, expected each column once`},
		{"standard output", file, rows, []string{"--out", "-", "--out-format", "parquet"}, 2,
			"--out-format parquet needs a file, expected such as --out results.parquet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, text := range map[string]string{"r.parquet": c.file, "r.parquet.rows": c.rows} {
				if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if text == "" {
					_ = os.Remove(at(name))
				}
			}
			before := lib.count()
			code, _, stderr := paceline("", append(slices.Clone(begun), c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.says) || lib.count() != before {
				t.Errorf("%d, %d sent: %s", code, lib.count()-before, stderr)
			}
			if c.code != 0 && read(t, at("r.parquet")) != c.file {
				t.Error("the file was changed")
			}
			if c.code != 0 {
				return
			}
			if _, again := parquetRows(t, at("r.parquet")); len(again) != 2 {
				t.Errorf("made anew, it has %q", again)
			}
		})
	}
}

// However often a run is killed: the file is whole or not there, each answer has one row in the end,
// and nothing is sent again whose answer is kept.
func TestRunParquetKilled(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "TestRunRowsKilled kills a run with rows")
	out := filepath.Join(t.TempDir(), "r.parquet")
	shown := func() (ids []string) {
		if _, err := os.Stat(out); err != nil {
			return nil
		}
		_, rows := parquetRows(t, out)
		for _, row := range rows {
			id, text, _ := strings.Cut(row, "|")
			if text != "two\nlines of "+id {
				t.Errorf("%s has %q", id, text)
			}
			ids = append(ids, id)
		}
		return ids
	}
	kept := func() (ids []string) {
		shown() // looks at its texts
		text, _ := os.ReadFile(out + ".rows")
		for line := range strings.Lines(string(text)) {
			id, _, whole := strings.Cut(strings.TrimPrefix(line, `{"id":"`), `"`)
			if whole && id != "" && strings.HasSuffix(line, "\n") {
				ids = append(ids, id)
			}
		}
		return ids
	}
	killedTable(t, out, kept, shown)
}
