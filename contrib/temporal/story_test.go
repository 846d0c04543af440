package pacetemporal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	pacetemporal "github.com/paceline-go/paceline/contrib/temporal"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/tenants"
)

var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// calls has the activity that sends the request of a job.
type calls struct {
	url    string
	client *http.Client
}

func (c *calls) Call(ctx context.Context, job tenants.Job) (string, error) {
	r, err := tenants.Request(ctx, c.url, job)
	if err != nil {
		return "", err
	}
	resp, verdict, err := pacetemporal.Send(ctx, c.client, r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if verdict.Again {
		return "", errors.New("refused")
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func tenantOf(_ context.Context, _ activity.Info, args []any) string {
	return args[0].(tenants.Job).Tenant
}

// callAll runs an activity for each job.
func callAll(ctx workflow.Context, jobs []tenants.Job) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{ScheduleToCloseTimeout: time.Hour, StartToCloseTimeout: time.Minute})
	var all []workflow.Future
	for _, j := range jobs {
		all = append(all, workflow.ExecuteActivity(ctx, "Call", j))
	}
	for _, f := range all {
		var body string
		if err := f.Get(ctx, &body); err != nil {
			return err
		}
		if body != "served" {
			return fmt.Errorf("the result is %q", body)
		}
	}
	return nil
}

// A story of Temporal's dev server: see package tenants. Each hundred jobs are a workflow.
func TestStory(t *testing.T) {
	need.LongOnly(t, "Temporal's dev server takes minutes to build: go install github.com/temporalio/cli/cmd/temporal@v1.5.1")
	program := need.Program(t, "temporal")
	dev, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: program, LogLevel: "error", ClientOptions: &client.Options{Logger: quiet},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Stop() })
	s := tenants.Long
	// The dev server starts some 60 attempts a second on two busy cores, and a job needs two.
	s.Limits = map[string]int64{tenants.Paused: 20, tenants.Busy: 10}
	server := tenants.NewServer(t, s)
	host := httptest.NewServer(server)
	t.Cleanup(host.Close)
	pace, err := pacetemporal.New(pacetemporal.Config{Key: tenantOf, Limiter: server.Limiter})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(dev.Client(), "calls", worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{pace}, MaxConcurrentActivityExecutionSize: tenants.Workers, MaxConcurrentActivityTaskPollers: tenants.Workers,
	})
	w.RegisterWorkflow(callAll)
	w.RegisterActivity(&calls{host.URL, host.Client()})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	all := server.All()
	var runs []client.WorkflowRun
	for i := 0; i < len(all); i += 100 {
		run, err := dev.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "calls"}, callAll, all[i:min(i+100, len(all))])
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	server.Until(t, len(all), server.Pause+2*time.Minute)
	for _, run := range runs {
		if err := run.Get(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	server.Hold(t, 0.6, 1) // the dev server starts some 60 attempts a second; the decisions are held to 95 % in virtual time
}
