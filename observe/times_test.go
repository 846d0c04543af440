package observe_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

const ms = time.Millisecond

// Waits are due when nothing was noted, and 5 ms after that; they are counted by limit, and merged by limit.
func TestWaits(t *testing.T) {
	var w observe.Waits
	at := mono.Time(time.Hour)
	if !w.Due(at) || w.Noted() {
		t.Error("new Waits are not due")
	}
	w.Note(at, "tokens")
	if w.Due(at.Add(observe.Sampled-1)) || !w.Due(at.Add(observe.Sampled)) || !w.Noted() {
		t.Error("not due again after Sampled, or before")
	}
	w.Add(w.Head(), ms)
	w.Add(w.Of("requests"), 3*ms)
	w.Of("never waited for")
	if w.Note(at, "requests"); w.Head() != w.Of("requests") {
		t.Error("the head waits for another limit than was noted")
	}
	w.AtOnce = 2
	var more observe.Waits
	more.Add(more.Head(), 0)
	more.Add(more.Of("tokens"), 9*ms)
	more.AtOnce = 5
	more.Merge(&w)
	var got []string
	for _, x := range more.Append(nil, "c") {
		got = append(got, fmt.Sprintf("%s %s: %d, %v, %d up to 4ms", x.Client, x.Limit, x.Count, x.Sum, x.Upto[2]))
	}
	want := []string{
		"c : 7, 0s, 7 up to 4ms", "c limit: 1, 0s, 1 up to 4ms", "c tokens: 2, 10ms, 1 up to 4ms",
		"c requests: 1, 3ms, 1 up to 4ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if other := w.Append(nil, ""); len(other) != 3 || other[1].Sum != ms {
		t.Errorf("what was merged has changed: %+v", other)
	}
}

// Answers are counted for each host, in the order of their names, and quantiles are lately's.
func TestAnswers(t *testing.T) {
	var a observe.Answers
	a.Add(0, "b", time.Second)
	a.Add(mono.Time(time.Hour), "a", 2*time.Second)
	all := a.Append(nil, mono.Time(time.Hour))
	if len(all) != 2 || all[0].Host != "a" || all[0].Max/(100*ms) != 20 || all[1].Max != 0 || all[1].Sum != time.Second {
		t.Errorf("%+v", all)
	}
}

// The latest 256 Events are kept; the same again within a second is one, with the latest text.
func TestEventLog(t *testing.T) {
	var log observe.EventLog
	now := time.Unix(1000, 0)
	for i := range 300 {
		for k := range 2 {
			log.Note(now.Add(time.Duration(k)*ms), observe.Event{Kind: observe.EventBack, Text: fmt.Sprint(i, k)})
			log.Note(now, observe.Event{Kind: observe.EventBack, Whose: observe.Whose{Host: fmt.Sprint(i)}})
		}
		now = now.Add(time.Second + ms)
	}
	all := log.All()
	first, last := all[0], all[len(all)-2]
	if len(all) != 256 || first.Number != 600-255 || last.Count != 2 || last.Text != "299 1" || last.Last.Sub(last.At) != ms {
		t.Errorf("%d from %+v, %+v", len(all), first, last)
	}
}

// Sort gives each client its share, and the order does not depend on that of filling in.
func TestSort(t *testing.T) {
	s := observe.Snapshot{
		Counts:  observe.Counts{Accepted: 4},
		Clients: []observe.ClientState{{Name: "b", Counts: observe.Counts{Accepted: 3}}, {Name: "a", Counts: observe.Counts{Accepted: 1}}},
		Limits:  []observe.LimitState{{Whose: observe.Whose{Key: "k"}}, {Whose: observe.Whose{Host: "h"}, Name: "2"}, {Whose: observe.Whose{Key: "j"}}},
		Paused:  []observe.PauseState{{Whose: observe.Whose{Client: "c"}}, {Whose: observe.Whose{}}},
		Waits:   []observe.WaitTimes{{Client: "b"}, {Client: "a", Limit: "2"}, {Client: "a", Limit: "1"}},
	}
	s.Sort()
	if s.Clients[0].Name != "a" || s.Clients[0].Share != 0.25 || s.Clients[1].Share != 0.75 || s.Limits[0].Key != "j" || s.Limits[2].Host != "h" ||
		s.Paused[0].Client != "" || s.Waits[0].Limit != "1" || s.Waits[2].Client != "b" || s.Bounds[0] != ms {
		t.Errorf("%+v", s)
	}
	if named := observe.NameSource("n", source{s}).Snapshot(); named.Name != "n" || named.Accepted != 4 {
		t.Errorf("%+v", named)
	}
}

type source struct{ s observe.Snapshot }

func (s source) Snapshot() observe.Snapshot { return s.s }
