package realserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/realserver"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// against is a client of n that keeps to the bucket c, which may not be n's.
func against(t *testing.T, name string, n realserver.Nginx, c limit.BucketConfig) *client {
	t.Helper()
	own, err := n.Bucket()
	if err != nil {
		t.Fatal(err)
	}
	per := own.Window.Seconds() / float64(own.Limit)
	return &client{
		name: name, server: n, limiter: func() limit.Limiter { return must(limit.NewBucket(c)) }, rate: 1 / per, burst: n.Burst + 1, least: 99.5,
		ceiling: func(rtt time.Duration) float64 {
			return min(1/per, float64(own.Burst)/(rtt.Seconds()+per))
		},
	}
}

func TestNginx(t *testing.T) {
	t.Parallel()
	var clients []*client
	keeps := func(n realserver.Nginx) *client {
		c, err := n.Bucket()
		if err != nil {
			t.Fatal(err)
		}
		k := against(t, "Bucket", n, c)
		if n.Burst == 0 {
			// Every request waits for a margin of 1.1 ms beside the refill, and for a timer.
			k.least = 100 * k.ceiling(2500*time.Microsecond) / k.ceiling(0)
		}
		clients = append(clients, k)
		return k
	}
	for _, rate := range []string{"20r/s", "100r/s"} {
		for _, burst := range []int{0, 5, 19} {
			for _, noDelay := range []bool{true, false} {
				keeps(realserver.Nginx{Rate: rate, Burst: burst, NoDelay: noDelay}).onlyLong = rate != "20r/s"
			}
		}
	}
	k := keeps(realserver.Nginx{Rate: "20r/s", NoDelay: true})
	k.name, k.jitter = "Bucket, path of 0 to 20 ms", 20*time.Millisecond
	odd := keeps(realserver.Nginx{Rate: "1201r/m", Burst: 5, NoDelay: true})
	odd.onlyLong = true

	five := realserver.Nginx{Rate: "20r/s", Burst: 5, NoDelay: true}
	more := against(t, "Bucket of 7", five, limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 7})
	more.breaks = "sends 7 at once"
	faster := against(t, "Bucket, 21/s", five, limit.BucketConfig{Limit: 21, Window: time.Second, Burst: 6})
	faster.breaks = "sends 21/s"
	atSend := against(t, "Bucket settled at send, path of 0 to 20 ms", realserver.Nginx{Rate: "20r/s", NoDelay: true},
		limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 1})
	atSend.jitter, atSend.atSend, atSend.breaks = 20*time.Millisecond, true, "counts from its sends"
	unrounded := against(t, "Bucket, 20.016/s", realserver.Nginx{Rate: "1201r/m", Burst: 5, NoDelay: true},
		limit.BucketConfig{Limit: 20016, Window: 1000 * time.Second, Burst: 6})
	unrounded.breaks, unrounded.onlyLong = "knows the rate, and not that each refill is rounded down", true
	run(t, append(clients, more, faster, atSend, unrounded))
}

// leaky is nginx's arithmetic, for longer than one can wait: thousandths of a request, and milliseconds.
type leaky struct {
	rate, burst  int64 // burst in thousandths
	excess, last int64
	used         bool
}

func (l *leaky) accept(now mono.Time) bool {
	ms := int64(now) / int64(time.Millisecond)
	if !l.used {
		l.used, l.last = true, ms
		return true
	}
	excess := max(0, l.excess-l.rate*(ms-l.last)/1000+1000)
	if excess > l.burst {
		return false
	}
	l.excess = excess
	l.last = ms
	return true
}

// Each request is answered after 0.3 ms.
func TestNginxBucket(t *testing.T) {
	for _, c := range []struct {
		rate    string
		burst   int
		rounded int64 // thousandths per second
		want    limit.BucketConfig
		naive   limit.BucketConfig // what the words say, where that is refused
	}{
		{"20r/s", 19, 20000, limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 20}, limit.BucketConfig{}},
		{"10r/m", 5, 166, limit.BucketConfig{Limit: 166, Window: 1001 * time.Second, Burst: 6}, limit.BucketConfig{Limit: 10, Window: time.Minute}},
		{"30r/m", 5, 500, limit.BucketConfig{Limit: 500, Window: 1001 * time.Second, Burst: 6}, limit.BucketConfig{}},
		{"1201r/m", 5, 20016, limit.BucketConfig{Limit: 20016, Window: 1001 * time.Second, Burst: 6}, limit.BucketConfig{Limit: 20016, Window: 1000 * time.Second}},
		{"60r/m", 0, 1000, limit.BucketConfig{Limit: 1, Window: time.Second, Burst: 1}, limit.BucketConfig{}},
		{"1r/m", 0, 16, limit.BucketConfig{Limit: 16, Window: 1001 * time.Second, Burst: 1}, limit.BucketConfig{}},
	} {
		own, err := realserver.Nginx{Rate: c.rate, Burst: c.burst}.Bucket()
		if err != nil || own != c.want {
			t.Errorf("%s burst=%d: %+v, %v, want %+v", c.rate, c.burst, own, err, c.want)
			continue
		}
		send := func(b limit.BucketConfig) (refused int, percent float64) {
			server := leaky{rate: c.rounded, burst: int64(c.burst) * 1000}
			l := must(limit.NewBucket(b))
			now := mono.Time(0)
			const n = 20_000
			for range n {
				now = l.Ready(now, limit.One)
				lease := limittest.Admit(l, now, limit.One)
				now = now.Add(150 * time.Microsecond)
				o := limit.Outcome{Result: limit.Accepted}
				if !server.accept(now) {
					refused++
					o.Result = limit.Limited
				}
				now = now.Add(150 * time.Microsecond)
				l.Settle(now, lease, &o)
			}
			return refused, 100 * float64(n-c.burst) / (float64(c.rounded) / 1000 * time.Duration(now).Seconds())
		}
		refused, percent := send(own)
		if refused != 0 || percent < 99 && c.burst > 0 {
			t.Errorf("%s burst=%d: %d refused, %.2f %% of the rate", c.rate, c.burst, refused, percent)
		}
		if c.naive.Limit > 0 {
			c.naive.Burst = own.Burst
			if refused, _ := send(c.naive); refused == 0 {
				t.Errorf("%s burst=%d: %d per %v is not refused", c.rate, c.burst, c.naive.Limit, c.naive.Window)
			} else {
				t.Logf("%s burst=%d as %d per %v: %d of 20000 refused", c.rate, c.burst, c.naive.Limit, c.naive.Window, refused)
			}
		}
	}
	for _, rate := range []string{"", "20", "20r/h", "0r/s", "-1r/s", "99999999999r/s", "20 r/s"} {
		if c, err := (realserver.Nginx{Rate: rate}).Bucket(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Rate %q", rate)) {
			t.Errorf("Rate %q: %+v, %v", rate, c, err)
		}
	}
}
