package pacetemporal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest"
)

// environment returns Temporal's environment for tests of an activity that sends a request to a server,
// which refuses the first one and asks for two seconds.
func environment(t *testing.T, key string) (env *testsuite.TestActivityEnvironment, call any, sent *[]time.Time) {
	t.Helper()
	sent = new([]time.Time)
	client := &http.Client{Transport: ratetest.InMemory(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if *sent = append(*sent, time.Now()); len(*sent) == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, "served")
	}))}
	pace, err := New(Config{
		Key:     func(context.Context, activity.Info, []any) string { return key },
		Limiter: func(string) (limit.Limiter, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	call = func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", nil)
		if err != nil {
			return "", err
		}
		resp, verdict, err := Send(ctx, client, r)
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
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env = suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{pace}})
	env.RegisterActivityWithOptions(call, activity.RegisterOptions{Name: "call"})
	return env, call, sent
}

// A refused activity ends with the time to its turn, which no metric takes for a failure. Then it is
// served, with its result.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, call, sent := environment(t, "tenant")
		_, err := env.ExecuteActivity(call)
		later, ok := errors.AsType[*temporal.ApplicationError](err)
		if !ok || later.Type() != Later || later.NonRetryable() || later.Category() != temporal.ApplicationErrorCategoryBenign {
			t.Fatalf("the first attempt: %v", err)
		}
		if d := later.NextRetryDelay(); d < 1800*time.Millisecond || d > 2*time.Second {
			t.Errorf("Temporal starts it again after %v", d)
		}
		time.Sleep(later.NextRetryDelay())
		result, err := env.ExecuteActivity(call)
		var body string
		if err != nil || result.Get(&body) != nil || body != "served" {
			t.Errorf("the second attempt: %q, %v", body, err)
		}
		if d := (*sent)[len(*sent)-1].Sub((*sent)[0]); len(*sent) != 2 || d < 2*time.Second {
			t.Errorf("%d requests, the last one %v after the first", len(*sent), d)
		}
	})
}

// An activity without a key has no turn, so Send says so.
func TestNoKey(t *testing.T) {
	env, call, sent := environment(t, "")
	if _, err := env.ExecuteActivity(call); err == nil || len(*sent) != 0 {
		t.Errorf("%d requests: %v", len(*sent), err)
	}
}

func TestLast(t *testing.T) {
	for _, c := range []struct {
		what string
		info activity.Info
		want bool
	}{
		{"the server does not say", activity.Info{Attempt: 3}, false},
		{"no bound", activity.Info{Attempt: 3, RetryPolicy: &temporal.RetryPolicy{}}, false},
		{"one more", activity.Info{Attempt: 2, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3}}, false},
		{"the last", activity.Info{Attempt: 3, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3}}, true},
		{"local", activity.Info{IsLocalActivity: true}, true},
	} {
		if got := last(&c.info); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil || err.Error() != "pacetemporal: the Limiter is nil" {
		t.Error(err)
	}
}
