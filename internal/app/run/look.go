package run

import (
	"slices"

	"github.com/paceline-go/paceline/observe"
)

// Sources returns the sources of snapshots while Send runs: one for each part of the input that has
// limits of its own, under the name of its model. They exist once Open has returned. Snapshots have
// no secrets.
func (r *Run) Sources() (all []observe.Source) {
	for _, g := range r.groups {
		all = append(all, observe.NameSource(g.model, looked{r, g}))
	}
	return all
}

// looked is a group as a source of snapshots.
type looked struct {
	r *Run
	g *group
}

// Snapshot implements observe.Source.
func (l looked) Snapshot() observe.Snapshot {
	s := l.g.pool.Snapshot()
	s.Keys, s.Limits, s.Paused, s.Events = slices.Clone(s.Keys), slices.Clone(s.Limits), slices.Clone(s.Paused),
		slices.Clone(s.Events)
	l.spent(&s)
	hide := func(text *string) { *text, _ = l.r.secrets.HideIn(*text) }
	for i := range s.Keys {
		hide(&s.Keys[i].Why)
	}
	for i := range s.Limits {
		hide(&s.Limits[i].Why)
	}
	for i := range s.Paused {
		hide(&s.Paused[i].Why)
	}
	for i := range s.Events {
		hide(&s.Events[i].Text)
	}
	return s
}

// spent adds tokens and money. The run counts these itself, by the answers.
func (l looked) spent(s *observe.Snapshot) {
	t := &l.r.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	var all money
	for name, m := range t.models {
		if l.r.of(name) == l.g {
			s.Used.Input += m.InputTokens
			s.Used.Output += m.OutputTokens
			all += m.spent
		}
	}
	s.Used.Money = int64(all / (dollar / 1e6)) // millionths
}
