package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// The collector runs less often while a small file is sent, unless the user says how often, and as before afterwards.
func TestCollectsLess(t *testing.T) {
	file := func(size int64) os.FileInfo {
		name := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	folder, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const usual = 123
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	for _, c := range []struct {
		name, gogc string
		info       os.FileInfo
		want       int
	}{
		{"a small file", "", file(smallInput), 200}, {"a large file", "", file(smallInput + 1), usual},
		{"the user's GOGC", "150", file(1), usual}, {"a pipe", "", nil, usual}, {"no regular file", "", folder, usual},
	} {
		t.Setenv("GOGC", c.gogc)
		undo := (&runInput{info: c.info}).collectLess()
		during := debug.SetGCPercent(usual)
		debug.SetGCPercent(during)
		undo()
		if after := debug.SetGCPercent(usual); during != c.want || after != usual {
			t.Errorf("%s: %d, want %d; %d afterwards", c.name, during, c.want, after)
		}
	}
}
