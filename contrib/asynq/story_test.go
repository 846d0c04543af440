package paceasynq_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	paceasynq "github.com/paceline-go/paceline/contrib/asynq"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/tenants"
	"github.com/paceline-go/paceline/limit"
)

// worker sends the request of a job.
type worker struct {
	url    string
	client *http.Client
}

func (w *worker) ProcessTask(ctx context.Context, task *asynq.Task) error {
	var job tenants.Job
	if err := json.Unmarshal(task.Payload(), &job); err != nil {
		return err
	}
	r, err := tenants.Request(ctx, w.url, job)
	if err != nil {
		return err
	}
	resp, verdict, err := paceasynq.Send(ctx, w.client, r)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if verdict.Again {
		return errors.New("refused")
	}
	return nil
}

func tenantOf(_ context.Context, task *asynq.Task) string { return task.Headers()["tenant"] }

// quiet is a logger of nothing.
type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}

func redisOf(t testing.TB) asynq.RedisConnOpt {
	t.Helper()
	opt, err := asynq.ParseRedisURI(need.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// begin starts a server of Asynq, until the end of the test.
func begin(t *testing.T, redis asynq.RedisConnOpt, pace *paceasynq.Pace, c asynq.Config, h asynq.Handler) {
	t.Helper()
	c.Logger = quiet{}
	server := asynq.NewServer(redis, pace.Configure(c))
	mux := asynq.NewServeMux()
	mux.Use(pace.Middleware)
	mux.Handle("call", h)
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
}

// Another tenant's tasks use their limit while 1,000 tasks are put off: see package tenants. A shared
// machine may be too busy for 95 % in six seconds, but not for half: a tenant whose workers wait gets
// nothing.
func TestStory(t *testing.T) {
	s, least := tenants.Short, 0.5
	if need.Long() {
		s, least = tenants.Long, 0.95
	} else {
		t.Parallel()
	}
	server := tenants.NewServer(t, s)
	host := httptest.NewServer(server)
	t.Cleanup(host.Close)
	pace, err := paceasynq.New(paceasynq.Config{Key: tenantOf, Limiter: server.Limiter})
	if err != nil {
		t.Fatal(err)
	}
	redis := redisOf(t)
	client := asynq.NewClient(redis)
	t.Cleanup(func() { client.Close() })
	all := server.All()
	for _, j := range all {
		payload, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		task := asynq.NewTaskWithHeaders("call", payload, map[string]string{"tenant": j.Tenant}, asynq.MaxRetry(1))
		if _, err := client.Enqueue(task); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, redis, pace, asynq.Config{Concurrency: tenants.Workers}, &worker{host.URL, host.Client()})
	server.Until(t, len(all), server.Pause+time.Minute)
	server.Hold(t, least, 1)

	inspector := asynq.NewInspector(redis)
	defer inspector.Close()
	q, err := inspector.GetQueueInfo("default")
	if err != nil {
		t.Fatal(err)
	}
	if q.FailedTotal != 0 || q.Archived != 0 {
		t.Errorf("%d tasks failed and %d are archived, although none has: being put off counts as a failure", q.FailedTotal, q.Archived)
	}
}

// A task without a retry would be archived if it were put off. So it waits in its worker, and is worked
// there again if the server refuses it.
func TestWithoutARetry(t *testing.T) {
	t.Parallel()
	calls := make(chan time.Time, 4)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls <- time.Now()
		if len(calls) == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(host.Close)
	pace, err := paceasynq.New(paceasynq.Config{Limiter: func(string) (limit.Limiter, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	redis := redisOf(t)
	client := asynq.NewClient(redis)
	t.Cleanup(func() { client.Close() })
	task := asynq.NewTask("call", []byte(`{"ID":"only"}`), asynq.MaxRetry(0), asynq.Retention(time.Minute))
	info, err := client.Enqueue(task)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, redis, pace, asynq.Config{Concurrency: 2}, &worker{host.URL, host.Client()})
	inspector := asynq.NewInspector(redis)
	defer inspector.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now, err := inspector.GetTaskInfo("default", info.ID)
		if err == nil && now.State == asynq.TaskStateCompleted {
			break
		}
		if err != nil || now.State == asynq.TaskStateArchived || time.Now().After(end) {
			t.Fatalf("the task is %+v, %v", now, err)
		}
	}
	first, second := <-calls, <-calls
	if d := second.Sub(first); d < 2*time.Second {
		t.Errorf("it was sent again after %v, and the server asked for 2 s", d)
	}
}
