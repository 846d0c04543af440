package realserver

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// Nginx is a limit_req of nginx: a leaky bucket with a clock of milliseconds, full at first.
type Nginx struct {
	Rate    string // as limit_req_zone has it: "20r/s", "10r/m"
	Burst   int    // extra requests, as limit_req has it
	NoDelay bool   // if false, a request beyond the rate is held, and answered when the rate allows it
}

func (n Nginx) String() string {
	s := fmt.Sprintf("rate=%s burst=%d", n.Rate, n.Burst)
	if n.NoDelay {
		s += " nodelay"
	}
	return s
}

// perMille returns the rate as nginx keeps it: in thousandths of a request per second, rounded
// down. 10r/m is 0.166 r/s.
func (n Nginx) perMille() (int64, error) {
	number, unit, _ := strings.Cut(n.Rate, "r/")
	rate, err := strconv.ParseInt(number, 10, 64)
	scale := int64(1)
	if unit == "m" {
		scale = 60
	}
	if err != nil || rate < 1 || rate > math.MaxInt32 || unit != "s" && unit != "m" {
		return 0, fmt.Errorf("realserver: Nginx: Rate %q, expected a rate such as 20r/s or 10r/m", n.Rate)
	}
	rate = rate * 1000 / scale
	if rate == 0 {
		return 0, fmt.Errorf("realserver: Nginx: Rate %q", n.Rate)
	}
	return rate, nil
}

// Bucket returns the limit that nginx enforces. Its bucket holds Burst + 1 requests, delayed or
// not.
//
// nginx rounds twice, both times against the client. Its rate is a whole number of thousandths of a
// request per second: 10r/m is 0.166 r/s, 0.4 % less than it says. And at each request it rounds
// what was refilled since the one before down to a thousandth of a request, so that where the rate
// is not a whole number per second (only in r/m) each request may cost 1.001: more than the 2 in
// 10,000 that limit.Bucket allows for clocks that drift, and enough to be refused sooner or later
// if the bucket is never full.
func (n Nginx) Bucket() (limit.BucketConfig, error) {
	rate, err := n.perMille()
	if err != nil {
		return limit.BucketConfig{}, err
	}
	c := limit.BucketConfig{Limit: rate / 1000, Window: time.Second, Burst: int64(n.Burst) + 1}
	if rate%1000 != 0 {
		c.Limit, c.Window = rate, 1001*time.Second
	}
	return c, nil
}

// Start starts nginx.
func (n Nginx) Start(t testing.TB) *Server {
	t.Helper()
	path := need.Program(t, "nginx")
	use := ""
	if n.Burst > 0 { // nginx has no word for 0
		use = fmt.Sprintf(" burst=%d", n.Burst)
	}
	if n.NoDelay {
		use += " nodelay"
	}
	// Location /up returns before limit_req looks at a request; try_files comes after it.
	s := start(t, path, fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid DIR/pid; error_log DIR/error.log warn;
events { }
http {
  log_format judge '$msec $request_time $status $arg_id $limit_req_status';
  limit_req_zone "all" zone=all:1m rate=%s;
  client_body_temp_path DIR/1; proxy_temp_path DIR/2; fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
  server {
    listen ADDRESS;
    root DIR;
    access_log DIR/access.log judge;
    location = /up { access_log off; return 200 "up ADDRESS"; }
    location / { limit_req zone=all%s; limit_req_status 429; try_files /conf =500; }
  }
}
`, n.Rate, use), "-p", "DIR", "-c", "DIR/conf", "-e", "DIR/error.log")
	s.arrivals = func(t testing.TB) []Arrival {
		t.Helper()
		var all []Arrival
		refused := 0
		for line := range strings.Lines(s.read(t, "access.log")) {
			var (
				a           Arrival
				ended, took float64
			)
			if _, err := fmt.Sscan(line, &ended, &took, &a.Status, &a.ID, &a.Verdict); err != nil {
				t.Fatalf("nginx: %v in %q", err, line)
			}
			a.At = time.UnixMilli(int64(math.Round(1000 * (ended - took))))
			if a.Refused() != (a.Verdict == "REJECTED") {
				t.Errorf("nginx: status and verdict differ: %q", line)
			}
			if a.Refused() {
				refused++
			}
			all = append(all, a)
		}
		// The error log tells of refused requests by itself.
		if n := strings.Count(s.read(t, "error.log"), " limiting requests, excess: "); n != refused {
			t.Errorf("nginx refused %d requests by its access log, %d by its error log", refused, n)
		}
		return all
	}
	return s
}
