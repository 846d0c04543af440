package queued

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/testkit/tenants"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// queue is a job queue in memory. Workers look for a job that is due once in poll.
type queue struct {
	poll time.Duration
	late time.Duration // by which jobs come back too late, on average
	rng  *rand.Rand

	mu    sync.Mutex
	jobs  []*queuedJob
	naps  int
	order []string // of the paused tenant's jobs, as they were served
}

type queuedJob struct {
	tenants.Job
	due  time.Time
	made time.Time
	n    int
	busy bool
}

func (q *queue) next() *queuedJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	var best *queuedJob
	now := time.Now()
	for _, j := range q.jobs {
		if !j.busy && !j.due.After(now) && (best == nil || j.due.Before(best.due)) {
			best = j
		}
	}
	if best != nil {
		best.busy = true
	}
	return best
}

// again gives a job back for later, or removes it.
func (q *queue) again(j *queuedJob, in time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		if j.Tenant == tenants.Paused {
			q.order = append(q.order, j.ID)
		}
		for i := range q.jobs {
			if q.jobs[i] == j {
				q.jobs[i] = q.jobs[len(q.jobs)-1]
				q.jobs = q.jobs[:len(q.jobs)-1]
				break
			}
		}
		return
	}
	q.naps++
	if q.late > 0 {
		in += time.Duration(q.rng.ExpFloat64() * float64(q.late))
	}
	j.busy, j.due = false, time.Now().Add(in)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

func (q *queue) work(t *testing.T, keys *Keys, do func(ctx context.Context, j tenants.Job) error) {
	var all sync.WaitGroup
	for range tenants.Workers {
		all.Go(func() {
			for q.len() > 0 {
				j := q.next()
				if j == nil {
					time.Sleep(q.poll)
					continue
				}
				time.Sleep(time.Millisecond) // the store
				err := keys.Do(t.Context(), Job{ID: j.ID, Key: j.Tenant, Came: j.made, Order: int64(j.n), Cost: limit.One},
					func(ctx context.Context) error { return do(ctx, j.Job) })
				later, ok := errors.AsType[*Later](err)
				if err != nil && !ok {
					t.Error(err)
				}
				in := time.Duration(0)
				if ok {
					in = later.In
				}
				q.again(j, in, err)
			}
		})
	}
	all.Wait()
}

// hold fails the test if a job of the paused tenant came too far after its turn. Some may come before it, for
// room that nobody else has come for.
func (q *queue) hold(t *testing.T, s *tenants.Server, most float64) {
	t.Helper()
	early, late := s.Order(q.order)
	t.Logf("%.2f naps a job, at most %.3f early and %.3f late", float64(q.naps)/float64(len(s.All())), early, late)
	if late > most {
		t.Errorf("a job came %.3f of all jobs after its turn", late)
	}
}

// One tenant has 1,000 jobs and is asked to stay away for a minute. The other one uses its limit
// meanwhile, nothing is refused, and no job starves.
func TestStory(t *testing.T) {
	for _, c := range []struct{ poll, late time.Duration }{
		{20 * time.Millisecond, 0}, {200 * time.Millisecond, 0}, {20 * time.Millisecond, 200 * time.Millisecond},
	} {
		if race.Enabled && c.late+c.poll > 20*time.Millisecond {
			continue // the workers are the same
		}
		t.Run(fmt.Sprintf("%v, late %v", c.poll, c.late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, q := tell(t, c.poll, c.late, Config{})
				s.Hold(t, 0.95, 1)
				q.hold(t, s, 0.15)
			})
		})
	}
}

// A middleware that only waits gives its workers to the tenant that is paused. So the Story notices it.
func TestOnlyWaiting(t *testing.T) {
	race.Without(t) // TestStory has the same workers
	synctest.Test(t, func(t *testing.T) {
		s, _ := tell(t, 20*time.Millisecond, 0, Config{MaxWait: time.Hour})
		if f := s.Figures(); f.Busy > 0.1 {
			t.Errorf("%+v: the busy tenant used its limit although all workers wait", f)
		}
	})
}

