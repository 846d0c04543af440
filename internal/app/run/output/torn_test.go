package output

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// The results of a run killed at any point are read as far as they are whole. Other files are refused, also by a
// Peek, and are not changed.
func TestResultsTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	a := (&format.Result{ID: "a", State: "done", Attempts: 1}).Append(nil)
	b := (&format.Result{ID: `b"é`, State: "expired"}).Append(nil)
	whole := slices.Concat(a, b)
	for cut := range len(whole) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00"} {
			if err := os.WriteFile(path, append(slices.Clone(whole[:cut]), tail...), 0o644); err != nil {
				t.Fatal(err)
			}
			var ids []string
			l, err := openResults(path, form{Results: format.Plain{}}, peeked{}, func(e format.Entry, _ int64) { ids = append(ids, e.ID) })
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if err := l.Append(b); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(l.Reader())
			l.Close()
			n := bytes.Count(whole[:cut], []byte("\n"))
			if want := slices.Concat(slices.Concat([][]byte{a, b}[:n]...), b); len(ids) != n || !bytes.Equal(got, want) {
				t.Fatalf("cut at %d: ids %q, then content %q, want %q", cut, ids, got, want)
			}
		}
	}
	for _, foreign := range []string{"notes", "notes\n", "{\"url\":\"http://h/\"}\n", string(a) + "notes", "{\"id\":\"x\",\"state\":\"waiting\"}\n"} {
		if err := os.WriteFile(path, []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := openResults(path, form{Results: format.Plain{}}, peeked{}, func(format.Entry, int64) {})
		if got, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "is this the right file?") || string(got) != foreign {
			t.Errorf("%q: %v, and then the file has %q", foreign, err, got)
		}
		config := Config{Out: path, Format: format.Plain{}}
		config.Name()
		if err := New(config).Peek(func(format.Entry) {}); err == nil || !strings.Contains(err.Error(), "is this the right file?") {
			t.Errorf("%q: a Peek returns %v", foreign, err)
		}
	}
}

// A file that changed after it was looked at is read again, also where its size is the same.
func TestChangedSincePeek(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	write := func(id string, at time.Time) {
		if err := os.WriteFile(path, (&format.Result{ID: id, State: "done", Attempts: 1}).Append(nil), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		id   string
		at   time.Time
		want []string
	}{{"a", began, nil}, {"b", began.Add(time.Second), []string{"b"}}} {
		write("a", began)
		config := Config{Out: path, Dead: path, Format: format.Plain{}}
		config.Name()
		s := New(config)
		if err := s.Peek(func(format.Entry) {}); err != nil {
			t.Fatal(err)
		}
		write(c.id, c.at)
		var ids []string
		f, err := openResults(path, form{Results: format.Plain{}}, s.peeked[path], func(e format.Entry, _ int64) { ids = append(ids, e.ID) })
		if err != nil {
			t.Fatal(err)
		}
		if f.Close(); !slices.Equal(ids, c.want) {
			t.Errorf("%s at %v: read again are %v, want %v", c.id, c.at, ids, c.want)
		}
	}
}

// Results were last written when the later of the two files was.
func TestLastWrite(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ out, dead, want time.Duration }{{1, 2, 2}, {2, 1, 2}, {0, 3, 3}, {3, 0, 3}, {0, 0, 0}} {
		folder := t.TempDir()
		s := new(Store)
		for name, at := range map[string]time.Duration{"out": c.out, "dead": c.dead} {
			path := filepath.Join(folder, name)
			if at > 0 {
				line := (&format.Result{ID: name, State: map[string]string{"out": "done", "dead": "dead"}[name], Attempts: 1}).Append(nil)
				if err := os.WriteFile(path, line, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, began.Add(at), began.Add(at)); err != nil {
					t.Fatal(err)
				}
			}
			f, err := openResults(path, form{format.Plain{}, name == "dead"}, peeked{}, func(format.Entry, int64) {})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if name == "out" {
				s.Out = f
			} else {
				s.Dead = f
			}
		}
		want := began.Add(c.want)
		if c.want == 0 {
			want = time.Time{}
		}
		if got := s.LastWrite(); !got.Equal(want) {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

// The first line of a file behind a view says what it has. A damaged first line is refused, as any line that is no
// result.
func TestFirstLineBehindAView(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		f := newRows(&Config{Ordered: ordered})
		line := f.first()
		if e, ok := f.Entry(line, false); !ok || e.ID != "" || *f.was != f.String() {
			t.Errorf("%q: %v, %+v, of %q", line, ok, e, *f.was)
		}
		for cut := range len(line) - len("}\n") {
			if e, ok := f.Entry(line[:cut], false); ok {
				t.Errorf("%q is taken for %+v", line[:cut], e)
			}
		}
	}
}

// NULs of a power cut are cut off a view. Other text is somebody's work: it stays, and the error says where it begins.
func TestWhatAViewCutsOff(t *testing.T) {
	for _, c := range []struct{ text, want, says string }{
		{"a\n\x00\x00", "a\n", ""},
		{"a\nmine\n", "a\nmine\n", "from byte 2 on"},
		{"a\n\x00mine", "a\n\x00mine", "from byte 2 on"},
	} {
		path := filepath.Join(t.TempDir(), "out.csv")
		written(t, path, c.text)
		to, err := durable.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(c.text))
		if err := to.SetSize(size); err != nil {
			t.Fatal(err)
		}
		v := &view{to: to, left: size, old: bufio.NewReader(to.Reader())}
		if err = v.put([]byte("a\n")); err == nil {
			err = v.differs()
		}
		to.Close()
		if got, _ := os.ReadFile(path); string(got) != c.want || (err == nil) != (c.says == "") ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q becomes %q, %v, want %q, %q", c.text, got, err, c.want, c.says)
		}
	}
}
