package batch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSharingRefuses(t *testing.T) {
	for _, c := range []struct {
		rate    Rate
		sharing Sharing
		want    string
	}{
		{Rate{N: 8000, Per: time.Minute, Text: "8000/m output", Produced: true}, Sharing{}, "limit 8000/m output: output counts as it is produced"},
		{Rate{N: 20, Per: time.Second, Text: "20/s"}, Sharing{Weight: -1}, "limit 20/s: throttle: Fair: Weight -1"},
	} {
		if _, err := New(Config{Limits: []Rate{c.rate}, Strangers: &c.sharing}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
