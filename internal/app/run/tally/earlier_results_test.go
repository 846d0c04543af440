package tally

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// The results of earlier runs decide whether a request is sent again. The last dead letter and the last answer of an
// id count.
func TestResultsOfEarlierRuns(t *testing.T) {
	done, cut := format.Entry{State: "done"}, format.Entry{State: "done", Finish: meter.Length}
	expired, refused := format.Entry{State: "expired"}, format.Entry{State: "dead", Class: "refused"}
	failed := format.Entry{State: "dead", Status: 500}
	type says struct{ hasResult, isDone, wasRefused, again, skipped bool }
	for _, c := range []struct {
		name    string
		again   string // the dead letters that are sent again
		results []format.Entry
		want    says
	}{
		{"none", "all", nil, says{}},
		{"done", "all", []format.Entry{done}, says{hasResult: true, isDone: true, skipped: true}},
		{"expired", "failed", []format.Entry{expired}, says{hasResult: true, skipped: true}},
		{"expired, again", "expired", []format.Entry{expired}, says{hasResult: true, again: true}},
		{"refused", "failed", []format.Entry{refused}, says{hasResult: true, wasRefused: true, skipped: true}},
		{"refused, again", "refused", []format.Entry{refused}, says{hasResult: true, wasRefused: true, again: true}},
		{"by its status", "failed", []format.Entry{failed}, says{hasResult: true, again: true}},
		{"refused, then failed", "refused", []format.Entry{refused, failed}, says{hasResult: true, skipped: true}},
		{"failed, then refused", "refused", []format.Entry{failed, refused},
			says{hasResult: true, wasRefused: true, again: true}},
		{"failed, then done", "all", []format.Entry{failed, done}, says{hasResult: true, isDone: true, skipped: true}},
		{"cut", "all", []format.Entry{cut}, says{hasResult: true, isDone: true, skipped: true}},
		{"cut, again", "length", []format.Entry{cut}, says{hasResult: true, isDone: true, again: true}},
		{"cut, then whole", "length", []format.Entry{cut, done}, says{hasResult: true, isDone: true, skipped: true}},
		{"cut, then in vain", "length", []format.Entry{cut, refused}, says{hasResult: true, isDone: true, again: true}},
	} {
		set, err := format.ParseDead(c.again)
		if err != nil {
			t.Fatal(err)
		}
		n, h := New(set, figures{}), format.HashOf("x")
		for _, e := range c.results {
			e.ID = "x"
			n.Note(e)
		}
		got := says{n.HasResult("x"), n.IsDone(h), n.WasRefused("x"), n.IsAgain("x"), n.HasEnded("x")}
		if got != c.want || n.GoesAgain(h) != c.want.again || (n.Earlier(h) != nil) != c.want.skipped {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A request that ended is told from another with its id. A dead letter after an answer does not change which request it
// was: that of the answer.
func TestAnotherRequestWithTheID(t *testing.T) {
	for _, c := range []struct {
		results []format.Entry
		other   bool // than a request of digest 5
	}{
		{[]format.Entry{{State: "dead", Digest: "5"}}, false}, {[]format.Entry{{State: "dead", Digest: "6"}}, true},
		{[]format.Entry{{State: "dead", Digest: "6"}, {State: "dead", Digest: "5"}}, false},
		{[]format.Entry{{State: "dead", Digest: "6"}, {State: "done", Digest: "5"}}, false},
		{[]format.Entry{{State: "done", Digest: "5"}, {State: "dead", Digest: "6"}}, false},
		{[]format.Entry{{State: "done"}}, false},
	} {
		n := New(0, figures{})
		for _, e := range c.results {
			e.ID = "x"
			n.Note(e)
		}
		is := n.Seen(&format.Request{ID: "x", Line: 3, Hash: format.HashOf("x"), Digest: "5"}, false, nil)
		if !is.Ended || is.Other != c.other || is.Right == c.other {
			t.Errorf("%+v: %+v", c.results, is)
		}
	}
}

// A line that is no request is noted once, and the next run knows it.
func TestALineIsSkippedOnce(t *testing.T) {
	n := New(0, figures{})
	if !n.SkipLine("line 1") || n.SkipLine("line 1") || !n.SkipLine("line 2") {
		t.Error("the first time of each line is the only one")
	}
	if !n.HasResult("line 1") || !n.HasEnded("line 1") || n.HasResult("line 3") {
		t.Error("a line that was skipped has an end")
	}
}

// Each way to end counts in one place, and what the files have when they are read back leaves nothing lost.
func TestEndsAddUp(t *testing.T) {
	n := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	n.Pace.Begin(time.Now(), nil)
	request := func(id string, line int) *format.Request {
		q := &format.Request{ID: id, Line: line, Hash: format.HashOf(id), Cost: limit.One, Digest: "0000000000000001"}
		n.Seen(q, false, nil)
		n.Read(q)
		n.Totals.Offered++
		n.Uses[0].Remaining[limit.Requests]++
		return q
	}
	model := func(q *format.Request) *format.Request {
		q.Estimate.Model = "m"
		return q
	}
	n.Ended([]End{
		{Request: request("done", 1), State: pool.Done, Written: true, Late: true, Partly: true, Repeat: true},
		{Request: model(request("cut", 2)), State: pool.Done, Written: true, Length: true},
		{Request: request("bare", 3), State: pool.Dead, Written: true, Class: format.DeadRefused, Bare: true,
			Reason: "b"},
		{Request: request("host", 4), State: pool.Dead, Written: true, Class: format.DeadRedirected, KeyHost: true,
			Reason: "a"},
		{Request: request("lapsed", 5), State: pool.Expired, Written: true},
		{Request: request("unwritten", 6), State: pool.Done},
	}, true)
	request("left", 7)
	got, bad := n.Totals, n.Bad
	ends := []int{got.Done, got.Late, got.Partly, got.Length, got.Repeats, got.Dead, got.Expired, got.Unwritten}
	if want := []int{2, 1, 1, 1, 1, 2, 1, 1}; !slices.Equal(ends, want) {
		t.Errorf("%v, want %v", ends, want)
	}
	if bad.Bare != 1 || bad.KeyHost != 1 || bad.Lapsed != 1 || bad.Dead[format.DeadRefused] != 1 ||
		bad.Dead[format.DeadRedirected] != 1 {
		t.Errorf("%+v", bad)
	}
	if len(n.Models) != 1 || n.Models["m"].Done != 1 {
		t.Errorf("models %+v", n.Models)
	}
	if most, of, all := n.DeadBecause(); most != "a" || of != 1 || all != 2 {
		t.Errorf("%d of %d for %q", of, all, most)
	}
	if left := n.Uses[0].Remaining[limit.Requests]; left != 1 {
		t.Errorf("%d remain", left)
	}
	if end, err := n.Close(1); err != nil || end.Left != 2 || end.Lost != 0 {
		t.Errorf("%d left, %d lost: %v", end.Left, end.Lost, err)
	}
	if _, err := n.Close(2); err == nil {
		t.Error("more are left than have no result, and that is no error")
	}
	request("gone astray", 8)
	if end, err := n.Close(1); err != nil || end.Lost != 1 {
		t.Errorf("%d lost: %v", end.Lost, err)
	}
}

// An attempt that was written counts, with its times. A refusal counts also where its status is another.
func TestAttempts(t *testing.T) {
	n := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	began := time.Unix(1_800_000_000, 0)
	for i, c := range []struct {
		written bool
		status  int
		result  limit.Result
		refused bool
	}{
		{true, 200, limit.Accepted, false}, {false, 0, limit.Unsent, false}, {true, 429, limit.Accepted, true},
		{true, 403, limit.Limited, true},
	} {
		res := &sending.Response{Written: c.written, Status: c.status}
		res.Began, res.Ended = began.Add(time.Duration(i)*time.Second), began.Add(time.Duration(2*i+1)*time.Second)
		if refused := n.Sent(0, 0, res, c.result, limit.One); refused != c.refused {
			t.Errorf("%+v: refused %v", c, refused)
		}
	}
	spent := n.Uses[0].Spent[limit.Requests]
	if n.Totals.Sends != 3 || n.Totals.Cost != 3 || n.Totals.Rejected != 2 || spent != 3 {
		t.Errorf("%+v, spent %v", n.Totals, n.Uses[0].Spent)
	}
	if !n.First.Equal(began) || !n.Final.Equal(began.Add(7*time.Second)) || n.Took.Seconds() != (1.+3+4)/3 {
		t.Errorf("first %v, last %v, each %v s", n.First, n.Final, n.Took.Seconds())
	}
}

// A page after the first is one more request of the input. One that an earlier run ended is skipped.
func TestTurnedPages(t *testing.T) {
	n := New(0, figures{})
	n.Note(format.Entry{ID: "dead", State: "dead", Class: "outage"})
	for i, c := range []struct {
		id   string
		goes bool
	}{{"dead", false}, {"new", true}} {
		q := &format.Request{ID: c.id, Hash: format.HashOf(c.id), Line: 3, Cost: limit.One}
		if goes := n.Turned(q); goes != c.goes || n.Totals.Input != i+1 || n.Totals.Pages != i+1 || n.ledger[q.Hash].line() != 3 {
			t.Errorf("%s goes: %v, with %+v", c.id, goes, n.Totals)
		}
	}
	if left := n.Uses[0].Remaining; left != limit.One || n.Totals.SkippedDead != 1 || n.Bad.Dead[format.DeadOutage] != 1 {
		t.Errorf("%v remain, %d skipped", left, n.Totals.SkippedDead)
	}
}

// What ended in an earlier run is not to be sent, and not left.
func TestEndedBefore(t *testing.T) {
	n := New(0, figures{})
	n.Totals = Totals{Input: 20, SkippedDone: 1, SkippedDead: 2, SkippedExpired: 4, Done: 1, Offered: 1}
	if n.Totals.Before() != 7 || n.Totals.NotEnded() != 12 {
		t.Errorf("%d ended before, %d have not ended", n.Totals.Before(), n.Totals.NotEnded())
	}
	n.Elsewhere = true // the files are not here to be compared
	if end, err := n.Close(0); err != nil || end.Left != 12 {
		t.Errorf("%d are left, %v", end.Left, err)
	}
}

// At the end the files are read back. A request that is in none of them is lost, unless it is left.
func TestReadBack(t *testing.T) {
	n := New(0, figures{})
	for line, id := range []string{"done", "dead", "none"} {
		q := &format.Request{ID: id, Hash: format.HashOf(id), Line: line + 1}
		n.Seen(q, false, nil)
		n.Read(q)
		n.Totals.Offered++
	}
	n.Back(format.HashOf("done"))
	n.Back(format.HashOf("dead"))
	n.Back(format.HashOf("not in the input"))
	if end, err := n.Close(1); err != nil || end.Lost != 0 || end.Left != 1 {
		t.Errorf("%d left, %d lost, %v", end.Left, end.Lost, err)
	}
	if end, err := n.Close(0); err != nil || end.Lost != 1 {
		t.Errorf("%d lost, %v", end.Lost, err)
	}
}

// The state of an id has three parts, and a new value of one leaves the others.
func TestPartsOfAStanding(t *testing.T) {
	s := standing(inOut).dead(format.DeadLength).of(digestMask).at(1 << 20)
	for _, c := range []struct {
		is    standing
		class format.DeadClass
		bits  uint64
		line  int
	}{
		{s, format.DeadLength, digestMask, 1 << 20}, {s.at(1), format.DeadLength, digestMask, 1},
		{s.at(1).at(2), format.DeadLength, digestMask, 2}, {s.of(5), format.DeadLength, 5, 1 << 20},
		{s.of(5).of(2).of(0), format.DeadLength, 2, 1 << 20},
		{s.dead(format.DeadOutage), format.DeadOutage, digestMask, 1 << 20},
	} {
		if !c.is.has(inOut) || !c.is.has(inDead) || c.is.has(inExpired) || c.is.class() != c.class ||
			c.is.request() != c.bits || c.is.line() != c.line {
			t.Errorf("%x: class %v, digest %x, line %d; want %+v", uint64(c.is), c.is.class(), c.is.request(), c.is.line(), c)
		}
	}
}
