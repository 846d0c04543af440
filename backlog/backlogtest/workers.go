package backlogtest

import (
	"errors"
	"testing"

	"github.com/paceline-go/paceline/backlog"
)

// A worker is given up only with the beat that was seen. Then no turn of it fits.
func givenUp(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 2)
	w := b.register()
	seen := w.Beat
	w.claim(1)
	if done, err := b.GiveUp(b.ctx(), seen); done || err != nil {
		t.Errorf("a worker that took a turn is given up: %v", err)
	}
	b.expect("nobody has what is free", b.register().claim(9), "0/2")
	if done, err := b.GiveUp(b.ctx(), w.Beat); !done || err != nil {
		t.Errorf("a worker is not given up: %v", err)
	}
	if done, err := b.GiveUp(b.ctx(), w.Beat); done || err != nil {
		t.Errorf("it is given up twice: %v", err)
	}
	o, err := b.Turn(b.ctx(), b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: w.Beat.Beat,
		Claims: []backlog.Claim{{N: 9, From: front}}})
	if err != nil || o.Fits || len(o.Claimed) > 0 {
		t.Errorf("a turn of it: %+v %v", o, err)
	}
	row, err := b.Read(b.ctx(), w.Beat.Worker)
	if err != nil || !row.Dead || len(row.Held) > 0 {
		t.Errorf("its row is %+v, %v", row, err)
	}
}

// What a worker had when it was given up is free again. Only what it had marked has a doubt, and an attempt
// more.
func back(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 4)
	w, other := b.register(), b.register()
	had := w.claim(2)
	others := other.claim(1)
	w.turn(backlog.Turn{Sending: []int64{had[1].Seq, others[0].Seq, 1 << 40}}) // only its own count
	if done, err := b.GiveUp(b.ctx(), w.Beat); !done || err != nil {
		t.Fatalf("it is not given up: %v", err)
	}
	got := b.register().claim(9)
	b.expect("the next one gets", got, "0/1", "0/2", "0/4")
	for i, c := range got {
		if marked := i == 1; c.Doubt != marked || c.Attempts != map[bool]int{true: 1}[marked] || i < 2 && c.Place != had[i].Place {
			t.Errorf("%s, marked %v, is %+v", c.ID, marked, c)
		}
	}
	row, err := b.Read(b.ctx(), other.Beat.Worker)
	if err != nil || len(row.Held) != 1 || row.Held[0].Doubt || row.Held[0].Attempts != 0 {
		t.Errorf("what another has is %+v, %v", row.Held, err)
	}
}

// A look finds the living workers of one backlog, with their beats.
func looks(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 2)
	one, two, three := b.register(), b.register(), b.register()
	one.claim(1)
	if done, err := b.GiveUp(b.ctx(), two.Beat); !done || err != nil {
		t.Fatalf("it is not given up: %v", err)
	}
	b.do(b.Create(b.ctx(), t.Name()+"/other", ""))
	i, err := b.Find(b.ctx(), t.Name()+"/other")
	b.do(err)
	_, err = b.Register(b.ctx(), i.ID, "host", 7)
	b.do(err)
	all, err := b.Look(b.ctx(), b.id)
	b.do(err)
	found := map[backlog.Beat]bool{}
	for _, beat := range all {
		found[beat] = true
	}
	if len(all) != 2 || !found[one.Beat] || !found[three.Beat] {
		t.Errorf("a look finds %+v, expected %+v and %+v", all, one.Beat, three.Beat)
	}
}

// Nobody works for a backlog that is not there.
func unknown(t testing.TB, open func(testing.TB) backlog.Store) {
	s := open(t)
	b := at(t, s, 0)
	if _, err := s.Register(b.ctx(), 1<<40, "host", 7); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a worker of no backlog: %v", err)
	}
	if _, err := s.Find(b.ctx(), t.Name()+"/none"); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a name that nobody gave: %v", err)
	}
	if _, err := s.Enqueue(b.ctx(), 1<<40, []backlog.Entry{{ID: "x"}}); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a request of no backlog: %v", err)
	}
}
