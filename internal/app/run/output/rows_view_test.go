package output

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// A view of an earlier run goes on behind the rows that are the same. What differs is written anew if it may be, or if a
// power cut left it. Otherwise the view stays as it is.
func TestViewGoesOn(t *testing.T) {
	const rows = "id\na\nb\nc\n"
	for _, c := range []struct {
		old     string
		rewrite bool
		want    string
	}{
		{"", false, rows},
		{"id\na\n", false, rows},
		{"id\na\nb\nc\n", false, rows},
		{"id\na\n\x00\x00\x00\x00\x00\x00\x00", false, rows},
		{"id\na\nx\nyy\nzzz\n", true, rows},
		{"id\nxx\nb\nc\nd\n", true, rows},
		{"id\na\nx\nyy\n", false, "id\na\nx\nyy\n"},
	} {
		path := filepath.Join(t.TempDir(), "view")
		if err := os.WriteFile(path, []byte(c.old), 0o644); err != nil {
			t.Fatal(err)
		}
		to, err := durable.Open(path)
		if err == nil {
			err = to.SetSize(int64(len(c.old)))
		}
		if err != nil {
			t.Fatal(err)
		}
		v := &view{to: to, left: int64(len(c.old)), old: bufio.NewReader(strings.NewReader(c.old)), rewrite: c.rewrite}
		for row := range strings.SplitAfterSeq(rows, "\n") {
			if err == nil && row != "" {
				err = v.put([]byte(row))
			}
		}
		if err == nil {
			err = v.flush()
		}
		to.Close()
		got, _ := os.ReadFile(path)
		if string(got) != c.want || (err != nil) != (c.want != rows) {
			t.Errorf("%q becomes %q, want %q: %v", c.old, got, c.want, err)
		}
	}
}
