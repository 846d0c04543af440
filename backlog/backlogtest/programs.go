package backlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
)

// An ID is added once, also within one call.
func adds(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 2)
	n, err := b.Enqueue(b.ctx(), b.id, []backlog.Entry{{ID: "0/2"}, {ID: "ä'%"}, {ID: "new"}, {ID: "new", Data: []byte("no")}})
	if err != nil || n != 2 {
		t.Errorf("%d were added, %v", n, err)
	}
	c, err := b.Count(b.ctx(), b.id)
	if err != nil || c.Total != 4 || c.Ready != 4 {
		t.Errorf("there are %+v, %v", c, err)
	}
	differ, err := b.Differing(b.ctx(), b.id, []backlog.Entry{{ID: "new", Data: []byte("x")}, {ID: "not there"}, {ID: "ä'%"},
		{ID: "new", Data: []byte{}}, {ID: "0/2", Data: []byte{0}}})
	if b.do(err); !slices.Equal(differ, []string{"new", "0/2"}) {
		t.Errorf("%q differ", differ)
	}
	b.do(b.Analyze(b.ctx()))
	var many []backlog.Entry
	for i := range 5000 {
		many = append(many, backlog.Entry{ID: fmt.Sprint("many ", i), Data: make([]byte, 100)})
	}
	for _, want := range []int{5000, 0} {
		if n, err := b.Enqueue(b.ctx(), b.id, many); err != nil || n != want {
			t.Errorf("of 5000 %d were added, %v", n, err)
		}
	}
}

// Results come in the order of the input, page by page.
func order(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 9)
	w := b.register()
	had := w.claim(9)
	for _, i := range []int{8, 2, 5, 0, 7} {
		w.turn(backlog.Turn{Ends: []backlog.End{end(had[i], "")}})
	}
	var got []string
	for after := int64(0); ; {
		all, err := b.Results(b.ctx(), b.id, after, 2)
		b.do(err)
		for _, r := range all {
			got, after = append(got, r.ID), r.Seq
		}
		if len(all) < 2 {
			break
		}
	}
	if want := []string{"0/1", "0/3", "0/6", "0/8", "0/9"}; !slices.Equal(got, want) {
		t.Errorf("the results are of %q, expected %q", got, want)
	}
}

// A backlog is made once, and others find it with its format.
func opens(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 0)
	b.do(b.Create(b.ctx(), t.Name(), "other"))
	again := open(t)
	i, err := again.Find(b.ctx(), t.Name())
	if err != nil || i.ID != b.id || i.Format != "text" || i.Name != t.Name() || i.Paused || i.Note != nil {
		t.Errorf("another finds %+v, %v", i, err)
	}
	all, err := again.List(b.ctx())
	found := false
	for _, i := range all {
		found = found || i.ID == b.id && i.Name == t.Name()
	}
	if err != nil || !found {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if _, err := backlog.Open(b.ctx(), again, t.Name(), backlog.Options{Format: "other"}); !errors.Is(err, backlog.ErrFormat) {
		t.Errorf("with another format: %v", err)
	}
	if _, err := backlog.Open(b.ctx(), again, t.Name()+"/none", backlog.Options{Existing: true}); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("one that is not there: %v", err)
	}
}

// Each request is counted in one state.
func counts(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 10)
	w := b.register()
	had := w.claim(7)
	w.turn(backlog.Turn{
		Returns: []backlog.Return{{Seq: had[6].Seq, Rest: time.Hour}},
		Ends: []backlog.End{{Seq: had[0].Seq, State: uint8(backlog.Done)}, {Seq: had[1].Seq, State: uint8(backlog.Done), Doubt: true},
			{Seq: had[2].Seq, State: uint8(backlog.Dead), Class: "x"}, {Seq: had[3].Seq, State: uint8(backlog.Expired)}},
	})
	if n, err := b.Cancel(b.ctx(), b.id, []string{"0/10"}, 10); n != 1 || err != nil {
		t.Errorf("%d are cancelled, %v", n, err)
	}
	c, err := b.Count(b.ctx(), b.id)
	want := backlog.Counts{Total: 10, Ready: 2, Later: 1, Held: 2, Done: 2, Dead: 1, Expired: 1, Cancelled: 1, Repeats: 1}
	if err != nil || c != want || c.Left() != 5 {
		t.Errorf("there are %+v, expected %+v: %v", c, want, err)
	}
	if empty, err := b.Empty(b.ctx(), b.id); empty || err != nil {
		t.Errorf("it is empty: %v", err)
	}
}

