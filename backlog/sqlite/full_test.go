package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/backlog"
)

// When the disk is full, turns fail as a whole, and the worker says so and goes on trying. Nothing is lost:
// when there is room, the results are written. The bound is the engine's own, on the pages of the file.
func TestFull(t *testing.T) {
	const n = 200
	file := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := backlog.Open(t.Context(), s, "jobs", backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]backlog.Job, n)
	for i := range jobs {
		jobs[i].ID = fmt.Sprint(i)
	}
	if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := s.db.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	bound := func(pages int) {
		if _, err := s.db.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Error(err)
		}
	}
	bound(pages + 20)
	big := []byte(strings.Repeat("x", 4000))
	if _, err := b.Enqueue(t.Context(), backlog.Job{ID: "big", Data: make([]byte, 1<<20)}); err == nil || !strings.Contains(err.Error(), "full") ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("a request that does not fit: %v", err)
	}
	var notices []error // of one goroutine
	w, err := backlog.NewWorker(backlog.WorkerConfig{
		Backlog: b, UntilEmpty: true,
		Do: func(context.Context, *backlog.Attempt) backlog.Reply {
			return backlog.Finished(backlog.Answer{State: backlog.Done, Line: big})
		},
		Notice: func(err error) {
			if notices = append(notices, err); len(notices) == 1 {
				bound(1 << 20)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if len(notices) != 2 || notices[0] == nil || !strings.Contains(notices[0].Error(), "full") || notices[1] != nil {
		t.Errorf("it says %v", errors.Join(notices...))
	}
	if c, err := b.Count(t.Context()); err != nil || c.Done != n || c.Repeats != 0 || c.Left() != 0 {
		t.Errorf("there are %+v, %v", c, err)
	}
}
