package backlogtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
)

// Run tests a store. Each call of open returns a new connection to the same store, as another process has
// it. open closes the connection when the test ends. Backlogs begin with the name of the test.
func Run(t *testing.T, open func(t testing.TB) backlog.Store) {
	for _, c := range Cases {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, open) })
	}
}

// Case is one of the tests.
type Case struct {
	Name  string
	Check func(t testing.TB, open func(t testing.TB) backlog.Store)
}

// Cases are the tests of Run, for those who call them one at a time.
var Cases = []Case{
	{"numbers", numbers}, {"results", results}, {"late", late}, {"doubts", doubts}, {"claims", claims}, {"between", between},
	{"returns", returns}, {"rests", rests}, {"paused", paused}, {"reads", reads},
	{"givenUp", givenUp}, {"back", back}, {"looks", looks}, {"unknown", unknown},
	{"adds", adds}, {"order", order}, {"opens", opens}, {"counts", counts}, {"cancels", cancels}, {"again", again},
	{"notes", notes}, {"removes", removes}, {"workers", workers}, {"cancelled", cancelled},
}

// bench is one backlog in a store.
type bench struct {
	testing.TB
	backlog.Store
	id int64
}

// at makes a backlog with n requests, "1" to n, of lane 0.
func at(t testing.TB, store backlog.Store, n int) *bench {
	t.Helper()
	b := &bench{t, store, 0}
	name := t.Name()
	b.do(store.Create(b.ctx(), name, "text"))
	i, err := store.Find(b.ctx(), name)
	b.do(err)
	b.id = i.ID
	b.add(n, 0)
	return b
}

func (b *bench) add(n int, lane int32) {
	b.Helper()
	var all []backlog.Entry
	for i := range n {
		all = append(all, backlog.Entry{ID: fmt.Sprintf("%d/%d", lane, i+1), Data: []byte{byte(i)}, Lane: lane, Place: 1000})
	}
	added, err := b.Enqueue(b.ctx(), b.id, all)
	b.do(err)
	if added != n {
		b.Errorf("%d of %d were added", added, n)
	}
}

func (b *bench) ctx() context.Context {
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	b.Cleanup(cancel)
	return c
}

func (b *bench) do(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// register makes a worker.
func (b *bench) register() *worker {
	b.Helper()
	beat, err := b.Register(b.ctx(), b.id, "host", 7)
	b.do(err)
	return &worker{b, beat}
}

// worker takes turns of the right number.
type worker struct {
	*bench
	backlog.Beat
}

// turn fills in the worker and its beat, and expects the turn to fit.
func (w *worker) turn(t backlog.Turn) backlog.Outcome {
	w.Helper()
	t.Worker, t.Beat = w.Beat.Worker, w.Beat.Beat
	o, err := w.Turn(w.ctx(), w.id, &t)
	w.do(err)
	if !o.Fits {
		w.Fatalf("the turn %d does not fit", t.Beat)
	}
	w.Beat.Beat++
	return o
}

// claim takes n requests of lane 0 from the front.
func (w *worker) claim(n int) []backlog.Claimed {
	w.Helper()
	o := w.turn(backlog.Turn{Claims: []backlog.Claim{{N: n, From: front}}})
	return sorted(o.Claimed)
}

// front is before all places.
var front = backlog.Place{}

func sorted(all []backlog.Claimed) []backlog.Claimed {
	slices.SortFunc(all, func(a, b backlog.Claimed) int {
		if a.Place.Place != b.Place.Place {
			return int(a.Place.Place - b.Place.Place)
		}
		return int(a.Seq - b.Seq)
	})
	return all
}

func ids(all []backlog.Claimed) (list []string) {
	for _, c := range all {
		list = append(list, c.ID)
	}
	return list
}

// expect compares the requests that were claimed, and ends the test if they are others.
func (b *bench) expect(what string, got []backlog.Claimed, want ...string) {
	b.Helper()
	if !slices.Equal(ids(got), want) {
		b.Fatalf("%s: %q, expected %q", what, ids(got), want)
	}
}

// ended returns the results, by ID.
func (b *bench) ended() map[string]backlog.Result {
	b.Helper()
	all, err := b.Results(b.ctx(), b.id, 0, 1000)
	b.do(err)
	m := map[string]backlog.Result{}
	for _, r := range all {
		if _, twice := m[r.ID]; twice {
			b.Errorf("%s has two results", r.ID)
		}
		m[r.ID] = r
	}
	return m
}

func end(c backlog.Claimed, line string) backlog.End {
	return backlog.End{Seq: c.Seq, Attempts: c.Attempts + 1, State: uint8(backlog.Done), Line: []byte(line)}
}
