package observe_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

// A Snapshot has what a page or a metric shows: limits, clients, pauses, waits, and events.
func ExampleSnapshot() {
	gate := paceline.NewGate(limit.MustRolling(20, time.Second))
	permit, _, _ := gate.TryWait(limit.One)
	permit.Settle(limit.Outcome{Result: limit.Accepted})
	gate.TryWait(limit.Cost{limit.Requests: 3})

	var s observe.Snapshot = observe.NameSource("exchange", gate).Snapshot()
	fmt.Println(s.Name, s.Waiting, "waiting,", s.InFlight, "in flight,", s.Accepted, "accepted")
	for _, l := range s.Limits {
		fmt.Printf("%s: %d of %d used, %d in flight\n", l.Name, l.Used, l.Allowed, l.Open)
	}
	for _, c := range s.Clients {
		fmt.Println(c.Sent, "sent,", c.Counts.Accepted, "accepted")
	}
	fmt.Println(len(s.Keys), "keys,", len(s.Paused), "pauses,", len(s.Upstream), "hosts,", len(s.Events), "events")
	// Output:
	// exchange 0 waiting, 1 in flight, 1 accepted
	// requests: 4 of 20 used, 3 in flight
	// 2 sent, 1 accepted
	// 0 keys, 0 pauses, 0 hosts, 0 events
}

// printer is a Source of one's own: a queue of a printer, in the form of the page of paceline.
type printer struct {
	limiter limit.Limiter
	tally   limit.Tally
	events  observe.EventLog
	answers observe.Answers
	waits   observe.Waits
}

func (p *printer) Snapshot() observe.Snapshot {
	stats := observe.StatsOf(p.tally.Sum(), &p.tally)
	s := observe.Snapshot{At: time.Unix(60, 0).UTC(), Events: p.events.All()}
	counts := stats.Counts()
	observe.AddCounts(&s.Counts, &counts)
	for _, u := range limit.AppendUsage(nil, p.limiter, 0) {
		s.Limits = append(s.Limits, observe.LimitOf(&u))
	}
	s.Waits = p.waits.Append(s.Waits, "office")
	s.Upstream = p.answers.Append(s.Upstream, 0)
	s.Paused = append(s.Paused, observe.PauseState{Whose: observe.Whose{Host: "printer"}, Why: "no paper"})
	s.Keys = append(s.Keys, observe.KeyState{Name: "tray", State: observe.KeyOK})
	s.Sort()
	return s
}

// A Source of one's own appears on the page and in the metrics like a Gate.
func ExampleSource() {
	p := &printer{limiter: limit.MustRolling(2, time.Minute)}
	p.tally.Settled(&limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Other: 12}})
	p.waits.Add(p.waits.Of("requests"), 3*time.Second)
	p.answers.Add(0, "printer", 40*time.Millisecond)
	p.events.Note(time.Unix(59, 0).UTC(), observe.Event{Kind: observe.EventDown, Text: "no paper"})

	var source observe.Source = p
	s := source.Snapshot()
	pages := observe.Amounts{Other: 12}
	fmt.Println(s.Accepted, "accepted, pages:", s.Used.Other, s.Used == pages)
	fmt.Println(s.Limits[0].Name, s.Waits[0].Limit, s.Waits[0].Count, s.Upstream[0].Host)
	fmt.Println(s.Keys[0].State, s.Paused[0].Why, s.Events[0].Text)
	// Output:
	// 1 accepted, pages: 12 true
	// requests requests 1 printer
	// ok no paper no paper
}
