package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// sqlRows returns the rows of a query as "a|b|c", each value with its type.
func sqlRows(t *testing.T, file, query string) (all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=rw&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	columns, err := found.Columns()
	for err == nil && found.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		err = found.Scan(to...)
		var row []string
		for _, v := range values {
			if b, is := v.([]byte); is {
				v = fmt.Sprintf("%q", b)
			}
			row = append(row, fmt.Sprint(v))
		}
		all = append(all, strings.Join(row, "|"))
	}
	if err := errors.Join(err, found.Err()); err != nil {
		t.Fatal(err)
	}
	return all
}

// Each answer has its rows, with the types that its values have. A rerun adds only what is missing,
// beside tables and changes of the user.
func TestRunSQLite(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Query().Get("id") {
		case "0":
			fmt.Fprint(w, `{"n":9223372036854775807,"of":["a","b"]}`)
		case "1":
			fmt.Fprint(w, `{"n":12345678901234567890,"of":[true]}`)
		case "2":
			fmt.Fprint(w, `{"n":0.30000000000000004,"of":[{"b":1.50,"a":null}]}`)
		case "3":
			w.WriteHeader(http.StatusNotFound)
		case "4":
			fmt.Fprint(w, `{"n":1e3,"of":[]}`)
		}
	})
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", write(t, "in.jsonl", numbered(5, lib.URL)),
		"--out", at("r.db"), "--select", "id=.id, the n=.body.n, of=.body.of[]"}
	const all = `SELECT id, "the n", typeof("the n"), of, typeof(of) FROM results ORDER BY rowid`
	want := []string{"0|9223372036854775807|integer|a|text", "0|9223372036854775807|integer|b|text",
		"1|12345678901234567890|text|1|integer", `2|0.30000000000000004|real|{"a":null,"b":1.50}|text`, "4|1000|real|<nil>|null"}
	code, stdout, stderr := paceline("", args...)
	if got := sqlRows(t, at("r.db"), all); code != 3 || stdout != "" || !slices.Equal(got, want) {
		t.Fatalf("%d %s%s\n%s", code, stdout, stderr, strings.Join(got, "\n"))
	}
	if got := names(t, dir); strings.Join(got, " ") != "r.db r.db.dead.jsonl r.db.rows r.db.rows.journal" {
		t.Errorf("there are %q", got)
	}
	if info, err := os.Stat(at("r.db")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	sqlRows(t, at("r.db"), "CREATE TABLE mine (x)")
	sqlRows(t, at("r.db"), "ALTER TABLE results ADD COLUMN seen")
	sqlRows(t, at("r.db"), "UPDATE results SET seen = 1")
	lib.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, `{"n":-1.50,"of":["late"]}`) })
	want = append(want, "3|-1.5|real|late|text")
	for range 2 {
		code, _, stderr = paceline("", append(args, "--retry-dead")...)
		if got := sqlRows(t, at("r.db"), all); code != 0 || lib.count() != 5 || !slices.Equal(got, want) {
			t.Errorf("again: %d asked %d %s\n%s", code, lib.count(), stderr, strings.Join(got, "\n"))
		}
	}
	if got := sqlRows(t, at("r.db"), "SELECT count(*), sum(seen) FROM results"); got[0] != "6|5" {
		t.Errorf("what the user changed is %q", got)
	}
}

// Without --select there is a column for each field of results.
func TestRunSQLiteWhole(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		if q.URL.Query().Get("id") == "1" {
			_, _ = w.Write([]byte{0xff, 0})
			return
		}
		fmt.Fprint(w, "text")
	})
	in := write(t, "in.jsonl", numbered(2, lib.URL)+`{"id":"old","url":"`+lib.URL+`?id=2","deadline":"2020-01-01T00:00:00Z"}`+"\n")
	out := filepath.Join(t.TempDir(), "results")
	code, _, stderr := paceline("", "run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", in, "--out", out, "--out-format", "sqlite")
	got := sqlRows(t, out, `SELECT id, state, status, attempts, typeof(waited_ms), body, typeof(body), possible_repeat = 0,
		headers ->> 'x-request-id', refused, at > '2020' FROM results ORDER BY id`)
	want := []string{"0|done|200|1|real|text|text|1|r1|<nil>|1", `1|done|200|1|real|"\xff\x00"|blob|1|r1|<nil>|1`,
		"old|expired|<nil>|0|real|<nil>|null|1|<nil>|<nil>|1"}
	if code != 3 || !slices.Equal(got, want) {
		t.Errorf("%d %s\n%s", code, stderr, strings.Join(got, "\n"))
	}
}

