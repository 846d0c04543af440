package journal

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A new limit in the middle of a run keeps its sends from then on, over compactions and restarts. A
// shorter one after it changes nothing, and no window is so long that an instant overflows.
func TestKeepFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Second)
	one := func(id string, at time.Duration) {
		t.Helper()
		n, err := j.Send(Send{ID: id, Key: "A", Cost: limit.Cost{limit.Requests: 1}}, epoch.Add(at))
		if err == nil {
			err = j.answer(n, Answer{Result: limit.Accepted, Counts: epoch.Add(at + time.Second)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	one("first", 0)
	j.KeepFor(time.Hour)
	j.KeepFor(time.Minute)
	if kept := j.Kept(); kept != time.Hour {
		t.Errorf("kept for %v, want the longer of both, an hour", kept)
	}
	j.compact = 1
	one("second", 10*time.Minute) // compacts before it
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, h := open(t, path, 20*time.Minute, time.Second)
	if len(h.Sends) != 2 {
		t.Errorf("20 min later %d sends are known, want 2: %+v", len(h.Sends), h.Sends)
	}
	j.KeepFor(1 << 62)
	j.compact = 1
	one("third", 2*time.Hour)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, h = open(t, path, 2*360*24*time.Hour, time.Second); len(h.Sends) != 3 {
		t.Errorf("kept for as long as can be: %d sends, want 3: %+v", len(h.Sends), h.Sends)
	}
	if _, h = open(t, path, 3*366*24*time.Hour, time.Second); len(h.Sends) != 0 {
		t.Errorf("after three years: %+v, want none", h.Sends)
	}
}

// An answer counts if it is to a send that is known, and says how that ended; else the send is
// open.
func TestAnswersThatSayNothing(t *testing.T) {
	const head = `{"run":"2027-01-15T08:00:00.000Z","version":3}
{"send":1,"id":"a","attempt":1,"key":"A","cost":1,"at":1800000000000000000}
`
	for line, want := range map[string][2]int{ // sends, unanswered
		`{"answer":1,"result":"accepted","at":1800000000100000000}`: {1, 0},
		`{"answer":1,"result":"no word","at":1800000000100000000}`:  {0, 1},
		`{"answer":2,"result":"accepted","at":1800000000100000000}`: {0, 1},
		`{"answer":2,"result":"no word","at":1800000000100000000}`:  {0, 1},
	} {
		h, err := read(strings.NewReader(head+line+"\n"), "j")
		if err != nil || len(h.Sends) != want[0] || len(h.unanswered) != want[1] {
			t.Errorf("%s: %v, %d sends and %d without an answer, want %v", line, err, len(h.Sends), len(h.unanswered), want)
		}
	}
}

// When a process was last alive is the latest of its records; but of the first version, where the
// wall clock may have been set back, the last.
func TestLastAlive(t *testing.T) {
	for version, want := range map[int]int64{1: 1_800_000_005, 2: 1_800_000_009, 3: 1_800_000_009} {
		text := fmt.Sprintf(`{"run":"2027-01-15T08:00:00.000Z","version":%d}`, version)
		if version == 1 {
			text = `{"run":"2027-01-15T08:00:00.000Z"}`
		}
		for i, second := range []int{2, 9, 5} {
			text += fmt.Sprintf("\n"+`{"send":%d,"id":"a","attempt":1,"key":"A","cost":1,"at":%d}`, i+1, (1_800_000_000+second)*1e9)
		}
		if h, err := read(strings.NewReader(text+"\n"), "j"); err != nil || h.latest != want*1e9 {
			t.Errorf("version %d: %v, last alive at %d, want %d", version, err, h.latest, want*1e9)
		}
	}
}

// A record with further bytes in its line, even one, is refused.
func TestRecordsWithATail(t *testing.T) {
	for tail, fits := range map[string]bool{"": true, " \t": true, "x": false, "}": false, ` {"send":2}`: false} {
		if _, err := read(strings.NewReader(`{"doubt":"d", "key":"k"}`+tail+"\n{\"doubt\":\"d\"}\n"), "j"); (err == nil) != fits {
			t.Errorf("%q behind a record: %v", tail, err)
		}
	}
}

// The journal is written anew before a send, and not for what only says how one ended.
func TestCompactsBeforeASend(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "journal"), 0, time.Second)
	times := 0
	j.c.Before = func() error { times++; return nil }
	n, err := j.Send(Send{ID: "a", Key: "A", Cost: limit.Cost{limit.Requests: 1}}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	j.compact = 1
	if err := j.answer(n, Answer{Result: limit.Accepted, Counts: epoch.Add(time.Second)}); err != nil || times != 0 {
		t.Errorf("for an answer: %v, written anew %d times", err, times)
	}
	if _, err := j.Send(Send{ID: "b", Key: "A", Cost: limit.Cost{limit.Requests: 1}}, epoch.Add(2*time.Second)); err != nil || times != 1 {
		t.Errorf("for a send: %v, written anew %d times", err, times)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
