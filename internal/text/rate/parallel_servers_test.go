package rate

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Requests go by the servers that may take them soonest: the last of them goes when the windows of all servers together
// hold so many.
func TestAtServers(t *testing.T) {
	at := func(name string, times int, all ...string) Server {
		s := Server{Name: name}
		for _, text := range all {
			l, err := ParseCounted(text)
			if err != nil {
				t.Fatal(err)
			}
			s.Limits = append(s.Limits, Repeated{l, times})
		}
		return s
	}
	bucket := at("", 1, "60/m")
	bucket.Limits[0].Bucket, bucket.Limits[0].Burst = true, 10
	for _, c := range []struct {
		name             string
		servers          []Server
		requests, tokens int64
		want             time.Duration
		first            float64 // part of the first server
	}{
		{"all at once", []Server{at("", 1, "100/m")}, 100, 0, 0, 1},
		{"one more", []Server{at("", 1, "100/m")}, 101, 0, time.Minute, 1},
		{"of each key", []Server{at("", 3, "100/m")}, 301, 0, time.Minute, 1},
		{"two servers", []Server{at("a", 1, "20/s"), at("b", 1, "10/s")}, 300, 0, 9 * time.Second, 2. / 3},
		{"windows of two lengths", []Server{at("a", 1, "10/s"), at("b", 1, "100/m")}, 720, 0, 60 * time.Second, 610. / 810},
		{"the tighter limit", []Server{at("", 1, "100/m", "120/h")}, 130, 0, time.Hour, 1},
		{"tokens", []Server{at("a", 1, "1000 tokens/m"), at("b", 1, "9000/m")}, 9101, 91_010, time.Minute, 200. / 18_200},
		{"a bucket", []Server{bucket}, 40, 0, 30 * time.Second, 1},
		{"none has a limit", []Server{at("a", 1), at("b", 1, "1/s")}, 1e6, 0, 0, 1},
		{"nothing to send", []Server{at("", 1, "1/h")}, 0, 0, 0, 1},
		{"for ever", []Server{at("", 1, "1/h")}, 1e12, 0, longest, 1},
	} {
		cost := limit.Cost{limit.Requests: c.requests, limit.Tokens: c.tokens}
		d, parts := AtServers(time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC), cost, c.servers)
		if d != c.want && !(c.want == longest && d > longest/4) || parts[0] < c.first-1e-9 || parts[0] > c.first+1e-9 {
			t.Errorf("%s: %v, parts %v; want %v, %v", c.name, d, parts, c.want, c.first)
		}
	}
	cost := limit.Cost{limit.Requests: 10, limit.Tokens: 100}
	if got := SpeedAtServers(cost, []Server{at("a", 2, "60/m", "100 tokens/s"), at("b", 1, "30 tokens/s")}); got != 5 {
		t.Errorf("%v a second, want 2 of the requests at a, and 3 by the tokens at b", got)
	}
}