// What cannot go on is refused, with what, where and what is expected; nothing is sent.
func TestRunSQLiteRefused(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "text") })
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	in := write(t, "in.jsonl", numbered(2, lib.URL))
	begun := []string{"run", "--limit", "500/s", "--progress", "off", in, "--out", at("r.db")}
	if code, _, stderr := paceline("", begun...); code != 0 {
		t.Fatal(code, stderr)
	}
	table, rows := read(t, at("r.db")), read(t, at("r.db.rows"))
	for _, c := range []struct {
		name, table, rows string
		args              []string
		code              int
		says              string
	}{
		{"the table is gone", "", rows, nil, 0, "2 done before"},
		{"its results are gone", table, "", nil, 1, "r.db is there, and " + at("r.db.rows") + ", by which a run goes on with it, is not"},
		{"results were changed", table, strings.Replace(rows, "text", "tent", 1), nil, 1, "r.db has rows that were not made of " + at("r.db.rows") + ", which was changed: move the table away"},
		{"results were cut short", table, rows[:strings.Index(rows, "\n")+1], nil, 1, "r.db has rows that were not made of "},
		{"no database", "no database, but a text of some length", rows, nil, 1, "r.db: file is not a database"},
		{"a selection", table, rows, []string{"--select", "id=.id"}, 4, `r.db was begun with "whole lines as sqlite", and this is "id=.id as sqlite": expected the same, or another --out`},
		{"ordered", table, rows, []string{"--ordered"}, 2, "a table has no order; expected ORDER BY"},
		{"two names that are one", table, rows, []string{"--select", "id=.id, ID=.id"}, 2, `names "ID" twice, expected each column once`},
		{"no columns", table, rows, []string{"--select", ".body"}, 2, "has no columns, expected such as"},
		{"standard output", table, rows, []string{"--out", "-", "--out-format", "sqlite"}, 2, "--out-format sqlite needs a file, expected such as --out results.db"},
		{"a folder", table, rows, []string{"--out", at("folder.db")}, 2, "folder.db is a folder, expected a file"},
		{"dead letters in it", table, rows, []string{"--dead", at("r.db")}, 1, "are one file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, text := range map[string]string{"r.db": c.table, "r.db.rows": c.rows} {
				if err := os.Remove(at(name)); err != nil {
					t.Fatal(err)
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(at("folder.db"), 0o700); err != nil {
				t.Fatal(err)
			}
			before := lib.count()
			code, _, stderr := paceline("", append(slices.Clone(begun), c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.says) || lib.count() != before {
				t.Errorf("%d, %d sent: %s", code, lib.count()-before, stderr)
			}
			if c.code != 0 && c.table != "" && read(t, at("r.db")) != c.table {
				t.Error("the table was changed")
			}
			if err := os.WriteFile(at("r.db"), []byte(table), 0o600); err != nil { // it is there for the next case
				t.Fatal(err)
			}
			if err := os.WriteFile(at("r.db.rows"), []byte(rows), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// However often a run is killed: each answer has one row, whoever reads or writes the file meanwhile,
// and nothing is sent again that has its row.
func TestRunSQLiteKilled(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "TestRunRowsKilled kills a run with rows")
	out := filepath.Join(t.TempDir(), "r.db")
	shown := func() []string {
		if _, err := os.Stat(out); err != nil {
			return nil
		}
		if tables := sqlRows(t, out, "SELECT name FROM sqlite_schema WHERE name = 'results'"); len(tables) == 0 {
			return nil // it was killed before it made the table
		}
		if wrong := sqlRows(t, out, "SELECT id FROM results WHERE text <> 'two'||char(10)||'lines of '||id"); len(wrong) > 0 {
			t.Fatalf("wrong are %q", wrong)
		}
		return sqlRows(t, out, "SELECT id FROM results")
	}
	killedTable(t, out, shown, shown)
}

// killedTable kills runs that write a table until one is done. Each answer must have one row then. kept are
// the ids of answers that are not to be sent again, and shown those of the table.
func killedTable(t *testing.T, out string, kept, shown func() []string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9")
	}
	const n = 400
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		id := q.URL.Query().Get("id")
		if strings.HasSuffix(id, "9") {
			time.Sleep(20 * time.Millisecond)
		}
		fmt.Fprint(w, "two\nlines of "+id)
	})
	kills := killedUntilDone(t, lib, kept, "run", "--limit", "none", "--concurrency", "8", "--progress", "off", "--out", out,
		"--select", "id=.id, text=.body", write(t, "in.jsonl", numbered(n, lib.URL)))
	got := shown()
	if once := len(slices.Compact(slices.Sorted(slices.Values(got)))) == n; len(got) != n || !once {
		t.Errorf("%d rows, each once: %v", len(got), once)
	}
	t.Log(kills, "kills,", lib.count(), "sends of", n)
}
