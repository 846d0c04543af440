package backlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// engine is a database of a benchmark.
type engine struct {
	address string
	file    string        // of SQLite
	db      *need.Service // of PostgreSQL
}

func engines(b *testing.B, f func(b *testing.B, e engine)) {
	b.Run("sqlite", func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "jobs.db")
		f(b, engine{address: "sqlite:" + file, file: file})
	})
	b.Run("postgres", func(b *testing.B) {
		db := need.PostgreSQL(b)
		f(b, engine{address: db.URL, db: db})
	})
}

// cpu returns the CPU time of this process, and of the database's.
func (e engine) cpu(b *testing.B) (own, database time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	own = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if e.db == nil {
		return own, 0
	}
	const tick = 10 * time.Millisecond // USER_HZ
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	root := fmt.Sprint(e.db.PID())
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(after) // state, parent, …; user and system time are the 12th and 13th
		pid := filepath.Base(filepath.Dir(name))
		if len(f) < 15 || f[1] != root && pid != root {
			continue
		}
		fields := f[11:13]
		if pid == root {
			fields = f[11:15] // and those of its children that have ended
		}
		for _, field := range fields {
			n, _ := strconv.Atoi(field)
			database += time.Duration(n) * tick
		}
	}
	return own, database
}

// size returns how many bytes the tables have, with their indexes.
func (e engine) size(b *testing.B) (n int64) {
	if e.db == nil {
		for _, end := range []string{"", "-wal"} {
			if info, err := os.Stat(e.file + end); err == nil {
				n += info.Size()
			}
		}
		return n
	}
	c, err := pgx.Connect(b.Context(), e.db.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	if err := c.QueryRow(b.Context(), `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
WHERE relkind = 'r' AND relname LIKE 'paceline%'`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// fill opens a backlog with n requests of 300 bytes.
func (e engine) fill(b *testing.B, n int) *backlog.Backlog {
	return e.fillAs(b, n, func(int) int32 { return 0 })
}

// fillAs is fill with lanes.
func (e engine) fillAs(b *testing.B, n int, lane func(i int) int32) *backlog.Backlog {
	s, err := openStore(e.address, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	list, err := backlog.Open(b.Context(), s, "jobs", backlog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := list.Remove(b.Context()); err != nil { // what a shorter round has left
		b.Fatal(err)
	}
	if list, err = backlog.Open(b.Context(), s, "jobs", backlog.Options{}); err != nil {
		b.Fatal(err)
	}
	jobs := make([]backlog.Job, n)
	for i := range jobs {
		jobs[i] = backlog.Job{ID: fmt.Sprintf("request-%08d", i), Data: make([]byte, 300), Lane: lane(i)}
	}
	b.ResetTimer()
	if added, err := list.Enqueue(b.Context(), jobs...); err != nil || added != n {
		b.Fatal(added, err)
	}
	if err := list.Analyze(b.Context()); err != nil {
		b.Fatal(err)
	}
	return list
}

// BenchmarkInsert shows how many requests are added in a second, and how many bytes each takes.
//
//	go test ./backlog -run - -bench Insert -benchtime 100000x
func BenchmarkInsert(b *testing.B) {
	engines(b, func(b *testing.B, e engine) {
		before := e.size(b)
		own, database := e.cpu(b)
		e.fill(b, b.N)
		d := b.Elapsed()
		now, then := e.cpu(b)
		b.ReportMetric(float64(b.N)/d.Seconds(), "jobs/s")
		b.ReportMetric(float64((now-own).Microseconds())/float64(b.N), "own-µs/job")
		b.ReportMetric(float64((then-database).Microseconds())/float64(b.N), "db-µs/job")
		b.ReportMetric(float64(e.size(b)-before)/float64(b.N), "B/job")
	})
}

// BenchmarkDrain shows how many requests workers end in a second without a limit, and what each costs.
//
//	go test ./backlog -run - -bench Drain -benchtime 50000x
//
// In the last round of PostgreSQL a transaction beside it keeps a snapshot, as a dump does.
func BenchmarkDrain(b *testing.B) {
	for _, workers := range []int{1, 4, 10, -4} {
		name, dumped := fmt.Sprint("workers=", workers), workers < 0
		if dumped {
			name, workers = "dumped", -workers
		}
		b.Run(name, func(b *testing.B) {
			engines(b, func(b *testing.B, e engine) {
				list := e.fill(b, b.N)
				if dumped {
					e.keep(b)
				}
				own, database := e.cpu(b)
				b.ResetTimer()
				var all sync.WaitGroup
				for range workers {
					all.Go(func() { e.drain(b) })
				}
				all.Wait()
				d := b.Elapsed()
				now, then := e.cpu(b)
				c, err := list.Count(b.Context())
				if err != nil || c.Done != int64(b.N) || c.Repeats > 0 {
					b.Errorf("%+v %v", c, err)
				}
				b.ReportMetric(float64(b.N)/d.Seconds(), "jobs/s")
				b.ReportMetric(float64((now-own).Microseconds())/float64(b.N), "own-µs/job")
				b.ReportMetric(float64((then-database).Microseconds())/float64(b.N), "db-µs/job")
			})
		})
	}
}

// keep holds a snapshot of PostgreSQL until the round ends.
func (e engine) keep(b *testing.B) {
	if e.db == nil {
		b.Skip("readers of SQLite hold up nobody")
	}
	c, err := pgx.Connect(b.Context(), e.db.URL)
	if err == nil {
		_, err = c.Exec(b.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM paceline_backlog`)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
}

// drain is one worker, with connections of its own.
func (e engine) drain(b *testing.B) { e.drainThat(b, func() {}) }

// drainThat is drain, with what happens at each request.
func (e engine) drainThat(b *testing.B, each func()) {
	s, err := openStore(e.address, true)
	if err != nil {
		b.Error(err)
		return
	}
	defer s.Close()
	list, err := backlog.Open(b.Context(), s, "jobs", backlog.Options{Existing: true})
	if err != nil {
		b.Error(err)
		return
	}
	line := []byte(strings.Repeat("x", 120))
	w, err := backlog.NewWorker(backlog.WorkerConfig{
		Backlog: list, UntilEmpty: true, Concurrency: 256,
		Do: func(context.Context, *backlog.Attempt) backlog.Reply {
			each()
			return backlog.Finished(backlog.Answer{State: backlog.Done, Line: line})
		},
	})
	if err == nil {
		err = w.Run(b.Context())
	}
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkMemory shows the memory of a process with one worker (its resident set), after each twentieth of the
// requests. It is flat: the worker holds as many requests of a long backlog as of a short one.
//
//	go test ./backlog -run - -bench Memory -benchtime 10000000x
func BenchmarkMemory(b *testing.B) {
	engines(b, func(b *testing.B, e engine) {
		const portion = 100_000
		list := e.fill(b, min(b.N, portion))
		for from := portion; from < b.N; from += portion {
			jobs := make([]backlog.Job, min(portion, b.N-from))
			for i := range jobs {
				jobs[i] = backlog.Job{ID: fmt.Sprintf("request-%08d", from+i), Data: make([]byte, 300)}
			}
			if _, err := list.Enqueue(b.Context(), jobs...); err != nil {
				b.Fatal(err)
			}
		}
		debug.FreeOSMemory() // what was needed to fill it
		b.ResetTimer()
		var sent atomic.Int64
		var sizes [21]atomic.Int64
		e.drainThat(b, func() {
			n := sent.Add(1)
			if at := 20 * n / int64(b.N); at > 20*(n-1)/int64(b.N) {
				sizes[at].Store(int64(resident(b)))
			}
		})
		var most int64
		for i := range sizes {
			most = max(most, sizes[i].Load())
		}
		b.ReportMetric(float64(sizes[2].Load()), "tenth-MB")
		b.ReportMetric(float64(sizes[10].Load()), "half-MB")
		b.ReportMetric(float64(sizes[19].Load()), "19th-of-20-MB")
		b.ReportMetric(float64(most), "most-MB")
	})
}

// resident returns the resident set of this process, in MB.
func resident(b *testing.B) int {
	text, err := os.ReadFile("/proc/self/statm")
	pages := strings.Fields(string(text))
	if err != nil || len(pages) < 2 {
		b.Error(err, pages)
		return 0
	}
	n, err := strconv.Atoi(pages[1])
	if err != nil {
		b.Error(err)
	}
	return n * os.Getpagesize() / 1_000_000
}

// BenchmarkClaim shows how long a worker waits for its first request, for each turn that claims 100 or 20, and for
// one that claims nothing, in a backlog that was just filled; and how long counting takes. db-µs is the CPU time of the
// database for a turn: it does not depend on what else the machine does.
//
//	go test ./backlog -run - -bench Claim -benchtime 1000000x
func BenchmarkClaim(b *testing.B) {
	engines(b, func(b *testing.B, e engine) {
		list := e.fill(b, b.N)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		s, err := openStore(e.address, true)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		info, err := list.Info(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		w, err := s.Register(b.Context(), info.ID, "host", 1)
		if err != nil {
			b.Fatal(err)
		}
		c := claimer{engine: e, store: s, list: info.ID, worker: w}
		c.turn(b, min(100, b.N))
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "first-ms")
		for _, n := range []int{100, 20, 0} {
			c.turns(b, n)
		}
		at := time.Now()
		if c, err := list.Count(b.Context()); err != nil || c.Total != int64(b.N) {
			b.Errorf("%+v %v", c, err)
		}
		b.ReportMetric(float64(time.Since(at).Microseconds())/1000, "count-ms")
	})
}

// claimer is a worker that only claims.
type claimer struct {
	engine
	store  backlog.Store
	list   int64
	worker backlog.Beat
	from   backlog.Place
}

// turn takes a turn that claims n requests.
func (c *claimer) turn(b *testing.B, n int) {
	var claims []backlog.Claim
	if n > 0 {
		claims = []backlog.Claim{{N: n, From: c.from}}
	}
	for _, j := range c.claim(b, claims, n) {
		if j.Seq > c.from.Seq {
			c.from = j.Place
		}
	}
}

// claim takes a turn with claims, which return n requests.
func (c *claimer) claim(b *testing.B, claims []backlog.Claim, n int) []backlog.Claimed {
	t := &backlog.Turn{Worker: c.worker.Worker, Beat: c.worker.Beat, Claims: claims}
	o, err := c.store.Turn(b.Context(), c.list, t)
	if err != nil || !o.Fits || len(o.Claimed) != n {
		b.Fatalf("%d claimed, %v", len(o.Claimed), err)
	}
	c.worker.Beat++
	return o.Claimed
}

// turns reports the median of turns that claim n, and what one costs the database.
func (c *claimer) turns(b *testing.B, n int) {
	c.measure(b, fmt.Sprint("claim", n), min(200, b.N/500), func(int) { c.turn(b, n) })
}

// measure reports the median of turns, and what one costs the database.
func (c *claimer) measure(b *testing.B, name string, turns int, turn func(nth int)) {
	all := make([]time.Duration, turns)
	_, before := c.cpu(b)
	for i := range all {
		at := time.Now()
		turn(i)
		all[i] = time.Since(at)
	}
	if _, after := c.cpu(b); len(all) > 0 {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-ms")
		b.ReportMetric(float64((after-before).Microseconds())/float64(len(all)), name+"-db-µs")
	}
}

// BenchmarkLanes shows what a turn costs that claims of 1, 20 or 100 of 1,000 lanes. The first lane has half of all
// requests. Of the last ones there are none.
//
//	go test ./backlog -run - -bench Lanes -benchtime 200000x
func BenchmarkLanes(b *testing.B) {
	const lanes, turns = 1000, 40
	engines(b, func(b *testing.B, e engine) {
		if b.N < 200*lanes {
			return // the round that finds out how long one takes
		}
		e.fillAs(b, b.N, func(i int) int32 {
			if i%2 == 0 {
				return 0
			}
			return int32(i / 2 % lanes)
		})
		s, err := openStore(e.address, true)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		info, err := s.Find(b.Context(), "jobs")
		if err != nil {
			b.Fatal(err)
		}
		w, err := s.Register(b.Context(), info.ID, "host", 1)
		if err != nil {
			b.Fatal(err)
		}
		c := claimer{engine: e, store: s, list: info.ID, worker: w}
		of := func(nth, lanes, each, from int) (all []backlog.Claim) {
			for i := range lanes {
				all = append(all, backlog.Claim{Lane: int32(from + nth*lanes + i), N: each})
			}
			return all
		}
		c.measure(b, "20of1", turns, func(nth int) { c.claim(b, of(nth, 1, 20, 1), 20) })
		c.measure(b, "20of20", turns, func(nth int) { c.claim(b, of(nth, 20, 1, 100), 20) })
		c.measure(b, "0of100", turns, func(nth int) { c.claim(b, of(nth, 100, 1, lanes), 0) })
	})
}
