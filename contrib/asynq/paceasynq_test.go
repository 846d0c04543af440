package paceasynq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/paceline-go/paceline/internal/queued"
	"github.com/paceline-go/paceline/limit"
)

// Tasks of each tenant keep to 40 requests a second.
func ExamplePace_Configure() {
	pace, err := New(Config{
		Key:     func(_ context.Context, task *asynq.Task) string { return task.Headers()["tenant"] },
		Limiter: func(tenant string) (limit.Limiter, error) { return limit.MustRolling(40, time.Second), nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	config := pace.Configure(asynq.Config{Concurrency: 10}) // for asynq.NewServer
	mux := asynq.NewServeMux()
	mux.Use(pace.Middleware)
	fmt.Println(config.Concurrency, config.DelayedTaskCheckInterval)
	// Output: 10 100ms
}

// Asynq cuts off what is less than a second. So a delay ends with a second.
func TestWhole(t *testing.T) {
	second := time.Unix(1_700_000_000, 0)
	for _, c := range []struct{ now, d, want time.Duration }{
		{0, 0, 0},
		{0, time.Millisecond, time.Second},
		{0, time.Second, time.Second},
		{400 * time.Millisecond, 100 * time.Millisecond, 600 * time.Millisecond},
		{400 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond},
		{400 * time.Millisecond, 601 * time.Millisecond, 1600 * time.Millisecond},
		{999 * time.Millisecond, time.Minute, time.Minute + time.Millisecond},
	} {
		now := second.Add(c.now)
		if got := whole(now, c.d); got != c.want || !now.Add(got).Equal(now.Add(got).Truncate(time.Second)) {
			t.Errorf("at %v, %v: %v", c.now, c.d, got)
		}
	}
}

// Configure keeps what decides about other errors.
func TestConfigure(t *testing.T) {
	pace, err := New(Config{Limiter: func(string) (limit.Limiter, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	wait, fault, harmless := &queued.Later{In: time.Hour}, errors.New("fault"), errors.New("harmless")
	var handled []error
	c := pace.Configure(asynq.Config{
		IsFailure:      func(err error) bool { return !errors.Is(err, harmless) },
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Minute },
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
			handled = append(handled, err)
		}),
	})
	for _, err := range []error{wait, fault, harmless} {
		c.ErrorHandler.HandleError(t.Context(), nil, err)
	}
	if len(handled) != 2 || c.IsFailure(wait) || !c.IsFailure(fault) || c.IsFailure(harmless) {
		t.Errorf("handled %v; a wait is a failure: %v", handled, c.IsFailure(wait))
	}
	if d := c.RetryDelayFunc(1, wait, nil); d < time.Hour || d > time.Hour+time.Second {
		t.Errorf("a wait of an hour takes %v", d)
	}
	if d := c.RetryDelayFunc(1, fault, nil); d != time.Minute {
		t.Errorf("a fault is retried after %v", d)
	}
	plain := pace.Configure(asynq.Config{})
	if plain.IsFailure(wait) || !plain.IsFailure(fault) || plain.IsFailure(nil) || plain.ErrorHandler != nil {
		t.Error("without functions of its own, a server takes a wait for a failure")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil || err.Error() != "paceasynq: the Limiter is nil" {
		t.Error(err)
	}
}
