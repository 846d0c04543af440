package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/paceline-go/paceline/internal/secret"
)

// pieces reads at most 500 bytes at once.
type pieces struct{ io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), 500)]) }

// A part of an answer hides the same secrets, whether it arrives at once or in pieces. At its start is the end
// of a key, at its end the start of one. Between them is a long chain of keys, each of which begins within the one
// before it.
func TestStreamHidesWhereverPiecesEnd(t *testing.T) {
	const border, middle = "9aK7", "q0Xw5Tz3Lm8Rv1"
	set := secret.New([]secret.Key{{Name: "A", Value: border + middle + border}})
	chain := strings.Repeat(middle+border, set.Beginning()/len(middle))
	for _, c := range []struct {
		text   string
		isPart bool
	}{
		{chain + " text " + border + middle, true},
		{strings.Repeat(" text", set.Beginning()) + border + chain, true},
		{border + chain + strings.Repeat(" text", set.Beginning()) + border + middle, false},
	} {
		cut := secret.Whole
		if c.isPart {
			cut = secret.CutStart | secret.CutEnd
		}
		want, hidden := set.Hide([]byte(c.text), cut)
		b := &Bodies{dir: t.TempDir(), most: int64(len(c.text))}
		if err := b.open(); err != nil {
			t.Fatal(err)
		}
		from := pieces{strings.NewReader(c.text)}
		s, answer, disk := b.Stream("x", set, http.Header{}, c.isPart, nil, from)
		if answer != nil || disk != nil {
			t.Fatal(answer, disk)
		}
		got, err := os.ReadFile(b.unfinished(s.name))
		if err != nil || !bytes.Equal(got, want) || s.hidden != hidden {
			t.Errorf("%v; of %d bytes\n%.200q with %d hidden, want\n%.200q with %d", err, len(c.text), got,
				s.hidden, want, hidden)
		}
	}
}

// Where bodies do not get their names, the error has the first reason, and how many more there are. The others
// are named.
func TestBodiesThatCannotBeNamed(t *testing.T) {
	for _, c := range []struct {
		lost int
		more string
	}{{0, ""}, {1, ""}, {2, ", and 1 files more"}, {3, ", and 2 files more"}} {
		b := &Bodies{dir: t.TempDir(), most: 100}
		if err := b.open(); err != nil {
			t.Fatal(err)
		}
		var of []string
		for i := range 4 {
			s, _, err := b.Stream(fmt.Sprint(i), secret.New(nil), http.Header{}, false, nil, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			b.add(*s)
			of = append(of, s.name)
		}
		// A folder of that name is in the way.
		for i := range c.lost {
			if err := os.MkdirAll(filepath.Join(b.dir, of[i], "in the way"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := b.sync(1, func() error { return nil })
		_, more, _ := strings.Cut(fmt.Sprint(err), ", and ")
		if (err != nil) != (c.lost > 0) || more != strings.TrimPrefix(c.more, ", and ") {
			t.Errorf("%d cannot be named: %v, want %q", c.lost, err, c.more)
		}
		for i, name := range of {
			if b.isNamed(name) != (i >= c.lost) {
				t.Errorf("%d cannot be named: %s is: %v", c.lost, name, b.isNamed(name))
			}
		}
	}
}

// A body that is not written to its end leaves no file: one that is too long by a byte, and one whose answer breaks
// off. The error says which it is.
func TestStreamLeavesNoPart(t *testing.T) {
	broken := errors.New("the connection broke")
	for _, c := range []struct {
		name string
		rest io.Reader
		want error
	}{
		{"too long", strings.NewReader("56789a"), ErrTooLong},
		{"broken", io.MultiReader(strings.NewReader("567"), iotest.ErrReader(broken)), broken},
		{"as long as it may be", strings.NewReader("56789"), nil},
	} {
		b := &Bodies{dir: t.TempDir(), most: 10}
		if err := b.open(); err != nil {
			t.Fatal(err)
		}
		s, answer, disk := b.Stream("x", secret.New(nil), http.Header{}, false, []byte("01234"), c.rest)
		if !errors.Is(answer, c.want) || disk != nil || (s == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, %v", c.name, s, answer, disk)
		}
		left, err := os.ReadDir(b.unfinished(""))
		if err != nil || (len(left) == 0) != (c.want != nil) {
			t.Errorf("%s: the folder has %v, %v", c.name, left, err)
		}
	}
}
