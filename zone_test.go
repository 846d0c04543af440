package paceline_test

import (
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// A Gate tells its limiter when its scale begins, so days end at the midnight of a place.
func TestGateOfAZone(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	try(t, err)
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: 24 * time.Hour, Zone: pacific})
		try(t, err)
		g := paceline.NewGate(limit.Named("a day", l))
		for range 5 {
			p, err := g.Wait(bg, limit.One)
			try(t, err)
			p.Settle(accepted)
		}
		if got := time.Now().In(pacific).Format("2006-01-02 15:04:05.999"); got != "2000-01-02 00:00:00.05" {
			t.Errorf("the fifth went at %s, want the second midnight", got)
		}
	})
}
