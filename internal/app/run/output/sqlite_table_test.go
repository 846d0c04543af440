package output

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// tableRig is a store whose results are in a table of SQLite, and a second program that has the file
// open.
type tableRig struct {
	*Store
	t     *testing.T
	out   string
	other *sql.DB
	added int
}

func newTableRig(t *testing.T) *tableRig {
	r := &tableRig{t: t, out: filepath.Join(t.TempDir(), "r.db")}
	r.open()
	var err error
	if r.other, err = sql.Open("sqlite", "file:"+r.out+"?mode=rw"); err != nil {
		t.Fatal(err)
	}
	r.other.SetMaxOpenConns(1)
	t.Cleanup(func() { r.other.Close() })
	return r
}

// open opens the store, whose writes wait for no other program.
func (r *tableRig) open() {
	r.t.Helper()
	c := Config{Out: r.out, Format: format.Plain{}, Table: SQLite}
	c.Name()
	r.Store = New(c)
	if err := r.Open(func(format.Entry) {}, r.t.Logf); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.table.db.Exec("PRAGMA busy_timeout = 0"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *tableRig) add(n int) {
	r.t.Helper()
	for range n {
		line := (&format.Result{ID: fmt.Sprint(r.added), State: "done", Attempts: 1}).Append(nil)
		if err := r.Out.Append(line); err != nil {
			r.t.Fatal(err)
		}
		r.added++
	}
}

func (r *tableRig) exec(text string) {
	r.t.Helper()
	if _, err := r.other.Exec(text); err != nil {
		r.t.Fatal(err)
	}
}

// has checks that the ids from 0 to n-1 have a row each.
func (r *tableRig) has(n int) {
	r.t.Helper()
	var rows, ids, last int
	if err := r.other.QueryRow("SELECT count(*), count(DISTINCT id), coalesce(max(id+0), -1) FROM results").Scan(&rows, &ids, &last); err != nil {
		r.t.Fatal(err)
	}
	if rows != n || ids != n || last != n-1 {
		r.t.Errorf("%d rows of %d ids up to %d, want %d", rows, ids, last, n)
	}
}

// While another program holds the file, rows wait for the next flush. At the end the user learns of
// it, and the next run adds them.
func TestTableHeld(t *testing.T) {
	r := newTableRig(t)
	for range 2 {
		r.exec("BEGIN IMMEDIATE")
		r.add(3)
		if err := r.sync(1); err != nil {
			t.Fatal(err)
		}
		r.has(r.added - 3)
		r.exec("COMMIT")
		if err := r.sync(1); err != nil {
			t.Fatal(err)
		}
		r.has(r.added)
	}
	r.add(3)
	if err := r.Out.Sync(1); err != nil {
		t.Fatal(err)
	}
	r.exec("BEGIN IMMEDIATE")
	if err := r.Close(); err == nil || !strings.Contains(err.Error(),
		"r.db is locked by another program: the same command adds the rows") {
		t.Errorf("closed: %v", err)
	}
	r.exec("COMMIT")
	r.has(r.added - 3)
	r.open()
	r.has(r.added)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A disk fills up in the middle of a transaction: none of its rows are there, and no later ones.
// Another run adds all.
func TestTableFull(t *testing.T) {
	r := newTableRig(t)
	r.add(3)
	if err := r.sync(1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.table.db.Exec("PRAGMA max_page_count = 6"); err != nil {
		t.Fatal(err)
	}
	r.add(1000)
	for range 2 {
		if err := r.sync(1); err == nil || !strings.Contains(err.Error(), "r.db: database or disk is full") {
			t.Fatalf("full: %v", err)
		}
		r.has(3)
	}
	if err := r.Close(); err == nil {
		t.Error("the end says nothing of it")
	}
	r.open()
	r.has(1003)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A row is refused, for a trigger of the user: the rows before it in the transaction are not there
// either, or they would be there twice later.
func TestTableRefusesARow(t *testing.T) {
	r := newTableRig(t)
	r.exec("CREATE TRIGGER no BEFORE INSERT ON results WHEN new.id = '2' BEGIN SELECT RAISE(ABORT, 'not this'); END")
	r.add(4)
	if err := r.sync(1); err == nil || !strings.Contains(err.Error(), "r.db: constraint failed: not this") {
		t.Fatal(err)
	}
	r.has(0)
	r.exec("DROP TRIGGER no")
	_ = r.Close()
	r.open()
	r.has(4)
	r.Close()
}

// A table that is made anew of more results than one transaction takes has them all.
func TestTableOfMany(t *testing.T) {
	r := newTableRig(t)
	body := strings.Repeat("x", 1<<20)
	for range transactionBytes>>20 + 2 {
		if err := r.Out.Append((&format.Result{ID: fmt.Sprint(r.added), State: "done",
			Body: &body}).Append(nil)); err != nil {
			t.Fatal(err)
		}
		r.added++
	}
	if err := r.sync(1); err != nil {
		t.Fatal(err)
	}
	r.has(r.added)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	r.open()
	r.has(r.added)
	r.Close()
}

// The file is removed under a run: that is an error, since all rows would vanish with it.
func TestTableGone(t *testing.T) {
	r := newTableRig(t)
	r.table.path += ".moved" // as if its name had led elsewhere
	r.add(1)
	if err := r.sync(1); err == nil || !strings.Contains(err.Error(), "is no longer there") {
		t.Error(err)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "is no longer there") {
		t.Error(err)
	}
}

// A number keeps all its digits, as a text if it must.
func TestCell(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-7": int64(-7), "9223372036854775807": int64(9223372036854775807),
		"9223372036854775808":  "9223372036854775808",
		"12345678901234567890": "12345678901234567890", "0.1": 0.1, "-1.50": -1.5, "1e3": 1000.0, "1E+3": 1000.0,
		"0.0":                 0.0,
		"0.30000000000000004": 0.30000000000000004, "0.3000000000000000401": "0.3000000000000000401",
		"1e400": "1e400", "1e-400": "1e-400", "123456789.123456789": "123456789.123456789",
		"100000000000000000000": 1e20,
	} {
		if got := cell(json.Number(text)); got != want {
			t.Errorf("%s is %T %v, want %T %v", text, got, got, want, want)
		}
	}
}