// Two processes share the limits in a store. Each knows the jobs that it sent away alone, so the order
// holds within a process only, and each learns of the pause by itself.
func TestShared(t *testing.T) {
	race.Without(t) // TestStory has one of these processes, and package share has the store
	synctest.Test(t, func(t *testing.T) {
		s := tenants.NewServer(t, tenants.Long)
		var store sharetest.Memory
		var all []*Keys
		for range 2 {
			keys, err := New(Config{Limiter: func(tenant string) (limit.Limiter, error) {
				m, err := share.Limiter(&store, tenant, func() limit.Limiter {
					l, err := s.Limiter(tenant)
					if err != nil {
						t.Fatal(err)
					}
					return l
				})
				if err == nil {
					t.Cleanup(func() { m.Close(context.Background()) })
				}
				return m, err
			}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, keys)
		}
		q := work(t, s, 20*time.Millisecond, 0, all...)
		s.Hold(t, 0.95, 2)
		q.hold(t, s, 1)
		if f := s.Figures(); f.After > f.Least*5/4 {
			t.Errorf("the paused tenant was done after %v, where %v are enough", f.After, f.Least)
		}
	})
}

// tell works all jobs of the Story in one process.
func tell(t *testing.T, poll, late time.Duration, c Config) (*tenants.Server, *queue) {
	story := tenants.Long
	if race.Enabled {
		story = tenants.Short
	}
	s := tenants.NewServer(t, story)
	c.Limiter = s.Limiter
	keys, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, work(t, s, poll, late, keys)
}

// work works all jobs of a Story in processes, with ten workers each.
func work(t *testing.T, s *tenants.Server, poll, late time.Duration, processes ...*Keys) *queue {
	client := &http.Client{Transport: ratetest.InMemory(s)}
	q := &queue{poll: poll, late: late, rng: rand.New(rand.NewPCG(1, 1))}
	now := time.Now()
	for i, j := range s.All() {
		q.jobs = append(q.jobs, &queuedJob{Job: j, due: now, made: now, n: i})
	}
	var all sync.WaitGroup
	for _, keys := range processes {
		all.Go(func() {
			q.work(t, keys, func(ctx context.Context, j tenants.Job) error { return call(ctx, client, j) })
		})
	}
	all.Wait()
	return q
}

// call sends the request of a job.
func call(ctx context.Context, client *http.Client, j tenants.Job) error {
	a, err := From(ctx)
	if err != nil {
		return err
	}
	r, err := tenants.Request(ctx, "http://server", j)
	if err != nil {
		return err
	}
	resp, v, err := a.Send(client, r)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if v.Again {
		return errors.New("refused")
	}
	return nil
}

// Where only an answer makes room, nobody knows when. Two requests of a tenant may be in flight: they are,
// nearly always, and its jobs take few of the ten workers.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := New(Config{Limiter: func(string) (limit.Limiter, error) {
			return limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2})
		}})
		if err != nil {
			t.Fatal(err)
		}
		const jobs, takes = 200, 300 * time.Millisecond
		q := &queue{poll: 20 * time.Millisecond}
		began := time.Now()
		for i := range jobs {
			q.jobs = append(q.jobs, &queuedJob{Job: tenants.Job{ID: fmt.Sprint(i), Tenant: "one"}, due: began, made: began, n: i})
		}
		q.work(t, keys, func(context.Context, tenants.Job) error { time.Sleep(takes); return nil })
		least := jobs / 2 * takes
		if took := time.Since(began); took > least*5/4 {
			t.Errorf("%d jobs took %v, and %v are enough", jobs, took, least)
		}
		t.Logf("%v, %.2f naps a job", time.Since(began), float64(q.naps)/jobs)
	})
}
