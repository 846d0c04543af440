package backlogtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
)

// A turn of a number fits once. One that does not fit marks, claims and gives back nothing.
func numbers(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 4)
	w := b.register()
	had := w.claim(1)
	for _, beat := range []int64{w.Beat.Beat - 1, w.Beat.Beat + 1} {
		o, err := b.Turn(b.ctx(), b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: beat, Sending: []int64{99},
			Returns: []backlog.Return{{Seq: had[0].Seq}}, Claims: []backlog.Claim{{N: 2, From: front}}})
		b.do(err)
		if o.Fits || len(o.Claimed) > 0 {
			t.Errorf("a turn of the number %d, expected %d: %+v", beat, w.Beat.Beat, o)
		}
	}
	row, err := b.Read(b.ctx(), w.Beat.Worker)
	b.do(err)
	if row.Dead || row.Beat != w.Beat.Beat || len(row.Sending) > 0 {
		t.Errorf("the row is %+v", row)
	}
	b.expect("it has", row.Held, had[0].ID)
	b.expect("the next one gets", w.claim(1), "0/2")
}

// A result is written once, with what the worker reports, and the row goes with it.
func results(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	w := b.register()
	had := w.claim(3)
	before := time.Now().Add(-time.Hour)
	first := end(had[0], "a line")
	w.turn(backlog.Turn{Ends: []backlog.End{first, {Seq: had[1].Seq, Attempts: 3, Doubt: true, State: uint8(backlog.Dead),
		Class: "status 500", Line: []byte{0, 255}}}})
	first.Line = []byte("another")
	w.turn(backlog.Turn{Ends: []backlog.End{first, {Seq: 1 << 40}}})
	all := b.ended()
	if len(all) != 2 {
		t.Errorf("there are %d results: %+v", len(all), all)
	}
	if r := all["0/1"]; r.State != backlog.Done || r.Repeat || r.Attempts != 1 || string(r.Line) != "a line" ||
		r.Worker != w.Beat.Worker || r.At.Before(before) || r.At.After(time.Now().Add(time.Hour)) {
		t.Errorf("the first is %+v", r)
	}
	if r := all["0/2"]; r.State != backlog.Dead || !r.Repeat || r.Attempts != 3 || r.Class != "status 500" ||
		string(r.Line) != "\x00\xff" {
		t.Errorf("the second is %+v", r)
	}
	row, err := b.Read(b.ctx(), w.Beat.Worker)
	b.do(err)
	b.expect("it has", row.Held, "0/3")
	w.turn(backlog.Turn{Ends: []backlog.End{end(had[2], "")}})
	empty, err := b.Empty(b.ctx(), b.id)
	if err != nil || !empty {
		t.Errorf("it is not empty: %v", err)
	}
}

// Results count in a turn that does not fit, also those of a worker that was given up. The first counts.
func late(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 2)
	w := b.register()
	had := w.claim(2)
	w.turn(backlog.Turn{Sending: []int64{had[0].Seq}})
	if done, err := b.GiveUp(b.ctx(), w.Beat); !done || err != nil {
		t.Fatalf("it is not given up: %v", err)
	}
	other := b.register()
	b.expect("another one gets", other.claim(2), "0/1", "0/2")
	o, err := b.Turn(b.ctx(), b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: w.Beat.Beat,
		Ends: []backlog.End{end(had[0], "late")}})
	if err != nil || o.Fits {
		t.Errorf("a turn of a dead worker: %+v %v", o, err)
	}
	other.turn(backlog.Turn{Ends: []backlog.End{end(had[0], "too late")}})
	if r := b.ended()["0/1"]; string(r.Line) != "late" || !r.Repeat || r.Worker != w.Beat.Worker {
		t.Errorf("the result is %+v", r)
	}
}

