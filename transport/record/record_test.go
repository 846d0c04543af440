package record

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// machine is a clock of the bubble's time.
func machine() func() (time.Time, boottime.Reading) {
	began := time.Now()
	return func() (time.Time, boottime.Reading) {
		up := time.Since(began)
		return time.Now(), boottime.Reading{Boot: "this", Up: up, Awake: up}
	}
}

// reopen is what a process does at its start.
func reopen(t *testing.T, path string, clock func() (time.Time, boottime.Reading)) *File {
	t.Helper()
	f, err := open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader("fine"))
	return &http.Response{StatusCode: 200, Body: body, Header: http.Header{}, Request: r}, nil
}

// serve makes the Transport of a process. Each key has two requests in a span.
func serve(t *testing.T, r transport.Recorder, span time.Duration) func(key string) time.Duration {
	t.Helper()
	limits := func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key {
			return nil
		}
		return limit.MustRolling(2, span)
	}
	tr, err := transport.New(transport.Config{Base: answers{}, Recorder: r, Limit: limits})
	if err != nil {
		t.Fatal(err)
	}
	return func(key string) time.Duration {
		t.Helper()
		began := time.Now()
		q, _ := http.NewRequestWithContext(t.Context(), "GET", "http://server/", nil)
		q.Header.Set("Authorization", "Bearer secret-of-"+key)
		resp, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return time.Since(began)
	}
}

// A process goes on where the one before ended, however long the window is, and whatever limit is the first. Each
// key of a caller is known again. The file has no credential.
func TestRestarts(t *testing.T) {
	for _, span := range []time.Duration{10 * time.Second, time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			path, clock := filepath.Join(t.TempDir(), "sent"), machine()
			first := reopen(t, path, clock)
			ask := serve(t, first, span)
			other := serve(t, first.Part("other"), 3*span)
			for _, waited := range []time.Duration{ask("a"), ask("a"), other("b"), other("b")} {
				if waited != 0 {
					t.Errorf("%v: the first process waits for %v", span, waited)
				}
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			for range 3 { // that send nothing
				time.Sleep(span / 8)
				if err := reopen(t, path, clock).Close(); err != nil {
					t.Fatal(err)
				}
			}
			second := reopen(t, path, clock)
			defer second.Close()
			ask = serve(t, second, span)
			if waited := ask("b"); waited != 0 {
				t.Errorf("%v: another key waits for %v", span, waited)
			}
			near := func(waited, want time.Duration) bool { // a Rolling counts in steps
				return waited >= want && waited <= want+span/1000
			}
			if waited, want := ask("a"), span-3*(span/8); !near(waited, want) {
				t.Errorf("%v: the key waits for %v, want %v", span, waited, want)
			}
			other = serve(t, second.Part("other"), 3*span)
			if waited := other("b"); !near(waited, 2*span) {
				t.Errorf("%v: at the other Transport %v, want %v", span, waited, 2*span)
			}
			text, _ := os.ReadFile(path)
			if is := string(text); strings.Contains(is, "secret") || !strings.Contains(is, second.KeyName("Bearer secret-of-a")) {
				t.Errorf("want the name %s, and no secret, in\n%s", second.KeyName("Bearer secret-of-a"), text)
			}
		})
	}
}

// A request that a process had in flight when it was killed may arrive until that is noticed, and 5 s later.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, clock := filepath.Join(t.TempDir(), "sent"), machine()
		first := reopen(t, path, clock)
		p := transport.Partition{Scope: provider.Key, Host: "server"}
		if _, err := first.Send(p, limit.One); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		second := reopen(t, path, clock)
		defer second.Close()
		all, since := second.Earlier(p, time.Now())
		want := limit.Past{At: mono.Time(5 * time.Second), Cost: limit.One, Sent: mono.Time(-time.Second)} // its Result is Unknown
		if len(all) != 1 || all[0] != want {
			t.Errorf("%+v since %v", all, since)
		}
	})
}

// The file has what still counts, and not all that was ever sent.
func TestSizeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sent")
		f := reopen(t, path, machine())
		f.KeepFor(time.Second)
		p := transport.Partition{Host: "server", Key: "k", Route: "GET /v1/" + strings.Repeat("x", 2000)}
		written := 0
		for range 9_000 {
			entry, err := f.Send(p, limit.One)
			if err != nil {
				t.Fatal(err)
			}
			f.Settle(entry, limit.One, limit.Outcome{Result: limit.Accepted})
			time.Sleep(10 * time.Millisecond)
			written += 2000
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() > compactFrom+1<<10 || written < 2*compactFrom {
			t.Errorf("%d bytes of %d, %v", info.Size(), written, err)
		}
	})
}

// A file belongs to one process. Another one, a second File and a damaged file are errors that say so.
func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sent")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(path)
	used, ok := errors.AsType[*InUseError](err)
	if !ok || used.PID != os.Getpid() || !strings.Contains(err.Error(), path+" is in use by process ") {
		t.Errorf("a second File: %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a name is used twice")
			}
		}()
		f.Part("a")
		f.Part("a")
	}()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Send(transport.Partition{Host: "server"}, limit.One); err == nil {
		t.Error("a send after Close")
	}
	for name, text := range map[string]string{path: "damaged\n", path + ".salt": "damaged"} {
		was, _ := os.ReadFile(name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the lock is free after it
			if _, err := Open(path); err == nil || !strings.Contains(err.Error(), name) || errors.As(err, new(*InUseError)) {
				t.Errorf("%s is damaged: %v", name, err)
			}
		}
		if err := os.WriteFile(name, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(filepath.Join(path, "below")); err == nil {
		t.Error("a folder that is a file")
	}
}
