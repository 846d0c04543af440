package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// tables are those that a failover takes back.
var tables = []string{"paceline_queue", "paceline_result", "paceline_worker"}

// all runs statements in one transaction.
func all(t *testing.T, c *pgx.Conn, statements ...string) error {
	return pgx.BeginTxFunc(t.Context(), c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// The database loses its last second, as a standby may that takes over, while three workers send. Each
// request has a result, and what was sent twice is named. The tables are put back in one transaction.
func TestRewound(t *testing.T) {
	need.WholeOnly(t, "it takes 10 s")
	url := need.PostgreSQL(t).URL
	store := opener(url)(t)
	const n = 600
	b, err := backlog.Open(t.Context(), store, "jobs", backlog.Options{})
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
	var mu sync.Mutex
	sent, arrived, notices := map[string]int{}, 0, 0
	var workers sync.WaitGroup
	for range 3 {
		own, err := backlog.Open(t.Context(), opener(url)(t), "jobs", backlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: own, UntilEmpty: true, Gate: paceline.NewGate(limit.MustRolling(10, 100*time.Millisecond)),
			Notice: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, backlog.ErrWentBack) {
					notices++
				}
			},
			Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
				if !a.Fresh() {
					return backlog.NotSent()
				}
				mu.Lock()
				sent[a.ID]++
				arrived++
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		workers.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	until := func(n int) {
		for range 6000 {
			mu.Lock()
			there := arrived
			mu.Unlock()
			if there >= n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("fewer than %d were sent", n)
	}
	c := connect(t, url)
	var copies, restores []string
	for _, table := range tables {
		copies = append(copies, fmt.Sprintf(`CREATE TABLE old_%s AS SELECT * FROM %[1]s`, table))
		restores = append(restores, fmt.Sprintf(`LOCK TABLE %s IN ACCESS EXCLUSIVE MODE`, table))
	}
	for _, table := range tables {
		restores = append(restores, fmt.Sprintf(`DELETE FROM %s`, table), fmt.Sprintf(`INSERT INTO %s SELECT * FROM old_%[1]s`, table))
	}
	until(200)
	if err := all(t, c, copies...); err != nil {
		t.Fatal(err)
	}
	until(350)
	for try := 0; ; try++ { // a turn may hold what the transaction wants, and want what it holds
		err := all(t, c, restores...)
		if err == nil {
			break
		} else if try == 20 {
			t.Fatal(err)
		}
	}
	workers.Wait()
	named, twice := 0, 0
	results := map[string]bool{}
	for r, err := range b.Results(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		results[r.ID] = true
		if r.Repeat {
			named++
		}
		if sent[r.ID] > 1 {
			if twice++; !r.Repeat {
				t.Errorf("%s was sent %d times, and is not named", r.ID, sent[r.ID])
			}
		}
	}
	t.Logf("%d results, %d twice, %d named", len(results), twice, named)
	if notices != 3 {
		t.Errorf("%d of 3 workers say that the store went back", notices)
	}
	if len(results) != n || twice == 0 {
		t.Errorf("of %d requests %d have results, and %d were sent twice", n, len(results), twice)
	}
}
