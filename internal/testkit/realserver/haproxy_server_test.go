package realserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// HAProxy is a stick table of HAProxy and a rule that denies what its counter finds to be too much.
//
// Counter http_req_rate(1s) estimates the rate from two counters: what came in this interval of 1
// s, and what came in the one before it, in proportion to what of that is less than 1 s ago. The
// first request begins an interval (at its millisecond or the one before, whichever is even); each
// later one begins where the one before ended, unless nothing came for two. What is denied counts
// too. The estimate is rounded down to a whole request: "gt 20" denies only what makes it 21 or
// more. So limit.Weighted with Limit 20 is up to one request stricter than the server, unless it is
// told that it RoundsDown.
//
// Counter http_req_cnt only rises, until the table forgets it. The table's Expire is counted from
// the last request, so it limits how many may come before a silence of that length: no window at
// all, and none of package limit's.
type HAProxy struct {
	Counter string // http_req_rate(1s), http_req_cnt
	Max     int64  // the most that the counter may be, with the request itself in it
	Expire  string // after how long without a request the table forgets the counter. If empty, 1m
}

func (h HAProxy) String() string {
	s := fmt.Sprintf("%s gt %d", h.Counter, h.Max)
	if h.Expire != "" {
		s += " expire " + h.Expire
	}
	return s
}

// Start starts HAProxy.
func (h HAProxy) Start(t testing.TB) *Server {
	t.Helper()
	path := need.Program(t, "haproxy")
	expire := h.Expire
	if expire == "" {
		expire = "1m"
	}
	name, _, _ := strings.Cut(h.Counter, "(")
	s := start(t, path, fmt.Sprintf(`global
  log stdout len 1024 format raw local0
defaults
  mode http
  option dontlognull # connections that were closed unused
  timeout client 1m
  timeout http-keep-alive 1m
frontend judge
  bind ADDRESS
  log global
  log-format "request %%[var(txn.at)] %%ST %%[var(txn.id)] %%[var(txn.count)]"
  stick-table type integer size 10 expire %s store %s
  http-request set-log-level silent if { path /up }
  http-request return status 200 content-type text/plain string "up ADDRESS" if { path /up }
  http-request set-var(txn.at) date(0,ms)
  http-request set-var(txn.id) url_param(id)
  http-request track-sc0 int(1)
  http-request set-var(txn.count) sc_%s(0)
  http-request deny deny_status 429 if { sc_%s(0) gt %d }
  http-request return status 200 content-type text/plain string "ok"
`, expire, h.Counter, name, name, h.Max), "-db", "-f", "DIR/conf")
	s.arrivals = func(t testing.TB) []Arrival {
		t.Helper()
		var all []Arrival
		for line := range strings.Lines(s.read(t, "output")) {
			if !strings.HasPrefix(line, "request ") {
				continue // HAProxy tells here that it starts and stops
			}
			var (
				a  Arrival
				ms int64
			)
			if _, err := fmt.Sscanf(line, "request %d %d %s %s", &ms, &a.Status, &a.ID, &a.Verdict); err != nil {
				t.Fatalf("haproxy: %v in %q", err, line)
			}
			a.At = time.UnixMilli(ms)
			all = append(all, a)
		}
		return all
	}
	return s
}
