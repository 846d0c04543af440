package share_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/share"
)

// A turn that loses every race goes on trying, with pauses of 10 ms at most, until its context
// ends. A failure ends it at once.
func TestRetryGoesOnTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, began := 0, time.Now()
		err := share.Retry(ctx, func() (bool, error) { n++; return false, nil })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || n < 100 {
			t.Errorf("%d tries in %v: %v", n, time.Since(began), err)
		}
		n = 0
		if err := share.Retry(t.Context(), func() (bool, error) { n++; return n == 5, nil }); err != nil || n != 5 {
			t.Errorf("%d tries: %v", n, err)
		}
		broken := errors.New("broken")
		if err := share.Retry(t.Context(), func() (bool, error) { n++; return false, broken }); err != broken || n != 6 {
			t.Errorf("%d tries: %v", n, err)
		}
	})
}
