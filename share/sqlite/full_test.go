package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// The turn and the Member report a full disk, and nothing is lost by it: when there is room, the
// turns go on. The bound is the engine's own, on the pages of the file.
func TestFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.db")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.db.SetMaxOpenConns(1) // the bound is one connection's
	var pages int
	if err := s.db.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	bound := func(pages int) {
		t.Helper()
		if _, err := s.db.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string, n int) error {
		return s.Turn(t.Context(), name, func(share.Reading) ([]byte, error) { return make([]byte, n), nil })
	}
	bound(pages + 2)
	err = put("large", 1<<20)
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "full") {
		t.Fatalf("a blob that does not fit: %v", err)
	}
	for i := 0; err == nil || i == 0; i++ { // until nothing more goes in
		err = put(fmt.Sprint("filler ", i), 500)
	}
	m, err := share.Limiter(s, "it", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	gate := paceline.NewGate(m)
	go gate.Wait(t.Context(), limit.One)
	says := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if err := m.Err(); err != nil && strings.Contains(err.Error(), what) {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("Err says %v, expected %s", err, what)
			}
		}
	}
	says("full")
	bound(1 << 20)
	says("the store does not have this limit") // it was put, and is quiet as it is new
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
