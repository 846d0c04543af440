package journal

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

func linesIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// A line has what the attempt cost in the end. What was not sent has none.
func TestLogLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sent.jsonl")
		l, err := OpenSentLog(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		time.Sleep(90 * time.Millisecond)
		a := transport.Attempt{Key: "A", Number: 2, Status: 200, Cost: limit.Cost{limit.Requests: 1, limit.Tokens: 900}, Sent: time.Now(),
			Partition: transport.Partition{Key: "A", Model: "m", Target: "eu", Resource: "r"}}
		l.Add(SentLine{}, &a, &limit.Outcome{Result: limit.Unsent})
		time.Sleep(time.Minute)
		line := SentLine{Upstream: "api", Client: "bot", Method: "POST", Path: "/x"}
		l.Add(line, &a, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 7}})
		l.Add(line, &transport.Attempt{Number: 1, Sent: time.Now(), Cost: limit.Cost{limit.Weight: 3},
			Partition: transport.Partition{Key: "7f3a"}}, &limit.Outcome{Result: limit.Unknown})
		want := []string{
			`{"at":"2000-01-01T00:00:00.09Z","upstream":"api","target":"eu","key":"A","client":"bot","resource":"r","model":"m","method":"POST","path":"/x","attempt":2,"status":200,"result":"accepted","requests":1,"tokens":7}`,
			`{"at":"2000-01-01T00:01:00.09Z","upstream":"api","key":"7f3a","client":"bot","method":"POST","path":"/x","attempt":1,"result":"unknown","weight":3}`,
		}
		if got := linesIn(t, path); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v: want a file of its owner alone", about.Mode(), err)
		}
	})
}

// Two processes append to one file: each line stays whole, and none is lost.
func TestLogOfTwo(t *testing.T) {
	const each = 500
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	var both sync.WaitGroup
	for _, client := range []string{"a", strings.Repeat("long", 2000)} {
		l, err := OpenSentLog(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		both.Go(func() {
			for range each {
				l.Add(SentLine{Client: client}, &transport.Attempt{Sent: time.Now()}, &limit.Outcome{Result: limit.Accepted})
			}
		})
	}
	both.Wait()
	n := map[int]int{}
	for _, line := range linesIn(t, path) {
		var is SentLine
		if err := json.Unmarshal([]byte(line), &is); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		n[len(is.Client)]++
	}
	if n[1] != each || n[8000] != each {
		t.Errorf("lines by the length of the client's name: %v, expected %d each", n, each)
	}
}

// A file that was renamed, as by logrotate, is followed by a new one. A file that cannot be written is told of once,
// and so is the end of that.
func TestLogIsRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "logs")
		path := filepath.Join(folder, "sent.jsonl")
		if _, err := OpenSentLog(path, nil); err == nil {
			t.Fatal("there is no folder")
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		l, err := OpenSentLog(path, slog.New(slog.NewTextHandler(&told, nil)))
		if err != nil {
			t.Fatal(err)
		}
		add := func() {
			l.Add(SentLine{}, &transport.Attempt{Sent: time.Now()}, &limit.Outcome{Result: limit.Accepted})
			time.Sleep(600 * time.Millisecond)
		}
		add()
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		for range 3 { // the first of them within the second
			add()
		}
		if old, now := len(linesIn(t, path+".1")), len(linesIn(t, path)); old != 2 || now != 2 {
			t.Errorf("%d lines in the former file and %d in the new one, want 2 and 2", old, now)
		}
		if err := os.Rename(folder, folder+".away"); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			add()
		}
		if err := os.Rename(folder+".away", folder); err != nil {
			t.Fatal(err)
		}
		add()
		if all := told.String(); strings.Count(all, "\n") != 2 || !strings.Contains(all, "level=ERROR msg=\"an attempt is missing") ||
			!strings.Contains(all, "level=WARN msg=\"attempts are written") {
			t.Errorf("want a failure and its end in\n%s", all)
		}
		l.Close()
		add() // an attempt that settles late
		if now := len(linesIn(t, path)); now < 4 || l.file != nil {
			t.Errorf("%d lines, and the file is open: %v", now, l.file != nil)
		}
	})
}
