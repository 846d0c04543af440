package service_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// TestASpentSearchShutsNoCore: a stranger has used up GitHub's search. Core calls go at their
// ceiling all the same, with a preset and without any limit.
func TestASpentSearchShutsNoCore(t *testing.T) {
	race.Without(t) // TestServiceAtFullRate has these goroutines
	github, _ := provider.Lookup("github")
	for _, c := range []transport.Config{{Preset: "github"}, {Provider: github}} {
		t.Run(fmt.Sprintf("preset %q", c.Preset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, service.Config{Provider: "github", Before: latency.Constant(time.Millisecond), After: latency.Constant(time.Millisecond)})
				x := &path{server: s, statuses: map[int]int{}}
				for range 30 { // with the same key
					sends(s, "k", "GET /search/issues?q=x")
				}
				c.Base, c.Attempts = x, 1
				paced := transport.Must(c)
				core, search := example{request: "GET /user"}, example{request: "GET /search/issues?q=x"}
				some := []service.Count{{Whole: 1}}
				x.flood(t, paced, []flooded{{search, some}, {core, some}}, []string{"k"}, 5*time.Minute)
				i := slices.IndexFunc(s.Report().Limits, func(l service.Window) bool { return l.Policy == "requests" })
				got := s.Report().Limits[i]
				t.Logf("%d core calls in five minutes, of 5000; %v", got.Accepted, x.statuses)
				if got.Accepted < 5000 {
					t.Errorf("%d core calls, want 5000", got.Accepted)
				}
			})
		})
	}
}
