package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
)

// A process that begins gets what others sent with its keys, under its own names of them: those that have
// ended, in whatever way. Of those that send at this moment it gets to know.
func TestNotes(t *testing.T) {
	folder, now := filepath.Join(t.TempDir(), "recent"), time.Now()
	begin := func(path string, at string, keys map[string]string) *journal.Note {
		s := &journal.Note{PID: 1, Journal: path, Keys: map[string]string{}, Servers: []string{at}, Keep: time.Minute}
		for name, value := range keys {
			s.Keys[journal.DigestOf(value)] = name
		}
		now = now.Add(time.Millisecond) // of which the name of a note is made
		if err := s.Begin(folder, now); err != nil {
			t.Fatal(err)
		}
		return s
	}
	config := func(s *journal.Note) journal.Config {
		return journal.Config{Path: s.Journal, Keep: time.Minute, Timeout: time.Second, Forget: func(string) bool { return true }}
	}
	send := func(s *journal.Note, keys ...string) *journal.Journal {
		j, _, err := journal.Open(config(s), now)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			n, err := j.Send(journal.Send{ID: key, Key: key, Nonce: uint64(i + 1), Cost: limit.One}, now)
			if err == nil {
				err = j.Answers([]journal.Answered{{n, journal.Answer{Result: limit.Accepted, Counts: now}}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	file := filepath.Join(t.TempDir(), "results.journal")
	filed, bare := begin(file, "http://a", map[string]string{"A": "1", "B": "2"}), begin("", "http://a", map[string]string{"K": "1"})
	elsewhere := begin("", "http://b", map[string]string{"K": "1"})
	for s, keys := range map[*journal.Note][]string{filed: {"A", "A", "B"}, bare: {"K"}, elsewhere: {"K"}} {
		j := send(s, keys...)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of notes is open to others: %v, %v", info.Mode(), err)
	}
	me := begin("", "http://a", map[string]string{"mine": "1"})
	if ended, sending := me.Others(now); len(ended) != 0 || len(sending) != 2 {
		t.Errorf("while two send, %d have ended and %d send", len(ended), len(sending))
	}
	for _, s := range []*journal.Note{filed, bare, elsewhere} {
		if err := s.End(config(s), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(file); err != nil { // what counts of it was copied
		t.Fatal(err)
	}
	counted := func() int {
		all := &journal.History{}
		ended, sending := me.Others(now)
		for _, o := range ended {
			h, err := o.Recall(me, config(me), now)
			if err != nil {
				t.Fatal(err)
			}
			all.Join(h)
		}
		for _, s := range all.Sends {
			if s.Key != "mine" {
				t.Errorf("a send is of key %q", s.Key)
			}
		}
		if len(all.Sends) > 0 && all.Nonces["mine"] != 2 || len(sending) > 0 {
			t.Errorf("the latest nonce is %d, want 2; %d send", all.Nonces["mine"], len(sending))
		}
		return len(all.Sends)
	}
	if n := counted(); n != 3 {
		t.Errorf("%d sends count, want 3: two of the one, one of the other", n)
	}
	now = now.Add(2 * time.Hour)
	if n := counted(); n != 0 {
		t.Errorf("%d sends count after two hours", n)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2 { // its own note and lock
		t.Errorf("there are %q, want what is of the present process alone", left)
	}
	me.Drop()
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 0 {
		t.Errorf("without a process there are %q, want nothing", left)
	}
}

// A run that sends by a proxy of this user is not beside it, and the proxy counts its requests: neither counts or
// warns of the other. Another proxy is beside both.
func TestNotesOfAForwardProxy(t *testing.T) {
	folder, now := filepath.Join(t.TempDir(), "recent"), time.Now()
	begin := func(forward, through string) *journal.Note {
		s := &journal.Note{PID: 1, Keys: map[string]string{journal.DigestOf("1"): "K"}, Servers: []string{"http://a"}, Keep: time.Minute,
			Forward: forward, Through: through}
		now = now.Add(time.Millisecond)
		if err := s.Begin(folder, now); err != nil {
			t.Fatal(err)
		}
		return s
	}
	proxy, run := begin("0.0.0.0:7900", ""), begin("", "localhost:7900")
	other := begin("127.0.0.1:7901", "")
	for name, c := range map[string]struct {
		of   *journal.Note
		want int
	}{"the proxy": {proxy, 1}, "the run": {run, 1}, "another proxy, which counts the first alone": {other, 1}} {
		if _, living := c.of.Others(now); len(living) != c.want {
			t.Errorf("%s is beside %d, want %d", name, len(living), c.want)
		}
	}
}

// Only what was sent in the last minute makes a process one that sends at this moment.
func TestSentLately(t *testing.T) {
	now := time.Now()
	for ago, want := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false, time.Hour: false} {
		h := &journal.History{Sends: []journal.Sent{{Sent: now.Add(-time.Hour).UnixNano()}, {Sent: now.Add(-ago).UnixNano()}}}
		if is := h.SentLately(now); is != want {
			t.Errorf("sent %v ago: %v, want %v", ago, is, want)
		}
	}
	if (&journal.History{}).SentLately(now) {
		t.Error("nothing was sent")
	}
}
