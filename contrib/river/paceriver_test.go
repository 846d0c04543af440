package paceriver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	paceriver "github.com/paceline-go/paceline/contrib/river"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// Jobs of each tenant keep to 40 requests a second. The middleware goes into the client's configuration.
func ExampleNew() {
	pace, err := paceriver.New(paceriver.Config{
		Key:     func(job *rivertype.JobRow) string { return job.Tags[0] }, // the tenant
		Limiter: func(tenant string) (limit.Limiter, error) { return limit.MustRolling(40, time.Second), nil },
	})
	config := &river.Config{Middleware: []rivertype.Middleware{pace}}
	fmt.Println(len(config.Middleware), err)
	// Output: 1 <nil>
}

// napOf returns how long a job is snoozed, 0 if it is not.
func napOf(err error) time.Duration {
	if snooze, ok := errors.AsType[*rivertype.JobSnoozeError](err); ok {
		return snooze.Duration
	}
	return 0
}

// A job that is refused is snoozed for the server's time, whatever error its worker returns. So is one
// that came later, and another key's job is worked.
func TestRefusedByAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, err := paceriver.New(paceriver.Config{
			Key: func(job *rivertype.JobRow) string { return job.Queue },
			Limiter: func(string) (limit.Limiter, error) {
				return limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		answer := func(status int, header ...string) func(context.Context) error {
			h := http.Header{}
			for i := 0; i < len(header); i += 2 {
				h.Set(header[i], header[i+1])
			}
			return func(ctx context.Context) error {
				v, err := paceriver.Answered(ctx, &classify.Evidence{Status: status, Header: h, Now: time.Now()})
				if err == nil && v.Again {
					err = errors.New("again")
				}
				return err
			}
		}
		job := func(id int64, key string) *rivertype.JobRow {
			return &rivertype.JobRow{ID: id, Queue: key, CreatedAt: time.Now()}
		}
		err = pace.Work(t.Context(), job(1, "a"), answer(429, "Retry-After", "60"))
		if nap := napOf(err); nap < 59*time.Second || nap > time.Minute {
			t.Errorf("the refused job: %v", err)
		}
		err = pace.Work(t.Context(), job(2, "a"), answer(200))
		if nap := napOf(err); nap < 59*time.Second || nap > 61*time.Second {
			t.Errorf("the next job of its key: %v", err)
		}
		if err := pace.Work(t.Context(), job(3, "b"), answer(200)); err != nil {
			t.Errorf("a job of another key: %v", err)
		}
		if s, away := pace.Stats("a"); away != 2 || s.Admitted != 1 {
			t.Errorf("%d away, %+v", away, s)
		}
		if _, away := pace.Stats("never seen"); away != 0 {
			t.Error(away)
		}
		err = pace.Work(t.Context(), job(4, ""), func(ctx context.Context) error {
			if _, err := paceriver.Answered(ctx, &classify.Evidence{Status: 200}); err == nil {
				t.Error("a job without a key has a turn")
			}
			if _, _, err := paceriver.Send(ctx, http.DefaultClient, nil); err == nil {
				t.Error("a job without a key sends at a turn")
			}
			return nil
		})
		if err != nil {
			t.Errorf("a job without a key: %v", err)
		}
	})
}

func TestNew(t *testing.T) {
	if _, err := paceriver.New(paceriver.Config{}); err == nil || err.Error() != "paceriver: the Limiter is nil" {
		t.Error(err)
	}
}
