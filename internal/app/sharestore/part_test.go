package sharestore

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func bucket(t *testing.T, n, burst int64) limit.Limiter {
	b, err := limit.NewBucket(limit.BucketConfig{Limit: n, Window: time.Hour, Burst: burst})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Of each limit only the part goes, in a window and from a bucket; what a process has for itself stays.
func TestPart(t *testing.T) {
	own, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		made limit.Limiter
		use  float64
		want int // how many go at once, and then within an hour
		hour int
	}{
		{"rolling", limit.MustRolling(20, time.Hour), 0.75, 15, 0},
		{"rounded down", limit.MustRolling(100, time.Hour), 0.29, 29, 0},
		{"bucket", bucket(t, 60, 20), 0.5, 10, 30},
		{"several", limit.NewAll(limit.MustRolling(20, time.Hour), bucket(t, 60, 8)), 0.5, 4, 6},
		{"own", own, 0.5, 3, 0},
		{"all", limit.MustRolling(20, time.Hour), 1, 20, 0},
		{"none given", limit.MustRolling(20, time.Hour), 0, 20, 0},
	} {
		if err := CheckPart(limit.MustRolling(20, time.Hour), c.use); err != nil {
			t.Error(err)
		}
		l := Part(func() limit.Limiter { return c.made }, c.use)()
		number := uint64(0)
		goes := func(from, until time.Duration) (n int) {
			for at := mono.Time(from); ; n++ {
				if at = l.Ready(at, limit.One); at > mono.Time(until) {
					return n
				}
				number++
				s := &limit.Sent{At: at, Number: number, Cost: limit.One}
				l.Admit(s)
				if c.name != "own" {
					l.Settle(at, s, &limit.Outcome{Result: limit.Accepted})
				}
			}
		}
		if n := goes(0, 0); n != c.want {
			t.Errorf("%s: %d go at once, want %d", c.name, n, c.want)
		}
		if n := goes(1, time.Hour-time.Second); n < c.hour-1 || n > c.hour {
			t.Errorf("%s: %d go within the hour, want %d", c.name, n, c.hour)
		}
	}
	if err := CheckPart(limit.MustRolling(5, time.Second), 0.1); err == nil || !strings.Contains(err.Error(), "10 % of 5 per 1s is less than 1") {
		t.Error(err)
	}
}
