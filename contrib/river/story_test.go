package paceriver_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"

	paceriver "github.com/paceline-go/paceline/contrib/river"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/tenants"
)

// callArgs is a job that calls the server of a tenant. A job's tenant stands in its metadata, too, so
// that the middleware need not know each kind of job.
type callArgs struct{ tenants.Job }

func (callArgs) Kind() string { return "call" }

type callWorker struct {
	river.WorkerDefaults[callArgs]
	url    string
	client *http.Client
}

func (w *callWorker) Work(ctx context.Context, job *river.Job[callArgs]) error {
	r, err := tenants.Request(ctx, w.url, job.Args.Job)
	if err != nil {
		return err
	}
	resp, verdict, err := paceriver.Send(ctx, w.client, r)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if verdict.Again {
		return errors.New("refused")
	}
	return nil
}

// tenantOf is the tenant in a job's metadata.
func tenantOf(job *rivertype.JobRow) string { return job.Tags[0] }

// sqlitePool opens a new file for River, as its driver asks for: one connection.
func sqlitePool(t testing.TB) *sql.DB {
	t.Helper()
	file := filepath.Join(t.TempDir(), "river.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func postgresPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), need.PostgreSQL(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// configure is how the client of a Story works.
func configure(pace rivertype.Middleware, workers *river.Workers) *river.Config {
	return &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: tenants.Workers}},
		Workers:           workers,
		Middleware:        []rivertype.Middleware{pace},
		FetchCooldown:     5 * time.Millisecond,
		FetchPollInterval: 50 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
	}
}

// migrated makes River's tables.
func migrated[T any](t testing.TB, driver riverdriver.Driver[T]) {
	t.Helper()
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
}

// chosen is the whole Story in the long form, which holds the busy tenant to 95 % of its limit. A shared
// machine may be too busy for that in six seconds, but not for half: a tenant whose workers wait gets
// nothing. internal/queued has the minute in virtual time, and holds it to 95 % always.
func chosen() (s tenants.Story, least float64) {
	if need.Long() {
		return tenants.Long, 0.95
	}
	return tenants.Short, 0.5
}

// story works all jobs of a Story in a River client.
func story[T any](t *testing.T, driver riverdriver.Driver[T]) {
	if !need.Long() { // which measures
		t.Parallel()
	}
	migrated(t, driver)
	s, least := chosen()
	server := tenants.NewServer(t, s)
	host := httptest.NewServer(server)
	t.Cleanup(host.Close)
	pace, err := paceriver.New(paceriver.Config{Key: tenantOf, Limiter: server.Limiter})
	if err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &callWorker{url: host.URL, client: host.Client()})
	client, err := river.NewClient(driver, configure(pace, workers))
	if err != nil {
		t.Fatal(err)
	}
	var jobs []river.InsertManyParams
	for _, j := range server.All() {
		jobs = append(jobs, river.InsertManyParams{Args: callArgs{j}, InsertOpts: &river.InsertOpts{Tags: []string{j.Tenant}}})
	}
	if _, err := client.InsertMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	server.Until(t, len(jobs), server.Pause+time.Minute)
	if err := client.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	server.Hold(t, least, 1)
}

// Another tenant's jobs use their limit while 1,000 jobs are away: see package tenants.
func TestStorySQLite(t *testing.T) { story(t, riversqlite.New(sqlitePool(t))) }

func TestStoryPostgreSQL(t *testing.T) { story[pgx.Tx](t, riverpgxv5.New(postgresPool(t))) }
