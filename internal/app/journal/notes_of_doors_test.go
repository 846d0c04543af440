package journal_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// noted is a note with a journal of sends, as they are named in it.
func noted(t *testing.T, folder string, n journal.Note, sends ...string) *journal.Note {
	t.Helper()
	n.Keep, n.Servers = time.Minute, append(n.Servers, "https://api.test")
	if err := n.Begin(folder, time.Now()); err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(of(&n), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range sends {
		if _, err := j.Send(journal.Send{Key: key, Cost: limit.One}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return &n
}

func of(n *journal.Note) journal.Config {
	return journal.Config{Path: n.Journal, Keep: time.Minute, Forget: func(string) bool { return true }}
}

// counted are the keys of what others sent, as a process counts it.
func counted(t *testing.T, me *journal.Note) string {
	t.Helper()
	ended, living := me.Others(time.Now())
	var all []string
	for _, o := range append(ended, living...) {
		h, err := o.Recall(me, of(me), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range h.Sends {
			all = append(all, s.Key)
		}
	}
	return strings.Join(all, " ")
}

// Runs and proxies name what they send in other ways, and each counts what the other sent with its key to its
// server. A proxy does so for the keys of clients that it has not met.
func TestNotesOfDoors(t *testing.T) {
	folder := t.TempDir()
	ours := map[string]string{journal.DigestOf("secret"): "K", journal.DigestOf("https://api.test"): "K"}
	place := func(host, key, model string) string {
		return journal.Place{Owner: "u", Partition: transport.Partition{Host: host, Key: key, Model: model}}.String()
	}
	noted(t, folder, journal.Note{PID: 1, Door: "run", Keys: ours}, "K", "K/m/1", "other")
	theirs := noted(t, folder, journal.Note{PID: 2, Door: "exec", Places: true, AnyKey: true,
		Servers: []string{"https://other.test"}, Keys: map[string]string{journal.DigestOf("Bearer secret"): "4f", journal.DigestOf("x"): "5a"}},
		place("api.test", "4f", ""), place("api.test", "4f", "m"), place("api.test", "5a", ""), place("other.test", "4f", ""))
	me := noted(t, folder, journal.Note{PID: 3, Door: "run", Keys: map[string]string{journal.DigestOf("secret"): "mine"}})
	if got := counted(t, me); got != "mine mine/m/1 mine mine/m" {
		t.Errorf("a run counts %q", got)
	}
	both := journal.DigestOf("https://api.test") + "+" + journal.DigestOf("secret")
	if other := journal.DigestOf("secret") + "+" + journal.DigestOf("https://api.test"); other < both {
		both = other
	}
	if got := counted(t, theirs); got != both+" "+both+"/m/1" {
		t.Errorf("a proxy counts %q", got)
	}
}

// What two notes have counts once: two processes with one journal, one after the other; a run that exec leads.
func TestNotesCountOnce(t *testing.T) {
	keys := map[string]string{journal.DigestOf("secret"): "K"}
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "a.journal")
	first := noted(t, folder, journal.Note{PID: 1, Door: "run", Keys: keys, Journal: file}, "K")
	if err := first.End(of(first), time.Now()); err != nil {
		t.Fatal(err)
	}
	noted(t, folder, journal.Note{PID: 2, Door: "run", Keys: keys, Journal: file, Follows: true}, "K")
	me := noted(t, folder, journal.Note{PID: 3, Door: "run", Keys: keys})
	if got := counted(t, me); got != "K K" {
		t.Errorf("of two runs with one file: %q", got)
	}

	folder = t.TempDir()
	exec := journal.Note{PID: 1, Door: "exec", Places: true, AnyKey: true, Keys: map[string]string{journal.DigestOf("secret"): "4f"}}
	daemon := noted(t, folder, exec, journal.Place{Partition: transport.Partition{Host: "api.test", Key: "4f"}}.String())
	led := noted(t, folder, journal.Note{PID: 2, Door: "run", Led: true, Keys: keys}, "K")
	me = noted(t, folder, journal.Note{PID: 3, Door: "run", Keys: keys})
	if got := counted(t, me); got != "K" {
		t.Errorf("of a run that exec leads: %q", got)
	}
	for who, n := range map[string]*journal.Note{"the run": led, "exec": daemon} {
		if _, living := n.Others(time.Now()); len(living) != 1 || living[0].PID != 3 {
			t.Errorf("beside %s: %d, want process 3 alone", who, len(living))
		}
	}
}
