package batch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

var epoch = time.Unix(1_800_000_000, 0)

func open(t *testing.T, path string, at time.Duration, keep time.Duration, ended ...string) (*journal, *history) {
	t.Helper()
	j, h, err := openJournal(path, epoch.Add(at), keep, 10*time.Second, false,
		func(id string) bool { return slices.Contains(ended, id) }, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return j, h
}

func TestJournalAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	must := func(n int64, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	j, h := open(t, path, 0, time.Minute)
	if h.last != 0 || len(h.sends) != 0 || len(h.open) != 0 {
		t.Fatalf("a new journal has %+v", h)
	}
	for _, c := range []struct {
		id     string
		nonce  uint64
		result limit.Result
		counts time.Duration
		doubt  string
	}{
		{"done", 11, limit.Accepted, 1100 * time.Millisecond, ""},
		{"retried", 12, limit.Failed, 1200 * time.Millisecond, ""},
		{"timed-out", 13, limit.Unknown, 6 * time.Second, "timed-out"},
		{"unsent", 14, limit.Unsent, 1400 * time.Millisecond, ""},
		{"result-lost", 15, limit.Accepted, 1500 * time.Millisecond, ""},
	} {
		n := must(j.send(record{ID: c.id, Attempt: 1, Key: "A", Nonce: c.nonce, Cost: 2}, at(time.Second)))
		if err := j.answer(n, c.result, at(c.counts), time.Time{}, c.doubt, nil); err != nil {
			t.Fatal(err)
		}
	}
	n := must(j.send(record{ID: "limited", Attempt: 1, Key: "B", Cost: 1}, at(time.Second)))
	if err := j.answer(n, limit.Limited, at(1600*time.Millisecond), at(30*time.Second), "", nil); err != nil {
		t.Fatal(err)
	}
	must(j.send(record{ID: "in flight", Attempt: 2, Key: "A", Nonce: 99, Cost: 3}, at(2*time.Second)))
	// The process dies here, in the middle of a line.
	if _, err := j.file.f.Write([]byte(`{"send":8,"id":"torn`)); err != nil {
		t.Fatal(err)
	}

	check := func(restart string, h *history, unanswered bool) {
		t.Helper()
		var counts []time.Duration
		for _, s := range h.sends {
			counts = append(counts, time.Unix(0, s.counts).Sub(epoch))
		}
		// In flight: it was sent at 2 s, its process was dead 10 s later at the latest, and 5 s later it had arrived.
		want := []time.Duration{1100e6, 1200e6, 1500e6, 1600e6, 6e9, 17e9}
		if !slices.Equal(counts, want) {
			t.Errorf("%s: sends count at %v, want %v", restart, counts, want)
		}
		if h.nonces["A"] != 99 || h.holds["B"] != at(30*time.Second).UnixNano() {
			t.Errorf("%s: nonces %v, holds %v", restart, h.nonces, h.holds)
		}
		for id, want := range map[string]bool{"in flight": true, "timed-out": true, "result-lost": true, "done": false, "unsent": false, "limited": false, "retried": false, "torn": false} {
			if _, doubt := h.doubts[id]; doubt != want {
				t.Errorf("%s: %s in doubt: %v", restart, id, doubt)
			}
		}
		if _, open := h.open["in flight"]; open != unanswered || len(h.open) > 1 {
			t.Errorf("%s: unanswered: %v", restart, h.open)
		}
	}
	_, h = open(t, path, 20*time.Second, time.Minute, "done")
	check("first restart", h, true)
	// That one died as well, before it sent anything.
	_, h = open(t, path, 21*time.Second, time.Minute, "done")
	check("second restart", h, false)
	// Later no window reaches back; doubts and nonces stay.
	_, h = open(t, path, 10*time.Minute, time.Minute, "done", "timed-out")
	if _, doubt := h.doubts["in flight"]; len(h.sends) != 0 || h.nonces["A"] != 99 || !doubt || len(h.doubts) != 2 {
		t.Errorf("ten minutes later: %+v", h)
	}
}

// What a request cost in the end counts after a restart, and what it was admitted with where nobody said.
func TestJournalKeepsActualTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Minute)
	estimate := record{Attempt: 1, Key: "A", Cost: 1, Tokens: [3]int64{100, 900, 1000}}
	for _, actual := range []*limit.Cost{{limit.Requests: 1, limit.Input: 101, limit.Output: 7, limit.Tokens: 108}, nil} {
		n, err := j.send(estimate, epoch.Add(time.Second))
		if err == nil {
			err = j.answer(n, limit.Accepted, epoch.Add(2*time.Second), time.Time{}, "", actual)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for restart := range 2 { // the second reads what the first has made of it
		_, h := open(t, path, 20*time.Second, time.Minute)
		var costs []limit.Cost
		for _, s := range h.sends {
			costs = append(costs, s.cost)
		}
		want := []limit.Cost{
			{limit.Requests: 1, limit.Input: 101, limit.Output: 7, limit.Tokens: 108},
			{limit.Requests: 1, limit.Input: 100, limit.Output: 900, limit.Tokens: 1000},
		}
		if !slices.Equal(costs, want) {
			t.Errorf("restart %d: %v, want %v", restart+1, costs, want)
		}
	}
}

// What is in flight while the journal is compacted is still answered, or still unanswered, afterwards.
func TestJournalCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Second)
	send := func(id string, at time.Duration) int64 {
		n, err := j.send(record{ID: id, Key: "A", Nonce: uint64(at), Cost: 1}, epoch.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	answer := func(n int64, at time.Duration, doubt string) {
		if err := j.answer(n, limit.Accepted, epoch.Add(at), time.Time{}, doubt, nil); err != nil {
			t.Fatal(err)
		}
	}
	answer(send("old", 1), 2, "")
	answer(send("redirected", 1), 2, "redirected")
	answer(send("recent", 1), 9500*time.Millisecond, "")
	inFlight, dies := send("in flight", 9e9), send("dies", 9e9)
	synced := false
	j.before = func() error { synced = true; return nil }
	j.compact = 1
	answer(send("now", 10e9), 10e9+1, "")
	if !synced {
		t.Error("records were dropped before their results were made durable")
	}
	answer(inFlight, 10e9+2, "")
	_, h := open(t, path, 10e9+3, time.Second, "recent", "now", "in flight")
	if _, ok := h.open["dies"]; !ok || len(h.open) != 1 || len(h.sends) != 4 || h.nonces["A"] != 10e9 {
		t.Errorf("after a compaction, with send %d unanswered: %+v", dies, h)
	}
	if _, ok := h.doubts["redirected"]; !ok {
		t.Error("the compaction forgot a doubt")
	}
	if info, err := os.Stat(path + ".new"); err == nil {
		t.Errorf("%s is left", info.Name())
	}
}

// A run with a short window between two with long ones: what was sent before it still counts in the last.
func TestJournalKeepsWhatLongLimitsNeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Hour)
	n, err := j.send(record{ID: "a", Key: "A", Cost: 1}, epoch)
	if err == nil {
		err = j.answer(n, limit.Accepted, epoch.Add(time.Second), time.Time{}, "", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		want := 1
		if at > time.Hour {
			want = 0
		}
		if _, h := open(t, path, at, []time.Duration{time.Second, time.Second, time.Hour, time.Hour}[i], "a"); len(h.sends) != want {
			t.Errorf("after %v: %+v, want %d sends", at, h.sends, want)
		}
	}
}

