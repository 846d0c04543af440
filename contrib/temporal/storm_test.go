package pacetemporal_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// stormsAt makes the test's program a worker of a Temporal server, with its address.
const stormsAt = "PACELINE_STORM"

func TestMain(m *testing.M) {
	if address := os.Getenv(stormsAt); address != "" {
		fmt.Fprintln(os.Stderr, storming(address))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// storming works until the process is killed.
func storming(address string) error {
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet})
	if err != nil {
		return err
	}
	w := worker.New(c, "storm", worker.Options{MaxConcurrentActivityExecutionSize: 64, MaxConcurrentActivityTaskPollers: 10})
	w.RegisterWorkflow(sendAll)
	w.RegisterActivity(sendOne)
	return w.Run(nil)
}

// sendOne sends a request, and returns which attempt that was. Only the number tells that it may have been sent before.
func sendOne(ctx context.Context, url string) (int32, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return activity.GetInfo(ctx).Attempt, err
}

// sendAll runs an activity for each request, and returns the attempt of each.
func sendAll(ctx workflow.Context, urls []string) (attempts []int32, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Second})
	var all []workflow.Future
	for _, url := range urls {
		all = append(all, workflow.ExecuteActivity(ctx, sendOne, url))
	}
	for _, f := range all {
		var attempt int32
		if err := f.Get(ctx, &attempt); err != nil {
			return nil, err
		}
		attempts = append(attempts, attempt)
	}
	return attempts, nil
}

// TestStorm is the storm of contrib/river/likerun for Temporal's dev server: two workers, one of which is killed six
// times. It prints the row of docs/queues.md: PACELINE_LONG=1 go test -run Storm -v .
func TestStorm(t *testing.T) {
	need.LongOnly(t, "Temporal's dev server takes minutes to build: go install github.com/temporalio/cli/cmd/temporal@v1.5.1")
	dev, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: need.Program(t, "temporal"), LogLevel: "error", ClientOptions: &client.Options{Logger: quiet},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Stop() })
	const n, each = 3000, 100
	var mu sync.Mutex
	calls, at := map[string]int{}, []time.Time(nil)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		calls[r.URL.Path]++
		at = append(at, time.Now())
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		io.WriteString(w, "served")
	}))
	t.Cleanup(host.Close)
	var runs []client.WorkflowRun
	for i := 0; i < n; i += each {
		var urls []string
		for k := range each {
			urls = append(urls, fmt.Sprint(host.URL, "/", i+k))
		}
		run, err := dev.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "storm"}, sendAll, urls)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	var cpu time.Duration
	begin := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env, c.Stderr = append(os.Environ(), stormsAt+"="+dev.FrontendHostPort()), os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *exec.Cmd) {
		c.Process.Kill()
		c.Wait()
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	began := time.Now()
	workers := []*exec.Cmd{begin(), begin()}
	for kill := range 6 {
		time.Sleep(1500*time.Millisecond + rand.N(500*time.Millisecond))
		end(workers[kill%2])
		workers[kill%2] = begin()
	}
	results, named, unnamed := 0, 0, 0
	for i, run := range runs {
		var attempts []int32
		if err := run.Get(t.Context(), &attempts); err != nil {
			t.Error(err)
		}
		for k, attempt := range attempts {
			results++
			mu.Lock()
			switch times := calls[fmt.Sprint("/", i*each+k)]; {
			case attempt > 1:
				named++
			case times > 1:
				unnamed++
			}
			mu.Unlock()
		}
	}
	took := time.Since(began)
	for _, w := range workers {
		end(w)
	}
	best, first, doubled := 0, 0, 0
	for i, a := range at {
		for a.Sub(at[first]) > time.Second {
			first++
		}
		best = max(best, i-first+1)
	}
	for _, times := range calls {
		if times > 1 {
			doubled++
		}
	}
	t.Logf("%d served, %d results after %v; %d in the best second, %v of CPU a job in workers; %d doubled, %d of a second attempt, "+
		"%d doubled of a first", len(calls), results, took.Round(time.Second), best, cpu/n, doubled, named, unnamed)
	if len(calls) != n || results != n || unnamed != 0 {
		t.Errorf("%d of %d requests were served, %d have a result, %d were doubled and are not named", len(calls), n, results, unnamed)
	}
}