// What a worker doubts is named, whoever has it: also a result, of another worker or its own, and in a turn that
// does not fit.
func doubts(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 6)
	w, other := b.register(), b.register()
	had, others := w.claim(2), other.claim(3)
	w.turn(backlog.Turn{Ends: []backlog.End{end(had[0], "")}})
	other.turn(backlog.Turn{Ends: []backlog.End{end(others[0], "")}})
	_, err := b.Turn(b.ctx(), b.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: -7,
		Doubts: []int64{had[0].Seq, had[1].Seq, others[0].Seq, others[1].Seq, 1 << 40}, Ends: []backlog.End{end(had[1], "")}})
	b.do(err)
	other.turn(backlog.Turn{Ends: []backlog.End{end(others[1], ""), end(others[2], "")}})
	all := b.ended()
	for id, want := range map[string]bool{"0/1": true, "0/2": true, "0/3": true, "0/4": true, "0/5": false} {
		if r, there := all[id]; !there || r.Repeat != want {
			t.Errorf("%s is %+v", id, r)
		}
	}
}

// Claims go by place, then by number, of one lane, after a place, and pass by what others have.
func claims(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	b.add(2, 7)
	_, err := b.Enqueue(b.ctx(), b.id, []backlog.Entry{{ID: "urgent", Place: -5000}, {ID: "last", Place: 2000, Deadline: 12345}})
	b.do(err)
	w, other := b.register(), b.register()
	one := sorted(w.turn(backlog.Turn{Claims: []backlog.Claim{{N: 2, From: backlog.Place{Place: -1 << 60}}, {Lane: 7, N: 1},
		{Lane: 8, N: 1}}}).Claimed)
	b.expect("two of lane 0 and one of lane 7", one, "urgent", "0/1", "7/1")
	last := sorted(other.turn(backlog.Turn{Claims: []backlog.Claim{{N: 9, From: backlog.Place{Place: 1000, Seq: 1 << 60}}}}).Claimed)
	b.expect("what follows a place", last, "last")
	if c := last[0]; c.Deadline != 12345 || c.Place.Place != 2000 || c.Attempts != 0 || c.Doubt || c.Lane != 0 {
		t.Errorf("the last is %+v", c)
	}
	two := sorted(other.turn(backlog.Turn{Claims: []backlog.Claim{{N: 9, From: one[1].Place}}}).Claimed)
	b.expect("what follows a number", two, "0/2", "0/3")
	if d := two[0].Data; len(d) != 1 || d[0] != 1 {
		t.Errorf("its data are %v", d)
	}
	b.expect("nothing is left", other.claim(9))
}

