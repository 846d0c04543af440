package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

var epoch = time.Unix(1_800_000_000, 0)

// answer records how send n ended.
func (j *Journal) answer(n int64, a Answer) error { return j.Answers([]Answered{{n, a}}) }

// clock is of a machine that was booted an hour before epoch, and has not slept.
func clock(at time.Duration) func() (time.Time, boottime.Reading) {
	return func() (time.Time, boottime.Reading) {
		return epoch.Add(at), boottime.Reading{Boot: "b", Up: time.Hour + at, Awake: time.Hour + at}
	}
}

func open(t *testing.T, path string, at time.Duration, keep time.Duration, ended ...string) (*Journal, *History) {
	t.Helper()
	j, h, err := Open(Config{Path: path, Keep: keep, Timeout: 10 * time.Second, Clock: clock(at),
		Forget: func(id string) bool { return slices.Contains(ended, id) }, Before: func() error { return nil }}, epoch.Add(at))
	if err != nil {
		t.Fatal(err)
	}
	return j, h
}

// A run can continue from the sends that replace a lost journal (Full). The wall clock may be
// a little behind the machine's each time.
func TestGoneAndGoneOnWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for n := range 4 {
		slow := time.Duration(n) * time.Microsecond
		clock := func() (time.Time, boottime.Reading) {
			wall, now := clock(0)()
			return wall.Add(-slow), now
		}
		j, h, err := Open(Config{Path: path, Keep: time.Minute, Timeout: time.Second, Clock: clock, Full: []Sent{{Key: "a", Counts: epoch.UnixNano(), Result: limit.Unknown}},
			Forget: func(string) bool { return false }, Before: func() error { return nil }}, epoch.Add(-slow))
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Sends) != 1 || h.Sends[0].Key != "a" {
			t.Errorf("%d: %+v", n, h.Sends)
		}
		if n == 0 && h.Last != 1 {
			t.Errorf("one was sent, and the latest is number %d", h.Last)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
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
	if h.Last != 0 || len(h.Sends) != 0 || len(h.Open) != 0 {
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
		n := must(j.Send(Send{ID: c.id, Attempt: 1, Key: "A", Nonce: c.nonce, Cost: limit.Cost{limit.Requests: 2}}, at(time.Second)))
		if err := j.answer(n, Answer{Result: c.result, Counts: at(c.counts), Doubt: c.doubt}); err != nil {
			t.Fatal(err)
		}
	}
	n := must(j.Send(Send{ID: "limited", Attempt: 1, Key: "B", Cost: limit.Cost{limit.Requests: 1}}, at(time.Second)))
	if err := j.answer(n, Answer{Result: limit.Limited, Counts: at(1600 * time.Millisecond), Hold: at(30 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	must(j.Send(Send{ID: "in flight", Attempt: 2, Key: "A", Nonce: 99, Cost: limit.Cost{limit.Requests: 3}}, at(2*time.Second)))
	// The process dies here, in the middle of a line.
	if err := j.file.Append([]byte(`{"send":8,"id":"torn`)); err != nil {
		t.Fatal(err)
	}

	check := func(restart string, h *History, unanswered bool) {
		t.Helper()
		var counts []time.Duration
		for _, s := range h.Sends {
			counts = append(counts, time.Unix(0, s.Counts).Sub(epoch))
		}
		// In flight: it was sent at 2 s, its process was dead 10 s later at the latest, and 5 s
		// later it had arrived.
		want := []time.Duration{1100e6, 1200e6, 1500e6, 1600e6, 6e9, 17e9}
		if !slices.Equal(counts, want) {
			t.Errorf("%s: sends count at %v, want %v", restart, counts, want)
		}
		if h.Nonces["A"] != 99 || h.Holds["B"] != at(30*time.Second).UnixNano() {
			t.Errorf("%s: nonces %v, holds %v", restart, h.Nonces, h.Holds)
		}
		for id, want := range map[string]bool{"in flight": true, "timed-out": true, "result-lost": true, "done": false, "unsent": false, "limited": false, "retried": false, "torn": false} {
			if _, doubt := h.Doubts[id]; doubt != want {
				t.Errorf("%s: %s in doubt: %v", restart, id, doubt)
			}
		}
		if _, open := h.Open["in flight"]; open != unanswered || len(h.Open) > 1 {
			t.Errorf("%s: unanswered: %v", restart, h.Open)
		}
	}
	_, h = open(t, path, 20*time.Second, time.Minute, "done")
	check("first restart", h, true)
	// That one died as well, before it sent anything.
	_, h = open(t, path, 21*time.Second, time.Minute, "done")
	check("second restart", h, false)
	// Later no window reaches back; doubts and nonces stay.
	_, h = open(t, path, 10*time.Minute, time.Minute, "done", "timed-out")
	if _, doubt := h.Doubts["in flight"]; len(h.Sends) != 0 || h.Nonces["A"] != 99 || !doubt || len(h.Doubts) != 2 {
		t.Errorf("ten minutes later: %+v", h)
	}
}

// The final cost of a request counts after a restart, or the admitted cost if no final one is
// known.
func TestJournalKeepsActualTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Minute)
	estimate := limit.Cost{limit.Requests: 1, limit.Input: 100, limit.Output: 900, limit.Tokens: 1000}
	used := limit.Cost{limit.Requests: 1, limit.Input: 101, limit.Output: 7, limit.Tokens: 108}
	for _, actual := range []*limit.Cost{&used, nil} {
		n, err := j.Send(Send{Attempt: 1, Key: "A", Cost: estimate}, epoch.Add(time.Second))
		if err == nil {
			err = j.answer(n, Answer{Result: limit.Accepted, Counts: epoch.Add(2 * time.Second), Actual: actual})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for restart := range 2 { // the second reads what the first has made of it
		_, h := open(t, path, 20*time.Second, time.Minute)
		var costs []limit.Cost
		for _, s := range h.Sends {
			costs = append(costs, s.Cost)
		}
		if want := []limit.Cost{used, estimate}; !slices.Equal(costs, want) {
			t.Errorf("restart %d: %v, want %v", restart+1, costs, want)
		}
	}
}

// A request in flight during a compaction keeps its state: answered or unanswered.
func TestJournalCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Second)
	send := func(id string, at time.Duration) int64 {
		n, err := j.Send(Send{ID: id, Key: "A", Nonce: uint64(at), Cost: limit.Cost{limit.Requests: 1}}, epoch.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	answer := func(n int64, at time.Duration, doubt string) {
		if err := j.answer(n, Answer{Result: limit.Accepted, Counts: epoch.Add(at), Doubt: doubt}); err != nil {
			t.Fatal(err)
		}
	}
	answer(send("old", 1), 2, "")
	answer(send("redirected", 1), 2, "redirected")
	answer(send("recent", 1), 9500*time.Millisecond, "")
	inFlight, dies := send("in flight", 9e9), send("dies", 9e9)
	synced := false
	j.c.Before = func() error { synced = true; return nil }
	j.compact = 1
	answer(send("now", 10e9), 10e9+1, "")
	if !synced {
		t.Error("records were dropped before their results were made durable")
	}
	text, err := os.ReadFile(path)
	if bytes.Contains(text, []byte("\n{}\n")) {
		t.Errorf("compacted it has a line that says nothing: %s", text)
	}
	if n := bytes.Count(text, []byte(`"send"`)); err != nil || n != 4 { // recent, in flight, dies, now
		t.Errorf("compacted it has %d sends: %s", n, text)
	}
	answer(inFlight, 10e9+2, "")
	copied := filepath.Join(t.TempDir(), "journal")
	if text, err = os.ReadFile(path); err == nil {
		err = os.WriteFile(copied, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, h := open(t, copied, 10e9+3, time.Second, "dies"); len(h.Open) != 0 {
		t.Errorf("what has its result is unanswered: %+v", h)
	}
	_, h := open(t, path, 10e9+3, time.Second, "recent", "now", "in flight")
	if _, ok := h.Open["dies"]; !ok || len(h.Open) != 1 || len(h.Sends) != 4 || h.Nonces["A"] != 10e9 {
		t.Errorf("after a compaction, with send %d unanswered: %+v", dies, h)
	}
	if _, ok := h.Doubts["redirected"]; !ok {
		t.Error("the compaction forgot a doubt")
	}
	if info, err := os.Stat(path + ".new"); err == nil {
		t.Errorf("%s is left", info.Name())
	}
}

// A run with a short window between two with long ones: what was sent before it still counts in the
// last.
func TestJournalKeepsWhatLongLimitsNeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Hour)
	n, err := j.Send(Send{ID: "a", Key: "A", Cost: limit.Cost{limit.Requests: 1}}, epoch)
	if err == nil {
		err = j.answer(n, Answer{Result: limit.Accepted, Counts: epoch.Add(time.Second)})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		want := 1
		if at > time.Hour {
			want = 0
		}
		if _, h := open(t, path, at, []time.Duration{time.Second, time.Second, time.Hour, time.Hour}[i], "a"); len(h.Sends) != want {
			t.Errorf("after %v: %+v, want %d sends", at, h.Sends, want)
		}
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
		h, err := read(strings.NewReader(sample[:cut]), "j")
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		whole := strings.Count(sample[:cut], "\n")
		if want := []uint64{0, 0, 7, 7, 8, 9, 9}[whole]; h.Nonces["A"] != want {
			t.Errorf("cut after %d lines: nonce %d, want %d", whole, h.Nonces["A"], want)
		}
	}
	_, err := read(strings.NewReader("{\"send\":1}\nnotes of mine\n"), "j")
	if err == nil || !strings.Contains(err.Error(), "j:2: no journal of paceline") {
		t.Errorf("somebody's notes: %v", err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(sample), int64(1800000000050000000))
	f.Add([]byte("{\"answer\":-1,\"result\":\"unknown\"}\n{\"send\":9223372036854775807,\"at\":-9223372036854775808}\n\x00\x00"), int64(-1))
	f.Add([]byte("{\"run\":\"\",\"timeout\":-5}\n{}\nnull\n[]\n"), int64(0))
	f.Fuzz(func(t *testing.T, text []byte, now int64) {
		h, err := read(bytes.NewReader(text), "j")
		if err != nil {
			return
		}
		unanswered := len(h.unanswered)
		h.arrive(now, boottime.Reading{}, false)
		h.forget(now - int64(time.Minute))
		for i, s := range h.Sends {
			if i > 0 && s.Counts < h.Sends[i-1].Counts {
				t.Fatalf("sends are out of order: %v", h.Sends)
			}
		}
		if len(h.Open) > unanswered || len(h.Doubts) < len(h.Open) {
			t.Fatalf("%d unanswered, %d ids, %d in doubt", unanswered, len(h.Open), len(h.Doubts))
		}
	})
}

// broken is a disk that fails at one thing, once it is armed.
type broken struct {
	durable.Disk
	at    string
	armed bool
}

var errBroken = errors.New("input/output error")

func (b *broken) fails(at string) error {
	if b.armed && b.at == at {
		return errBroken
	}
	return nil
}

func (b *broken) Create(path string) (durable.Handle, error) {
	h, err := b.Disk.Create(path)
	return &brokenHandle{h, b}, err
}

func (b *broken) SyncFolder(path string) error {
	return errors.Join(b.fails("folder"), b.Disk.SyncFolder(path))
}

type brokenHandle struct {
	durable.Handle
	b *broken
}

func (h *brokenHandle) Sync() error { return errors.Join(h.b.fails("sync"), h.Handle.Sync()) }

// Every failed sync is reported: at Open, before a send, in groups, at a compaction, at the end.
// Before a send the report comes first.
func TestSyncFails(t *testing.T) {
	for _, c := range []struct {
		at   string
		when string
		open int // sends that are not answered then
		do   func(j *Journal) error
	}{
		{"sync", "before a send", 1, func(j *Journal) error { _, err := j.Send(Send{ID: "b"}, epoch); return err }},
		{"sync", "in groups", 0, func(j *Journal) error { return j.Sync(1) }},
		{"sync", "at the end", 1, (*Journal).Close},
		{"sync", "compacted", 0, func(j *Journal) error { j.compact = 1; _, err := j.Send(Send{ID: "b"}, epoch); return err }},
		{"folder", "compacted", 0, func(j *Journal) error { j.compact = 1; _, err := j.Send(Send{ID: "b"}, epoch); return err }},
	} {
		disk := &broken{Disk: durable.OS, at: c.at}
		conf := Config{Path: filepath.Join(t.TempDir(), "j"), Keep: time.Minute, Disk: disk, SyncSends: c.when == "before a send",
			Forget: func(string) bool { return false }, Before: func() error { return nil }}
		j, _, err := Open(conf, epoch)
		if err == nil {
			_, err = j.Send(Send{ID: "a"}, epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
		disk.armed = true
		if err := c.do(j); !errors.Is(err, errBroken) {
			t.Errorf("%s %s: %v", c.at, c.when, err)
		}
		disk.armed = false
		if c.when != "at the end" {
			// The request in flight at that time is answered, into the file that has the name.
			err = errors.Join(j.answer(1, Answer{Result: limit.Accepted, Counts: epoch}), j.Close())
		}
		if text, rerr := os.ReadFile(conf.Path); rerr != nil || strings.Count(string(text), `"send"`)-strings.Count(string(text), `"answer"`) != c.open {
			t.Errorf("%s %s: %s", c.at, c.when, text)
		}
		disk.armed = true
		if _, _, err := Open(conf, epoch); !errors.Is(err, errBroken) {
			t.Errorf("%s, opened: %v", c.at, err)
		}
		disk.armed = false
		if _, h, oerr := Open(conf, epoch); err != nil || oerr != nil || len(h.Doubts) == 0 {
			t.Errorf("%s %s: afterwards %+v, %v, %v", c.at, c.when, h, err, oerr)
		}
	}
}

// Where results cannot be made durable nothing is dropped from the journal, and that is said; no
// answers are no reason to write.
func TestNothingIsDroppedBeforeItsResult(t *testing.T) {
	var fails error
	conf := Config{Path: filepath.Join(t.TempDir(), "j"), Keep: time.Second, Before: func() error { return fails }}
	j, _, err := Open(conf, epoch)
	if err == nil {
		_, err = j.Send(Send{ID: "a", Key: "A"}, epoch)
	}
	if err == nil {
		err = j.answer(1, Answer{Result: limit.Accepted, Counts: epoch})
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(conf.Path)
	if err != nil {
		t.Fatal(err)
	}
	j.compact = 1
	if err := j.Answers(nil); err != nil {
		t.Error(err)
	}
	fails = errBroken
	if err := j.compactLocked(epoch.Add(time.Hour)); !errors.Is(err, errBroken) {
		t.Errorf("compacted: %v", err)
	}
	if after, err := os.ReadFile(conf.Path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was\n%s\nand is\n%s, %v", before, after, err)
	}
	fails = nil
	if err := errors.Join(j.compactLocked(epoch.Add(time.Hour)), j.Close()); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(conf.Path); err != nil || bytes.Contains(after, []byte(`"send"`)) {
		t.Errorf("an hour later it is %s, %v", after, err)
	}
}

// machine is what the clocks of one say: the time that passed in truth, since epoch, by a wall
// clock that is wrong by off.
type machine struct {
	boot          string
	passed, slept time.Duration
	off           time.Duration
	dumb          bool // it has no other clock
}

func (m *machine) clock() (time.Time, boottime.Reading) {
	r := boottime.Reading{Boot: m.boot, Up: time.Hour + m.passed, Awake: time.Hour + m.passed - m.slept}
	if m.dumb {
		r = boottime.Reading{Up: m.passed - m.slept, Awake: m.passed - m.slept}
	}
	return epoch.Add(m.passed + m.off), r
}

// now is the instant of a process that began at zero by its own clock, which stands still in sleep.
func (m *machine) now() time.Time { t, _ := m.clock(); return t }

func (m *machine) config(path string) Config {
	return Config{Path: path, Keep: 24 * time.Hour, Timeout: 10 * time.Second, Clock: m.clock,
		Forget: func(string) bool { return false }, Before: func() error { return nil }}
}

// A journal without content.
func TestGone(t *testing.T) {
	for text, want := range map[string]string{
		"": "is empty", "\x00\x00\x00": "has not one whole line", `{"run":"2027`: "has not one whole line", "{\"run\":\"x\"}\n": "", "none": "is missing",
	} {
		conf := (&machine{boot: "b"}).config(filepath.Join(t.TempDir(), "j"))
		if text != "none" {
			if err := os.WriteFile(conf.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, h, err := Open(conf, epoch); err != nil || h.Gone != want {
			t.Errorf("%q: %q, %v; want %q", text, h.Gone, err, want)
		}
		if _, h, err := Open(conf, epoch); err != nil || h.Gone != "" {
			t.Errorf("%q, again: %q, %v", text, h.Gone, err)
		}
	}
}

// Lessons about limits survive restarts, compactions and changes of clocks: the latest of each
// limit and key.
func TestJournalKeepsLessons(t *testing.T) {
	m := &machine{boot: "b"}
	conf := m.config(filepath.Join(t.TempDir(), "j"))
	began := m.now()
	j, _, err := Open(conf, began)
	if err != nil {
		t.Fatal(err)
	}
	fit := func(of string, fits int64, until time.Duration) Fit {
		return Fit{of, limit.Lesson{Rule: limit.Rule{Name: "requests", N: 25, Per: time.Second}, State: 2, Fits: fits, Until: mono.Time(until), Began: 1}}
	}
	for i := range 2 * mostFits {
		err = errors.Join(err, j.Learn("A", fit(fmt.Sprint(i), 3, time.Hour), began))
	}
	m.passed += time.Minute
	err = errors.Join(err, j.Learn("A", fit("25/s", 19, time.Hour), began), j.Learn("B", fit("25/s", 7, time.Hour), began), j.Learn("A", fit("25/s", 20, 2*time.Hour), began))
	n, serr := j.Send(Send{ID: "a", Key: "A"}, m.now())
	if err := errors.Join(err, serr, j.answer(n, Answer{Result: limit.Limited, Counts: m.now()}), j.compactLocked(m.now()), j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		boot string
		left time.Duration // of two hours
	}{{"b", 109 * time.Minute}, {"b", 99 * time.Minute}, {"other", 99 * time.Minute}} {
		m.passed += 10 * time.Minute
		m.boot = c.boot
		j, h, err := Open(conf, m.now())
		if err != nil {
			t.Fatal(err)
		}
		a, b := h.Fits["A"], h.Fits["B"]
		if len(a) != mostFits || len(b) != 1 || b[0].Fits != 7 {
			t.Fatalf("%+v, %+v", a, b)
		}
		last := a[mostFits-1]
		if left := time.Duration(last.Until) - time.Duration(m.now().UnixNano()); last.Limit != "25/s" || last.Fits != 20 || last.Rule != b[0].Rule || left != c.left {
			t.Errorf("%s: %v are left: %+v", c.boot, left, last)
		}
		_ = j.Close()
	}
	for _, text := range []string{`{"key":"A","fit":{"limit":"25/s","fits":1,"novelty":1}}`, `{"key":"A","fit":[]}`} {
		if _, err := decode([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// When a request was read is known until it has ended, and when an input began for good: over
// restarts and compactions.
func TestJournalKeepsWhenTimesBegan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Minute)
	for i, id := range []string{"a", "b", "c"} {
		if err := j.Read(id, epoch.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	first := Start{epoch.UnixNano(), 3, 1<<64 - 1}
	if err := j.Start(first); err != nil {
		t.Fatal(err)
	}
	j.Ended("a")
	if err := j.compactLocked(epoch.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"b": epoch.Add(time.Hour).UnixNano(), "c": epoch.Add(2 * time.Hour).UnixNano()}
	for run, ended := range [][]string{nil, nil, {"b"}} {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		var h *History
		if j, h = open(t, path, time.Duration(run+1)*24*time.Hour, time.Minute, ended...); ended != nil {
			delete(want, "b")
		}
		if !maps.Equal(h.Reads, want) || !slices.Equal(h.Starts, []Start{first}) {
			t.Errorf("run %d: %v, %v", run+2, h.Reads, h.Starts)
		}
	}
	for i := range 2 * mostStarts {
		if err := j.Start(Start{At: int64(i + 1), Lines: i}); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	j, _ = open(t, path, 0, time.Minute)
	_ = j.Close()
	if _, h := open(t, path, 0, time.Minute); len(h.Starts) != mostStarts || h.Starts[mostStarts-1].At != 2*mostStarts {
		t.Errorf("%d starts, expected the latest %d", len(h.Starts), mostStarts)
	}
}

// The spent money survives restarts and compactions. A request without an answer counts with its
// largest price.
func TestJournalKeepsWhatWasSpent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Minute)
	send := func(price int64) int64 {
		n, err := j.Send(Send{ID: "a", Key: "A", Price: price}, epoch)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := j.answer(send(50), Answer{Result: limit.Accepted, Counts: epoch, Price: 20}); err != nil {
		t.Fatal(err)
	}
	send(7)
	for range 2 {
		if err := j.compactLocked(epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.answer(send(50), Answer{Result: limit.Accepted, Counts: epoch, Price: 3}); err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		_ = j.Close()
		var h *History
		if j, h = open(t, path, time.Duration(run+1)*24*time.Hour, time.Minute); h.Spent != 30 {
			t.Errorf("run %d: %d are spent, expected 30", run+2, h.Spent)
		}
	}
}

// Whose a key is outlives restarts and compactions, and so does what a key is held for or has used
// alone.
func TestJournalKeepsWhose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path, 0, time.Minute)
	err := errors.Join(j.Belongs("A", "org-1"), j.Belongs("B", "org-1"), j.Belongs("A", "org-2"))
	sent := map[string]int64{}
	for key, nonce := range map[string]uint64{"nonce": 1, "hold": 0, "neither": 0} {
		n, serr := j.Send(Send{ID: key, Key: key, Nonce: nonce}, epoch)
		sent[key], err = n, errors.Join(err, serr)
	}
	for key, n := range sent {
		a := Answer{Result: limit.Limited, Counts: epoch}
		if key == "hold" {
			a.Hold = epoch.Add(time.Hour)
		}
		err = errors.Join(err, j.answer(n, a))
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each writes the journal anew
		j, h := open(t, path, time.Second, time.Minute)
		if h.Whose["A"] != "org-2" || h.Whose["B"] != "org-1" || len(h.Whose) != 2 {
			t.Errorf("whose: %v", h.Whose)
		}
		if h.Nonces["nonce"] != 1 || h.Holds["hold"] == 0 || h.Nonces["hold"] != 0 || h.Holds["nonce"] != 0 || len(h.Sends) != 3 {
			t.Errorf("nonces %v, holds %v, %d sends", h.Nonces, h.Holds, len(h.Sends))
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
