package queue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/limit/mono"
)

// A heap is in order after any operations: a node is before its children, and each item is at its
// recorded place.
func TestHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	h := heap{spots: new(spots)}
	for range 300 {
		h.spots.grow()
	}
	in := map[uint32]entry{}
	for step := range 6000 {
		i := uint32(rng.IntN(300))
		e := entry{mono.Time(rng.IntN(60)), uint64(step), i} // many at one instant
		_, is := in[i]
		switch {
		case !is && (step < 3000 || rng.IntN(4) == 0):
			h.push(e.at, e.seq, i)
			in[i] = e
		case is && rng.IntN(2) == 0:
			h.move(e.at, e.seq, i)
			in[i] = e
		case is:
			h.remove(i)
			delete(in, i)
		}
		if len(h.entries) != len(in) {
			t.Fatalf("step %d: %d entries of %d", step, len(h.entries), len(in))
		}
		for k, e := range h.entries {
			if in[e.index] != e || int(h.spots.of[e.index]) != k {
				t.Fatalf("step %d: %+v stands at %d, want %+v at %d", step, e, k, in[e.index], h.spots.of[e.index])
			}
			if k > 0 && e.before(&h.entries[(k-1)/4]) {
				t.Fatalf("step %d: %+v is before what it stands below, %+v", step, e, h.entries[(k-1)/4])
			}
		}
	}
	var all, want []entry
	for _, e := range in {
		want = append(want, e)
	}
	slices.SortFunc(want, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	for len(h.entries) > 0 {
		e := *h.first()
		h.remove(e.index)
		all = append(all, e)
	}
	if len(all) < 50 || !slices.Equal(all, want) {
		t.Errorf("it gave %v, want %v", all, want)
	}
	for i, spot := range h.spots.of {
		if spot != -1 {
			t.Errorf("item %d is out, and stands at %d", i, spot)
		}
	}
}

// The zero Ticket names no request, and Watch reports each Kill.
func TestZeroTicketAndWatch(t *testing.T) {
	q, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var told []Ended
	q.Watch(func(e Ended) { told = append(told, e) })
	first, err := q.Submit(0, Request{ID: "first"})
	if err != nil || first == (Ticket{}) || q.Info(Ticket{}).State != None || q.Cancel(0, Ticket{}) {
		t.Errorf("%+v, %v: the zero Ticket is that of %+v", first, err, q.Info(Ticket{}))
	}
	second, _ := q.Submit(0, Request{ID: "second"})
	q.Take(1, second)
	q.Kill(2, first, "why")
	q.Kill(3, second, "and why")
	if len(told) != 2 || told[0].Reason != "why" || told[0].State != Dead || told[1].Request.ID != "second" || told[1].Attempts != 1 {
		t.Errorf("told of %+v", told)
	}
	q.Watch(nil)
	third, _ := q.Submit(4, Request{ID: "third"})
	if q.Kill(5, third, "unheard"); len(told) != 2 {
		t.Errorf("told of %+v", told)
	}
}