// failing is a file on a disk that is full from some byte on.
type failing struct {
	bytes.Buffer
	room int
	err  error
}

var errFull = errors.New("no space left on device")

func (f *failing) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.Buffer.Write(b[:n])
	f.room -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}
func (f *failing) Sync() error { return f.err }
func (f *failing) Truncate(size int64) error {
	if f.err == nil {
		f.Buffer.Truncate(int(size))
	}
	return f.err
}
func (f *failing) Close() error { return nil }

// A line is there as a whole or not at all, and after half of one that cannot be undone nothing follows.
func TestLineFileFullDisk(t *testing.T) {
	f := &failing{room: 10}
	l := &lineFile{name: "out", f: f, regular: true}
	for _, c := range []struct {
		line, content string
		err           error
	}{
		{"first\n", "first\n", nil},
		{"too long\n", "first\n", errFull},
		{"x\n", "first\n", errFull},
	} {
		if err := l.append([]byte(c.line)); !errors.Is(err, c.err) || f.String() != c.content {
			t.Errorf("append %q: %v, content %q, want %v, %q", c.line, err, f.String(), c.err, c.content)
		}
	}
	f = &failing{room: 3, err: errors.New("read-only file system")}
	l = &lineFile{name: "out", f: f, regular: true}
	if err := l.append([]byte("first\n")); !errors.Is(err, errFull) {
		t.Error(err)
	}
	f.room = 100
	if err := l.append([]byte("second\n")); !errors.Is(err, errFull) || f.String() != "fir" {
		t.Errorf("after half a line: %v, content %q", err, f.String())
	}
}

