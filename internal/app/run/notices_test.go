package run

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowly is an input that takes a second for every 1000 lines.
type slowly struct{ lines, sent int }

func (s *slowly) Read(b []byte) (int, error) {
	if s.sent == s.lines {
		return 0, io.EOF
	}
	if s.sent++; s.sent%1000 == 0 {
		time.Sleep(time.Second)
	}
	return copy(b, fmt.Sprintf("{\"url\":\"http://h/%d\"}\n", s.sent)), nil
}

// The check of a long input says how far it is, now and then. That of a short one says nothing.
func TestLongInputsAreNotReadInSilence(t *testing.T) {
	for lines, want := range map[int]int{4000: 0, 12_000: 2, 31_000: 6} {
		synctest.Test(t, func(t *testing.T) {
			var notices []string
			r, err := New(Config{Out: filepath.Join(t.TempDir(), "out.jsonl"), Notice: func(s string) { notices = append(notices, s) }})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Check("in", &slowly{lines: lines}); err != nil {
				t.Fatal(err)
			}
			if len(notices) != want || want > 0 && !strings.HasPrefix(notices[0], "reading the input, before anything is sent: 5,") {
				t.Errorf("%d lines: %q, want %d notices", lines, notices, want)
			}
		})
	}
}
