package output

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// parquetStore opens a store whose results are in a file of Parquet.
func parquetStore(t *testing.T, out, selection string) *Store {
	t.Helper()
	c := Config{Out: out, Format: format.Plain{}, Table: Parquet}
	if selection != "" {
		var err error
		if c.Shape, err = CompileShape(selection, Parquet); err != nil {
			t.Fatal(err)
		}
	}
	c.Name()
	s := New(c)
	if err := s.Open(func(format.Entry) {}, t.Logf); err != nil {
		t.Fatal(err)
	}
	return s
}

// opened returns a file of Parquet by the library's own reader.
func opened(t *testing.T, path string) *parquet.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A column of a selection has the narrowest type that has all its values without loss.
func TestParquetKinds(t *testing.T) {
	cases := []struct{ name, values, kind, got string }{
		{"nothing", "null null null", "STRING", "<null> <null> <null>"},
		{"booleans", "true null false", "BOOLEAN", "true <null> false"},
		{"integers", "1 null -9223372036854775808", "INT(64,true)", "1 <null> -9223372036854775808"},
		{"floats", "1.50 2 1e3", "DOUBLE", "1.5 2 1000"},
		{"a float after integers", "null 9007199254740992 0.5", "DOUBLE", "<null> 9.007199254740992e+15 0.5"},
		{"an integer that no float is", "9007199254740993 0.5 null", "STRING", "9007199254740993 0.5 <null>"},
		{"one below zero", "0.5 null -9007199254740993", "STRING", "0.5 <null> -9007199254740993"},
		{"digits that no float has", "0.1234567890123456789 1 null", "STRING", "0.1234567890123456789 1 <null>"},
		{"texts", `"a" null ""`, "STRING", "a <null> "},
		{"arrays and objects", `[1] {"a":null} [2.50]`, "JSON", `[1] {"a":null} [2.50]`},
		{"texts and numbers", `"a" 1.50 null`, "STRING", "a 1.50 <null>"},
		{"numbers and booleans", `1 true null`, "STRING", "1 true <null>"},
		{"integers and arrays", `1 [2.50] 3`, "STRING", "1 [2.50] 3"},
		{"booleans and numbers", `false 7 2.50`, "STRING", "false 7 2.50"},
	}
	var columns []string
	for i, c := range cases {
		columns = append(columns, fmt.Sprintf("%s=.c%d", c.name, i))
	}
	out := filepath.Join(t.TempDir(), "r.parquet")
	s := parquetStore(t, out, strings.Join(columns, ", "))
	for n := range 3 {
		row := "{"
		for i, c := range cases {
			row += fmt.Sprintf("%.*s%q:%s", min(i, 1), ",", c.name, strings.Fields(c.values)[n])
		}
		row += "}\n"
		if err := s.Out.Append((&format.Result{ID: fmt.Sprint(n), State: "done", Row: &row}).Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := opened(t, out)
	rows := make([]parquet.Row, 3)
	r := file.RowGroups()[0].Rows()
	defer r.Close()
	if n, err := r.ReadRows(rows); n != 3 {
		t.Fatal(n, err)
	}
	for i, c := range cases {
		field := file.Schema().Fields()[i]
		var got []string
		for _, row := range rows {
			got = append(got, row[i].String())
		}
		if field.Name() != c.name || field.Type().String() != c.kind || strings.Join(got, " ") != c.got {
			t.Errorf("%s: %s %s has %q, want %s %q", c.name, field.Name(), field.Type(), got, c.kind, c.got)
		}
	}
}

// Groups of rows are bounded in rows and in bytes, since each is in memory until it is written.
func TestParquetGroups(t *testing.T) {
	out := filepath.Join(t.TempDir(), "r.parquet")
	s := parquetStore(t, out, "")
	s.parquet.groupRows, s.parquet.groupBytes = 1000, 100<<10
	large := strings.Repeat("x", 10<<10)
	add := func(n int, body *string) {
		var lines []byte
		for i := range n {
			lines = (&format.Result{ID: fmt.Sprint(i), State: "done", At: "2026-11-29T12:00:00.5Z",
				Body: body}).Append(lines)
		}
		if err := s.Out.Append(lines); err != nil {
			t.Fatal(err)
		}
	}
	const many = 12
	add(many, &large)
	add(1005, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for _, g := range opened(t, out).RowGroups() {
		rows = append(rows, g.NumRows())
	}
	if len(rows) < 3 || rows[0] >= many || slices.Max(rows) > 1000 {
		t.Errorf("the groups have %d rows", rows)
	}
	all := int64(0)
	for _, n := range rows {
		all += n
	}
	if all != many+1005 {
		t.Errorf("%d rows, want %d", all, many+1005)
	}
}

// A million results take no more memory than some groups of rows.
func TestParquetMemory(t *testing.T) {
	need.LongOnly(t, "a million rows")
	out := filepath.Join(t.TempDir(), "r.parquet")
	s := parquetStore(t, out, "id=.id, name=.name, n=.n")
	const n = 1_000_000
	var lines []byte
	for i := range n {
		row := fmt.Sprintf(`{"id":"%d","name":"%s %d","n":%d.5}`+"\n", i, strings.Repeat("name ", 20), i, i)
		lines = (&format.Result{ID: fmt.Sprint(i), State: "done", Status: 200, Row: &row}).Append(lines)
		if len(lines) > MostLines {
			if err := s.Out.Append(lines); err != nil {
				t.Fatal(err)
			}
			lines = lines[:0]
		}
	}
	if err := s.Out.Append(lines); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for m := (runtime.MemStats{}); ; {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapInuse))
			}
		}
	}()
	began := time.Now()
	err := s.Close()
	close(done)
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(out)
	t.Logf("%d MiB of heap, %d bytes, %v", most.Load()>>20, info.Size(), time.Since(began))
	if most.Load() > 256<<20 {
		t.Errorf("%d MiB of heap", most.Load()>>20)
	}
	if got := opened(t, out).NumRows(); got != n {
		t.Errorf("%d rows, want %d", got, n)
	}
}

// A run that does not start leaves no file: neither results with a heading alone, nor a file of Parquet of none.
func TestParquetOfARunThatDoesNotStart(t *testing.T) {
	folder := t.TempDir()
	parquetStore(t, filepath.Join(folder, "out.parquet"), "").Undo()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