const sample = `{"run":"2027-01-15T08:00:00.000Z","timeout":10000000000}
{"key":"A","nonce":7}
{"doubt":"d"}
{"send":1,"id":"a","attempt":1,"key":"A","nonce":8,"cost":1,"at":1800000000000000000}
{"send":2,"id":"b","attempt":1,"key":"A","nonce":9,"cost":1,"at":1800000000000000001}
{"answer":1,"result":"accepted","at":1800000000100000000}
`

// Wherever a crash cuts the journal, all whole lines hold.
func TestJournalTorn(t *testing.T) {
	for cut := range len(sample) + 1 {
		h, err := readJournal(strings.NewReader(sample[:cut]), "j", 0)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		whole := strings.Count(sample[:cut], "\n")
		if want := []uint64{0, 0, 7, 7, 8, 9, 9}[whole]; h.nonces["A"] != want {
			t.Errorf("cut after %d lines: nonce %d, want %d", whole, h.nonces["A"], want)
		}
	}
	_, err := readJournal(strings.NewReader("{\"send\":1}\nnotes of mine\n"), "j", 0)
	if err == nil || !strings.Contains(err.Error(), "j:2: no journal of paceline") {
		t.Errorf("somebody's notes: %v", err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(sample), int64(1800000000050000000))
	f.Add([]byte("{\"answer\":-1,\"result\":\"unknown\"}\n{\"send\":9223372036854775807,\"at\":-9223372036854775808}\n\x00\x00"), int64(-1))
	f.Add([]byte("{\"run\":\"\",\"timeout\":-5}\n{}\nnull\n[]\n"), int64(0))
	f.Fuzz(func(t *testing.T, text []byte, now int64) {
		h, err := readJournal(bytes.NewReader(text), "j", now-int64(time.Minute))
		if err != nil {
			return
		}
		unanswered := len(h.unanswered)
		h.died(now, now-int64(time.Minute))
		for i, s := range h.sends {
			if i > 0 && s.counts < h.sends[i-1].counts {
				t.Fatalf("sends are out of order: %v", h.sends)
			}
		}
		if len(h.open) > unanswered || len(h.doubts) < len(h.open) {
			t.Fatalf("%d unanswered, %d ids, %d in doubt", unanswered, len(h.open), len(h.doubts))
		}
	})
}

// The results of a run that was killed anywhere are read as far as they are whole; what is not ours is not touched.
func TestResultsTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	a := (&Result{ID: "a", State: "done", Attempts: 1}).line()
	b := (&Result{ID: `b"é`, State: "expired"}).line()
	whole := slices.Concat(a, b)
	for cut := range len(whole) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00"} {
			if err := os.WriteFile(path, append(slices.Clone(whole[:cut]), tail...), 0o644); err != nil {
				t.Fatal(err)
			}
			var ids []string
			l, f, err := openResults(path, form{Format: Plain{}}, peeked{}, func(e entry, _ int64) { ids = append(ids, e.ID) })
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if err := l.append(b); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
			l.close()
			n := bytes.Count(whole[:cut], []byte("\n"))
			if want := slices.Concat(slices.Concat([][]byte{a, b}[:n]...), b); len(ids) != n || !bytes.Equal(got, want) {
				t.Fatalf("cut at %d: ids %q, then content %q, want %q", cut, ids, got, want)
			}
		}
	}
	for _, foreign := range []string{"notes", "notes\n", "{\"url\":\"http://h/\"}\n", string(a) + "notes", "{\"id\":\"x\",\"state\":\"waiting\"}\n"} {
		if err := os.WriteFile(path, []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := openResults(path, form{Format: Plain{}}, peeked{}, func(entry, int64) {})
		if got, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "is this the right file?") || string(got) != foreign {
			t.Errorf("%q: %v, and then the file has %q", foreign, err, got)
		}
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	l, _, err := openResults(path, form{Format: Plain{}}, peeked{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openResults(path, form{Format: Plain{}}, peeked{}, nil); err == nil || !strings.Contains(err.Error(), "is in use by another run") {
		t.Errorf("a second run on the same file: %v", err)
	}
	l.close()
	if l, _, err = openResults(path, form{Format: Plain{}}, peeked{}, nil); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
	l.close()
}

// The restart's promise: with what the dead process sent, no window of arrivals holds more than the limit. Instants are
// relative to the restart.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		sends []sent // counts is relative here
		free  int    // how many may go at once
		then  time.Duration
	}{
		{"nothing", nil, 3, 1001200 * time.Microsecond},
		{"long ago", []sent{{key: "A", cost: limit.Cost{limit.Requests: 1}, counts: -2e9, result: limit.Accepted}}, 3, 1001200 * time.Microsecond},
		{"half a second ago", []sent{{key: "A", cost: limit.Cost{limit.Requests: 2}, counts: -500e6, result: limit.Accepted}}, 1, 501200 * time.Microsecond},
		{"on another key", []sent{{key: "Z", cost: limit.Cost{limit.Requests: 3}, counts: -1, result: limit.Accepted}}, 3, 1001200 * time.Microsecond},
		{"unanswered, may arrive for 5 s", []sent{{key: "A", cost: limit.Cost{limit.Requests: 3}, counts: 5e9, result: limit.Unknown}}, 0, 6001200 * time.Microsecond},
		{"timed out, bound passed", []sent{{key: "A", cost: limit.Cost{limit.Requests: 3}, counts: -500e6, result: limit.Unknown}}, 0, 501200 * time.Microsecond},
		{"refused, which counts", []sent{{key: "A", cost: limit.Cost{limit.Requests: 3}, counts: -500e6, result: limit.Limited}}, 0, 501200 * time.Microsecond},
		{"clock set back by an hour", []sent{{key: "A", cost: limit.Cost{limit.Requests: 3}, counts: 3600e9, result: limit.Accepted}}, 0, (15 * time.Second) + 1001200*time.Microsecond},
	} {
		r, err := New(Config{Limits: []Rate{{N: 3, Per: time.Second, Text: "3/s"}}, Timeout: 10 * time.Second, Keys: []Key{{"A", ""}}})
		if err != nil {
			t.Fatal(err)
		}
		r.epoch, r.keep = epoch, time.Hour
		r.history = &history{sends: slices.Clone(c.sends)}
		for i := range r.history.sends {
			r.history.sends[i].counts += epoch.UnixNano()
		}
		if err := r.newPool(); err != nil {
			t.Fatal(err)
		}
		l := r.limiters[0][0]
		free := 0
		for l.Ready(0, limit.One) == 0 {
			l.Settle(0, l.Admit(0, limit.One), limit.Outcome{Result: limit.Accepted})
			free++
		}
		if next := l.Ready(0, limit.One); free != c.free || next != mono.Time(c.then) {
			t.Errorf("%s: %d go at once and the next at %v, want %d and %v", c.name, free, next, c.free, c.then)
		}
	}
}
