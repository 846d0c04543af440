package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/service"
)

// A run with a provider's published limit lasts for three windows of a fake server, over sockets
// and by the clock of this machine. No request is refused. The run reaches 98 % of the best rate
// for a client that learns of an arrival only by the answer: one limit's worth for each window and
// round trip. It takes half a minute, with PACELINE_LONG=1.
func TestRunLiveAtFullRate(t *testing.T) {
	if !need.Long() || race.Enabled {
		t.Skip("PACELINE_LONG=1, without the race detector: it is about how quick it is")
	}
	const windows = 3
	for _, c := range []struct {
		provider, rate string
		n              int
		window         time.Duration
		routes         int
	}{
		{"bybit", "600/5s", 600, 5 * time.Second, 40},
		{"hubspot", "100/10s", 100, 10 * time.Second, 1},
	} {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			url, end := startServe(t, c.provider, "-o", "json")
			var lines strings.Builder
			for i := range windows*c.n + 1 { // the last begins another window
				fmt.Fprintf(&lines, `{"id":"q%d","url":"%sv5/r%d"}`+"\n", i, url, i%c.routes)
			}
			out := filepath.Join(t.TempDir(), "out.jsonl")
			code, _, stderr := paceline("", "run", "--limit", c.rate, "--provider", c.provider, "--out", out, write(t, "in.jsonl", lines.String()))
			var r service.Report
			if err := json.Unmarshal([]byte(end()), &r); err != nil {
				t.Fatal(err)
			}
			var ended []time.Time
			var trips []float64
			for _, line := range results(t, out) {
				at, err := time.Parse(time.RFC3339Nano, line.At)
				if err != nil {
					t.Fatal(err)
				}
				ended = append(ended, at)
				trips = append(trips, line.LatencyMS)
			}
			slices.SortFunc(ended, time.Time.Compare)
			slices.Sort(trips)
			took := ended[len(ended)-1].Sub(ended[0])
			trip := time.Duration(trips[len(trips)/2] * float64(time.Millisecond))
			best := windows * (c.window + trip)
			share := 100 * best.Seconds() / took.Seconds()
			t.Logf("%d accepted, %d refused in %v: %.2f %% of the ceiling with round trips of %v, %.2f %% of the published rate", r.Accepted, r.Limited, took, share, trip, 100*(windows*c.window).Seconds()/took.Seconds())
			if code != 0 || r.Accepted != windows*c.n+1 || r.Limited+r.TooLarge+r.AfterBan+r.Bans+r.Wrong != 0 || share < 98 {
				t.Errorf("exit %d, %.2f %%: %+v\n%s", code, share, r, stderr)
			}
		})
	}
}