// What nobody has is cancelled: by its ID, or all of it, so many at a time.
func cancels(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 7)
	w := b.register()
	had := w.claim(2)
	w.turn(backlog.Turn{Returns: []backlog.Return{{Seq: had[1].Seq, Rest: time.Hour, Attempts: 2}}})
	if n, err := b.Cancel(b.ctx(), b.id, []string{"0/1", "0/3", "none"}, 10); n != 1 || err != nil {
		t.Errorf("%d are cancelled, %v", n, err)
	}
	if r := b.ended()["0/3"]; r.State != backlog.Cancelled || r.Worker != 0 || r.Attempts != 0 || r.Repeat {
		t.Errorf("it is %+v", r)
	}
	for i, want := range []int{2, 2, 1} {
		if n, err := b.Cancel(b.ctx(), b.id, nil, 2); n != want || err != nil {
			t.Errorf("in part %d %d are cancelled, %v", i, n, err)
		}
	}
	if r := b.ended()["0/2"]; r.State != backlog.Cancelled || r.Attempts != 2 {
		t.Errorf("what rested is %+v", r)
	}
	w.turn(backlog.Turn{Ends: []backlog.End{end(had[0], "")}})
	if r := b.ended()["0/1"]; r.State != backlog.Done {
		t.Errorf("what was on its way is %+v", r)
	}
}

// Dead requests wait again, by class, and what may have been served has a doubt.
func again(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 6)
	w := b.register()
	had := w.claim(6)
	dead := func(i int, class string, doubt, unsure bool) backlog.End {
		return backlog.End{Seq: had[i].Seq, Attempts: 5, State: uint8(backlog.Dead), Class: class, Doubt: doubt, Unsure: unsure}
	}
	w.turn(backlog.Turn{Ends: []backlog.End{end(had[0], ""), dead(1, "a", false, false), dead(2, "b", false, true),
		dead(3, "b", true, false), dead(4, "c", false, false), {Seq: had[5].Seq, State: uint8(backlog.Expired), Class: "a"}}})
	if n, err := b.RetryDead(b.ctx(), b.id, []string{"a", "b"}, 10); n != 3 || err != nil {
		t.Errorf("%d wait again, %v", n, err)
	}
	got := w.claim(9)
	slices.SortFunc(got, func(a, b backlog.Claimed) int { return int(a.Seq - b.Seq) })
	b.expect("they are", got, "0/2", "0/3", "0/4")
	for i, c := range got {
		if c.Attempts != 0 || c.Doubt != (i > 0) {
			t.Errorf("%s is %+v", c.ID, c)
		}
	}
	w.turn(backlog.Turn{Ends: []backlog.End{dead(1, "a", false, false)}})
	for _, want := range []int{1, 1, 0} {
		if n, err := b.RetryDead(b.ctx(), b.id, nil, 1); n != want || err != nil {
			t.Errorf("%d wait again, expected %d: %v", n, want, err)
		}
	}
	if r := b.ended(); len(r) != 2 || r["0/1"].State != backlog.Done {
		t.Errorf("the results are %+v", r)
	}
}