// Workers that claim at once have different requests, and all of them.
func between(t testing.TB, open func(testing.TB) backlog.Store) {
	const n, each = 200, 4
	b := at(t, open(t), n)
	var wg sync.WaitGroup
	var mu sync.Mutex
	owners := map[string]int64{}
	for range each {
		w := b.register()
		w.bench = &bench{t, open(t), b.id}
		wg.Go(func() {
			for misses := 0; misses < 20; {
				o, err := w.Turn(w.ctx(), w.id, &backlog.Turn{Worker: w.Beat.Worker, Beat: w.Beat.Beat,
					Claims: []backlog.Claim{{N: 7, From: front}}})
				if err != nil || !o.Fits {
					t.Errorf("%+v %v", o, err)
					return
				}
				w.Beat.Beat++
				if len(o.Claimed) == 0 {
					misses++ // others may have had locks on what is free
				}
				mu.Lock()
				for _, c := range o.Claimed {
					if owners[c.ID] != 0 {
						t.Errorf("%s is of %d and of %d", c.ID, owners[c.ID], w.Beat.Worker)
					}
					owners[c.ID] = w.Beat.Worker
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(owners) != n {
		t.Errorf("%d of %d were claimed", len(owners), n)
	}
}

// What a worker gives back has its place, its attempts and its doubt. Only its own worker gives it back.
func returns(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	w, other := b.register(), b.register()
	had := w.claim(2)
	other.turn(backlog.Turn{Returns: []backlog.Return{{Seq: had[1].Seq}}})
	b.expect("what another gave back", other.claim(1), "0/3")
	w.turn(backlog.Turn{Returns: []backlog.Return{{Seq: had[0].Seq, Attempts: 2, Doubt: true}}})
	got := other.claim(9)
	b.expect("after that", got, "0/1")
	if c := got[0]; c.Attempts != 2 || !c.Doubt || c.Place != had[0].Place {
		t.Errorf("it is %+v", c)
	}
	other.turn(backlog.Turn{Returns: []backlog.Return{{Seq: got[0].Seq, Attempts: 3}}})
	if got = w.claim(9); len(got) != 1 || !got[0].Doubt || got[0].Attempts != 3 {
		t.Errorf("its doubt has gone: %+v", got)
	}
	w.turn(backlog.Turn{Ends: []backlog.End{end(got[0], "")}})
	if r := b.ended()["0/1"]; !r.Repeat || r.Attempts != 4 {
		t.Errorf("the result is %+v", r)
	}
}

// What rests is claimed by nobody until Wake finds that its rest is over.
func rests(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 2)
	_, err := b.Enqueue(b.ctx(), b.id, []backlog.Entry{
		{ID: "due", Place: 1, Due: time.Now().Add(-time.Hour).UnixMilli()},
		{ID: "later", Place: 1, Due: time.Now().Add(time.Hour).UnixMilli()},
	})
	b.do(err)
	w := b.register()
	had := w.claim(9)
	b.expect("before Wake", had, "0/1", "0/2")
	w.turn(backlog.Turn{Returns: []backlog.Return{{Seq: had[0].Seq, Rest: 20 * time.Millisecond},
		{Seq: had[1].Seq, Rest: time.Hour}}})
	b.expect("while all rest", w.claim(9))
	var got []backlog.Claimed
	for range 150 {
		b.do(b.Wake(b.ctx(), b.id))
		if got = append(got, w.claim(9)...); len(got) >= 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.expect("after their rests", sorted(got), "due", "0/1")
}

// A paused backlog gives nobody requests, and still takes results.
func paused(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	w := b.register()
	had := w.claim(1)
	b.do(b.SetPaused(b.ctx(), b.id, true))
	o := w.turn(backlog.Turn{Claims: []backlog.Claim{{N: 2, From: front}}, Ends: []backlog.End{end(had[0], "")}})
	if !o.Paused || len(o.Claimed) > 0 || len(b.ended()) != 1 {
		t.Errorf("a turn of a paused backlog: %+v, and %d results", o, len(b.ended()))
	}
	b.do(b.SetPaused(b.ctx(), b.id, false))
	if o := w.turn(backlog.Turn{}); o.Paused {
		t.Error("it is paused still")
	}
	b.expect("after the pause", w.claim(1), "0/2")
}

// The row of a worker has what its last turn says, and the requests that it has.
func reads(t testing.TB, open func(testing.TB) backlog.Store) {
	b := at(t, open(t), 3)
	w := b.register()
	had := w.claim(2)
	w.turn(backlog.Turn{Sending: []int64{had[0].Seq, had[1].Seq}})
	row, err := b.Read(b.ctx(), w.Beat.Worker)
	b.do(err)
	if row.Dead || row.Beat != w.Beat.Beat || fmt.Sprint(row.Sending) != fmt.Sprint([]int64{had[0].Seq, had[1].Seq}) {
		t.Errorf("the row is %+v", row)
	}
	b.expect("it has", sorted(row.Held), "0/1", "0/2")
	if len(row.Held) > 1 && string(row.Held[1].Data) != "\x01" {
		t.Errorf("the data are %q", row.Held[1].Data)
	}
	if row, err := b.Read(b.ctx(), 1<<40); err != nil || !row.Dead || row.Beat != -1 {
		t.Errorf("a row that is not there is %+v, %v", row, err)
	}
}
