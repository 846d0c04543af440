package queued

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/ratetest"
)

// answers is a client of a server that answers as listed, then 200.
func answers(all ...int) (*http.Client, *[]time.Time) {
	sent := new([]time.Time)
	return &http.Client{Transport: ratetest.InMemory(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*sent = append(*sent, time.Now())
		if n := len(*sent); n <= len(all) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(all[n-1])
		}
		fmt.Fprint(w, "an answer")
	}))}, sent
}

// sends is work that sends a request so many times.
func sends(client *http.Client, times int) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := From(ctx)
		if err != nil {
			return err
		}
		for range times {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", nil)
			if err != nil {
				return err
			}
			resp, v, err := a.Send(client, r)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if v.Result != limit.Accepted {
				return fmt.Errorf("answered %d", resp.StatusCode)
			}
		}
		return nil
	}
}

func keysOf(t *testing.T, own func(string) (limit.Limiter, error)) *Keys {
	t.Helper()
	k, err := New(Config{Limiter: own})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func oneASecond(string) (limit.Limiter, error) {
	return limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second})
}

func unlimited(string) (limit.Limiter, error) { return nil, nil }

// A job that is refused comes back when the server's time is over, and so does one that came later. Then
// the first goes first.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, sent := answers(429)
		k := keysOf(t, oneASecond)
		var in []time.Duration
		for _, id := range []string{"a", "b"} {
			err := k.Do(t.Context(), Job{ID: id, Cost: limit.One}, sends(client, 1))
			later, ok := errors.AsType[*Later](err)
			if !ok {
				t.Fatalf("%s: %v", id, err)
			}
			in = append(in, later.In)
		}
		if len(*sent) != 1 || in[0] < 29*time.Second || in[0] > 30*time.Second || in[1] < in[0]+900*time.Millisecond {
			t.Errorf("%d requests; they come back after %v", len(*sent), in)
		}
		if s, away, ok := k.Stats(""); !ok || away != 2 || s.Admitted != 1 {
			t.Errorf("%d away, %+v", away, s)
		}
		time.Sleep(in[0] + 50*time.Millisecond) // it may still be on its way
		err := k.Do(t.Context(), Job{ID: "b", Cost: limit.One}, sends(client, 1))
		if later, ok := errors.AsType[*Later](err); !ok || later.Err != nil {
			t.Errorf("b does not wait for a: %v", err)
		}
		if err := k.Do(t.Context(), Job{ID: "a", Cost: limit.One}, sends(client, 1)); err != nil {
			t.Error(err)
		}
	})
}

// A failure that is no refusal by a limit is the queue's to repeat.
func TestFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(500)
		err := keysOf(t, unlimited).Do(t.Context(), Job{ID: "a", Cost: limit.One}, sends(client, 1))
		if err == nil || err.Error() != "answered 500" {
			t.Error(err)
		}
	})
}

// A job that must not go away waits, and is worked again in its worker.
func TestStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, sent := answers(429)
		if err := keysOf(t, unlimited).Do(t.Context(), Job{ID: "a", Cost: limit.One, Stays: true}, sends(client, 1)); err != nil {
			t.Error(err)
		}
		if len(*sent) != 2 || (*sent)[1].Sub((*sent)[0]) < 30*time.Second {
			t.Errorf("requests at %v", *sent)
		}
	})
}

// Each further request of a job waits for a turn of its own.
func TestSeveralRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, sent := answers()
		if err := keysOf(t, oneASecond).Do(t.Context(), Job{ID: "a", Cost: limit.One}, sends(client, 3)); err != nil {
			t.Fatal(err)
		}
		if len(*sent) != 3 || (*sent)[2].Sub((*sent)[0]) < 2*time.Second {
			t.Errorf("requests at %v, within a limit of one a second", *sent)
		}
	})
}

// However work ends, its turn is settled once.
func TestEnds(t *testing.T) {
	work := map[string]func(context.Context) error{
		"without an answer": func(context.Context) error { return nil },
		"with an error":     func(context.Context) error { return errors.New("no") },
		"with a panic":      func(context.Context) error { panic("no") },
		"by an answer": func(ctx context.Context) error {
			a, err := From(ctx)
			if err == nil {
				a.Answered(&classify.Evidence{Status: 200})
			}
			return err
		},
	}
	for name, work := range work {
		t.Run(name, func(t *testing.T) {
			k := keysOf(t, oneASecond)
			func() {
				defer func() { _ = recover() }()
				_ = k.Do(t.Context(), Job{ID: "a", Cost: limit.One}, work)
			}()
			if s, _, _ := k.Stats(""); s.Admitted != 1 || s.InFlight != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// What cannot go is an error that no nap would mend.
func TestErrors(t *testing.T) {
	work := func(context.Context) error { t.Error("it was worked"); return nil }
	k := keysOf(t, oneASecond)
	if err := k.Do(t.Context(), Job{Cost: limit.Cost{limit.Requests: 2}}, work); !errors.Is(err, paceline.ErrNever) {
		t.Errorf("a cost that never fits: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Do(ended, Job{Cost: limit.One}, work); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	broken := errors.New("no such tenant")
	k = keysOf(t, func(string) (limit.Limiter, error) { return nil, broken })
	if err := k.Do(t.Context(), Job{Key: "x", Cost: limit.One}, work); !errors.Is(err, broken) {
		t.Errorf("a key without a limit: %v", err)
	}
	if _, err := From(t.Context()); !errors.Is(err, ErrNoTurn) {
		t.Errorf("no turn: %v", err)
	}
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "the Limiter is nil"},
		{Config{Limiter: oneASecond, MaxWait: -1}, "the MaxWait -1ns is negative"},
		{Config{Limiter: oneASecond, Spread: -1}, "the Spread -1ns is negative"},
	} {
		if _, err := New(c.c); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
}

// Keys of which nothing counts any more are forgotten. Those whose window is not over, and those with jobs
// away, are kept.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := map[string]int{}
		k := keysOf(t, func(key string) (limit.Limiter, error) {
			made[key]++
			return limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Minute})
		})
		do := func(key, id string) error {
			return k.Do(t.Context(), Job{ID: id, Key: key, Cost: limit.One}, func(context.Context) error { return nil })
		}
		for i := range mostDoors - 2 {
			if err := do(fmt.Sprint("old ", i), "1"); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"1", "2", "3"} {
			_ = do("away", id) // the third one is away for two minutes
		}
		time.Sleep(time.Minute + time.Second)
		if err := do("fresh", "1"); err != nil {
			t.Error(err)
		}
		if err := do("one too many", "1"); err != nil {
			t.Error(err)
		}
		if len(k.doors) != 3 {
			t.Errorf("%d keys are kept", len(k.doors))
		}
		if err := do("fresh", "2"); err == nil {
			t.Error("a key was forgotten within its window")
		}
		if err := do("old 1", "2"); err != nil || made["old 1"] != 2 || made["away"] != 1 {
			t.Errorf("%v; a limiter was made %d times, that of a job that is away %d times", err, made["old 1"], made["away"])
		}
	})
}
