package prom_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
)

// Without names, the numbers are sums, and no name is in the text. An alert for a key, a host or a share
// still fires.
func TestWithoutNames(t *testing.T) {
	whose := func(n string) observe.Whose {
		return observe.Whose{Host: "host-" + n, Key: "key-" + n, Client: "client-" + n, Target: "target-" + n, Model: "m"}
	}
	s := observe.Snapshot{At: time.Unix(1e9, 0), Bounds: []time.Duration{time.Second}}
	for i, n := range []string{"zorn", "quax", "flib"} {
		s.Limits = append(s.Limits, observe.LimitState{Whose: whose(n), Name: "requests", Unit: "requests", Used: 2, Allowed: 10,
			Window: time.Second, PerWindow: 10, Total: 100, Share: float64(i) / 4, Waiting: 1, Why: "of key-" + n})
		s.Clients = append(s.Clients, observe.ClientState{Name: "client-" + n, Waiting: 3, LongestWait: time.Duration(i) * time.Second,
			Counts: observe.Counts{Sent: 5, Accepted: 4}})
		s.Keys = append(s.Keys, observe.KeyState{Host: "host-" + n, Name: "key-" + n, State: []string{"ok", "banned", "paused"}[i]})
		s.Paused = append(s.Paused, observe.PauseState{Whose: whose(n), Until: s.At.Add(time.Duration(i) * time.Minute), Down: i == 1, Why: "key-" + n})
		s.Waits = append(s.Waits, observe.WaitTimes{Limit: "requests", Client: "client-" + n, Times: observe.Times{Count: 1, Sum: time.Second, Upto: []int64{1}}})
		s.Upstream = append(s.Upstream, observe.UpstreamTimes{Host: "host-" + n, Times: observe.Times{Count: 1, Sum: time.Second, Upto: []int64{1}}})
		s.Events = append(s.Events, observe.Event{Whose: whose(n), Text: "key-" + n})
	}
	before := len(s.Limits)
	w := httptest.NewRecorder()
	prom.Handler(prom.WithoutNames(snapshots{s})).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, name := range []string{"zorn", "quax", "flib"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is named:\n%s", name, text)
		}
	}
	owner := `client="",host="",key="",limit="requests",model="m",route="",source="",unit="requests",window="1s"`
	for _, want := range []string{
		`paceline_sent_total{client="",source=""} 15`, `paceline_requests_total{client="",result="accepted",source=""} 12`,
		`paceline_waiting{client="",source=""} 9`, `paceline_longest_wait_seconds{client="",source=""} 2`,
		`paceline_limit_used{` + owner + `} 6`, `paceline_limit_ceiling{` + owner + `} 30`, `paceline_limit_fits{` + owner + `} 30`,
		`paceline_limit_share{` + owner + `} 0.5`, `paceline_limit_counted_total{` + owner + `} 300`,
		`paceline_key_state{host="",key="",source="",state="banned"} 1`, `paceline_key_state{host="",key="",source="",state="ok"} 0`,
		`paceline_host_down{host="",source=""} 1`, `paceline_wait_seconds_count{client="",limit="requests",source=""} 3`,
		`paceline_upstream_seconds_count{host="",source=""} 3`,
		`paceline_paused_seconds{client="",host="",key="",model="m",route="",source=""} 120`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
	if len(s.Limits) != before || s.Clients[0].Waiting != 3 || s.Paused[0].Host != "host-zorn" || s.Waits[0].Client != "client-zorn" {
		t.Error("the Snapshot of the Source has changed")
	}
}

// snapshots is a Source of one Snapshot.
type snapshots struct{ s observe.Snapshot }

func (s snapshots) Snapshot() observe.Snapshot { return s.s }
