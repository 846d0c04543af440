package paceline_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

// eventful lets a client's lane see each end of a request, and each reason not to go. n decides how
// often. The lane waits for two limits.
func eventful(t *testing.T, j *paceline.Group, client string, n int) *paceline.Lane {
	second := j.Limit(paceline.LimitConfig{Limiter: limit.Named("second", must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Margin: -1})))})
	minute := j.Limit(paceline.LimitConfig{Limiter: limit.Named("minute", must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Minute, Margin: -1, Unit: limit.Orders})))})
	lane := j.Lane(paceline.LaneConfig{Client: client, MaxWaiting: 1}, []*paceline.Limit{second, minute})
	for result, times := range []int{limit.Unknown: n, limit.Accepted: n + 1, limit.Limited: n + 2, limit.Failed: n + 3, limit.Unsent: n + 4} {
		for i := range times {
			p := must(lane.Wait(t.Context(), limit.One))
			p.Settle(limit.Outcome{Result: limit.Result(result), Metered: limit.Result(result) == limit.Accepted, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: int64(100 + i)}})
		}
	}
	order := limit.Cost{limit.Orders: 1}
	for range n + 1 {
		must(lane.Wait(t.Context(), order)).Settle(limit.Outcome{Result: limit.Accepted})
	}
	for range n + 5 {
		if _, err := lane.Wait(t.Context(), limit.Cost{limit.Orders: 2}); err == nil {
			t.Error("two orders where one fits")
		}
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	for range n + 8 { // given up before they came
		_, _ = lane.Wait(over, order)
	}
	soon, done := context.WithTimeout(t.Context(), time.Second)
	for range n + 6 {
		if _, err := lane.Wait(soon, order); err == nil {
			t.Error("went before it fits")
		}
	}
	done()
	for range n + 7 { // one waits, another finds no room
		waits, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = lane.Wait(waits, order) })
		synctest.Wait()
		_, _ = lane.Wait(t.Context(), order)
		stop()
		all.Wait()
	}
	return lane
}

// The counts of a client's lanes have the same sum, present or retired, whenever they are retired:
// even before the last permit is settled.
func TestRetiredLanesCountOn(t *testing.T) {
	var want *observe.Snapshot
	for _, retire := range []string{"never", "at once", "open", "all at the end", "some"} {
		synctest.Test(t, func(t *testing.T) {
			j := must(paceline.NewGroup(paceline.GroupConfig{}))
			var later []*paceline.Lane
			for i, client := range []string{"a", "b", "a", "", "b"} {
				lane := eventful(t, j, client, i)
				open := must(lane.Wait(t.Context(), limit.One))
				if retire == "open" {
					lane.Retire()
				} else if retire != "at once" {
					later = append(later, lane)
				}
				if s := j.Snapshot(); s.InFlight != 1 {
					t.Errorf("retired %s: %d in flight, want 1", retire, s.InFlight)
				}
				open.Settle(limit.Outcome{Result: limit.Accepted})
				if retire == "at once" {
					lane.Retire()
				}
			}
			for i, lane := range later {
				if retire == "all at the end" || retire == "some" && (i == 1 || i == 3) {
					lane.Retire()
				}
			}
			s := j.Snapshot()
			for i := range s.Clients { // who has no lane any more has no weight
				if left := retire == "never" || retire == "some" && s.Clients[i].Name != ""; (s.Clients[i].Weight == 1) != left {
					t.Errorf("retired %s: the weight is %v", retire, s.Clients[i].Weight)
				}
				s.Clients[i].Weight = 0
			}
			seen := map[[2]string]bool{}
			for _, w := range s.Waits {
				if key := [2]string{w.Client, w.Limit}; seen[key] {
					t.Errorf("retired %s: two waits of %q for %q: %+v", retire, w.Client, w.Limit, s.Waits)
				} else {
					seen[key] = true
				}
			}
			if len(seen) != 3*3 { // of each client at once, for a second and for a minute
				t.Errorf("retired %s: waits are %+v", retire, s.Waits)
			}
			if want == nil {
				want = &s
				unknown := int64(0 + 1 + 2 + 3 + 4)
				counts := observe.Counts{
					Unknown: unknown, Limited: unknown + 10, Failed: unknown + 15, Unsent: unknown + 20, Never: unknown + 25, Late: unknown + 30, Full: unknown + 35, Cancelled: unknown + 35 + unknown + 40,
					Accepted: unknown + 5 + unknown + 5 + 5,
				}
				counts.Sent = counts.Unknown + counts.Accepted + counts.Limited + counts.Failed + counts.Unsent
				counts.Used = s.Counts.Used
				if s.Counts != counts || s.Used.Requests != unknown+5 || s.Used.Tokens <= 100*s.Used.Requests {
					t.Errorf("they did\n%+v, want\n%+v", s.Counts, counts)
				}
			}
			if fmt.Sprint(s.Counts) != fmt.Sprint(want.Counts) || !reflect.DeepEqual(s.Clients, want.Clients) {
				t.Errorf("retired %s:\n%+v, want\n%+v", retire, s.Clients, want.Clients)
			}
			if !reflect.DeepEqual(s.Waits, want.Waits) {
				t.Errorf("retired %s: waits are\n%+v, want\n%+v", retire, s.Waits, want.Waits)
			}
		})
	}
}
