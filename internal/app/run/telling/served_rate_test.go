package telling

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// The fitting rate is that of the requests accepted between refusals, from the second on. Refusals
// of requests in flight together count as one.
func TestServings(t *testing.T) {
	var s Servings
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	hear := func(sent, now time.Duration, r limit.Result, want bool) {
		t.Helper()
		if got := s.Hear(at(sent), at(now), r); got != want {
			t.Errorf("at %v: %v", now, got)
		}
	}
	for range 500 { // all of a minute
		hear(0, time.Second, limit.Accepted, false)
	}
	hear(0, time.Second, limit.Limited, true)
	hear(0, 2*time.Second, limit.Limited, false)
	if _, _, is := s.News(2); is {
		t.Error("one refusal tells nothing")
	}
	for minute := range 4 {
		d := time.Duration(minute) * time.Minute
		for range 500 {
			hear(d+3*time.Second, d+4*time.Second, limit.Accepted, false)
		}
		hear(d+4*time.Second, d+5*time.Second, limit.Unknown, false)
		hear(d+4*time.Second, d+5*time.Second, limit.Limited, true)
		n, in, is := s.News(EnoughRefusals)
		if is != (minute == 1) || is && (n != 500 || in != time.Minute) {
			t.Errorf("minute %d: %d in %v, %v", minute, n, in, is)
		}
	}
	if _, _, is := s.News(2); is {
		t.Error("it is what was told")
	}
	for want, in := range map[string]time.Duration{"19/s": 1049 * time.Millisecond, "10/s": 2 * time.Second, "20/m": time.Minute, "1/3m10s": 3800 * time.Second, "1/3m11s": 3801 * time.Second} {
		if got := RateText(20, in); got != want {
			t.Errorf("20 in %v: %s, want %s", in, got, want)
		}
	}
}