// A note is put if nobody else did so since it was read.
func notes(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 0)
	for _, step := range []struct {
		was, note string
		want      bool
	}{{"", "one", true}, {"", "two", false}, {"one", "three", true}, {"one", "four", false}} {
		var was []byte
		if step.was != "" {
			was = []byte(step.was)
		}
		if done, err := b.SetNote(b.ctx(), b.id, was, []byte(step.note)); done != step.want || err != nil {
			t.Errorf("%+v: %v %v", step, done, err)
		}
	}
	if i, err := b.Find(b.ctx(), t.Name()); err != nil || string(i.Note) != "three" {
		t.Errorf("the note is %q, %v", i.Note, err)
	}
}

// What is removed is not there any more, also for its workers, and its name is free.
func removes(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 4)
	w := b.register()
	had := w.claim(2)
	w.turn(backlog.Turn{Ends: []backlog.End{{Seq: had[0].Seq, State: uint8(backlog.Dead)}}})
	if n, err := b.RetryDead(b.ctx(), b.id, nil, 10); n != 1 || err != nil {
		t.Errorf("%d wait again, %v", n, err)
	}
	b.do(b.Remove(b.ctx(), b.id))
	o, err := b.Turn(b.ctx(), b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: w.Beat.Beat, Ends: []backlog.End{end(had[1], "")},
		Claims: []backlog.Claim{{N: 2, From: front}}})
	if err != nil || o.Fits {
		t.Errorf("a turn after that: %+v %v", o, err)
	}
	if _, err := b.Register(b.ctx(), b.id, "host", 7); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a worker of it: %v", err)
	}
	if _, err := b.Enqueue(b.ctx(), b.id, []backlog.Entry{{ID: "x"}}); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a request of it: %v", err)
	}
	old := b.id
	b = at(t, b.Store, 3)
	if b.id == old {
		t.Error("its number comes again")
	}
	b.expect("one of the same name", b.register().claim(9), "0/1", "0/2", "0/3")
}

// The workers are those that live, those that wrote results, and those that were given up while they sent.
func workers(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 6)
	one, two, three := b.register(), b.register(), b.register()
	had, others := one.claim(2), two.claim(3)
	one.turn(backlog.Turn{Ends: []backlog.End{end(had[0], ""), {Seq: 1 << 40}}, Sending: []int64{had[1].Seq}})
	two.turn(backlog.Turn{Sending: []int64{others[0].Seq, others[1].Seq}})
	began := time.Now().Truncate(time.Millisecond)
	for _, w := range []*worker{one, three} {
		if done, err := b.GiveUp(b.ctx(), w.Beat); !done || err != nil {
			t.Fatalf("it is not given up: %v", err)
		}
	}
	all, err := b.Workers(b.ctx(), b.id)
	want := []backlog.WorkerStatus{
		{ID: one.Beat.Worker, Host: "host", PID: 7, Beat: one.Beat.Beat, Dead: true, Sending: 1, Results: 1},
		{ID: two.Beat.Worker, Host: "host", PID: 7, Beat: two.Beat.Beat, Held: 3, Sending: 2},
	}
	if len(all) > 0 {
		const clocks = time.Second // of the database, and of this test
		if at := all[0].Ended; at.Before(began.Add(-clocks)) || at.After(time.Now().Add(clocks)) {
			t.Errorf("it ended at %v, after %v", at, began)
		}
		all[0].Ended = time.Time{}
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("the workers are %+v, expected %+v: %v", all, want, err)
	}
}

// A call with a context that is done does nothing.
func cancelled(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	w := b.register()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Turn(ctx, b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: w.Beat.Beat,
		Claims: []backlog.Claim{{N: 3, From: front}}}); err == nil {
		t.Error("a turn with a context that is done has no error")
	}
	if _, err := b.Enqueue(ctx, b.id, []backlog.Entry{{ID: "x"}}); err == nil {
		t.Error("requests are added with a context that is done")
	}
	b.expect("after that", w.claim(9), "0/1", "0/2", "0/3")
}
