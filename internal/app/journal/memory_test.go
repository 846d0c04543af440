package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A limiter's memory is there for the next run, the latest of each key. Its age is by the clock
// that no user sets. Without such a clock it counts as written with the latest record, now. After a
// month it is forgotten.
func TestMemoriesOverRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(m *machine, conf *Config)
		age     time.Duration // -1: it is gone
		undated bool
	}{
		{"killed", func(m *machine, _ *Config) { m.passed += time.Minute }, time.Minute, false},
		{"the clock is set back", func(m *machine, _ *Config) { m.passed += time.Minute; m.off = -time.Hour }, time.Minute, false},
		{"the clock is set forward", func(m *machine, _ *Config) { m.passed += time.Minute; m.off = 24 * time.Hour }, time.Minute, false},
		{"slept", func(m *machine, _ *Config) { m.passed += time.Hour; m.slept += 50 * time.Minute }, time.Hour, false},
		{"booted", func(m *machine, _ *Config) { m.passed += time.Hour; m.boot = "c" }, 0, true},
		{"booted, and the clock is right", func(m *machine, conf *Config) { m.passed += time.Hour; m.boot, conf.TrustClock = "", true }, time.Hour, false},
		{"29 days", func(m *machine, _ *Config) { m.passed += 29 * 24 * time.Hour }, 29 * 24 * time.Hour, false},
		{"31 days", func(m *machine, _ *Config) { m.passed += 31 * 24 * time.Hour }, -1, false},
	} {
		m := &machine{boot: "b"}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		j, h, err := Open(conf, m.now())
		if err != nil || len(h.Memories) != 0 || h.Undated {
			t.Fatal(h, err)
		}
		remember := func(key, what string) {
			if err := j.Remember(key, []byte(what), m.now()); err != nil {
				t.Fatal(err)
			}
		}
		remember("A", "the first")
		m.passed += 10 * time.Second
		remember("B", "\x00\xff")
		remember("A", "the latest")
		c.between(m, &conf)
		for again := range 2 { // the second reads what the first has compacted
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, h, err = Open(conf, m.now()); err != nil {
				t.Fatal(err)
			}
			if c.age < 0 {
				if len(h.Memories) > 0 {
					t.Errorf("%s: %v", c.name, h.Memories)
				}
				continue
			}
			a, b := h.Memories["A"], h.Memories["B"]
			if string(a.Written) != "the latest" || string(b.Written) != "\x00\xff" || len(h.Memories) != 2 || h.Undated != (c.undated && again == 0) {
				t.Errorf("%s: %q, %q, %d in all, undated: %v", c.name, a.Written, b.Written, len(h.Memories), h.Undated)
			}
			if age := m.now().Sub(time.Unix(0, a.At)); age != c.age || a.At != b.At {
				t.Errorf("%s: %v ago, want %v", c.name, age, c.age)
			}
		}
		j.Close()
	}
}

// While a run goes on the file is compacted, and what is remembered stays.
func TestMemoriesAreCompacted(t *testing.T) {
	m := &machine{boot: "b"}
	conf := m.config(filepath.Join(t.TempDir(), "j"))
	conf.CompactFrom, conf.Keep = 4096, time.Second
	j, _, err := Open(conf, m.now())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range 200 {
		m.passed += time.Second
		if err := j.Remember("A", fmt.Appendf(nil, "memory %d", i), m.now()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Send(Send{Key: "A"}, m.now()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(conf.Path)
	if n := strings.Count(string(text), `"memory"`); err != nil || n == 0 || n > 190 {
		t.Fatalf("%d of 200 memories are in the file: %v", n, err)
	}
	if h, err := read(strings.NewReader(string(text)), "j"); err != nil || string(h.Memories["A"].Written) != "memory 199" {
		t.Errorf("%q, %v", h.Memories["A"].Written, err)
	}
}

// The version before had no memories, and its sends count as before. A damaged memory is passed on
// to its limiter, which can judge it. Of too many keys the oldest are forgotten.
func TestMemoriesOfFiles(t *testing.T) {
	const head = `{"run":"2027-01-15T08:00:00.000Z","version":4,"at":1800000000000000000}
{"send":1,"key":"A","cost":1,"at":1800000000000000000}
`
	h, err := read(strings.NewReader(head), "j")
	if err != nil || len(h.Memories) != 0 || h.Last != 1 || len(h.unanswered) != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	h, err = read(strings.NewReader(head+`{"key":"A","memory":"no base64!","at":1800000000000000001}`+"\n"), "j")
	if m := h.Memories["A"]; err != nil || string(m.Written) != "no base64!" || m.At != 1800000000000000001 || h.latest != m.At {
		t.Errorf("%+v, %v", m, err)
	}
	var b strings.Builder
	b.WriteString(head)
	for i := range 1024 + 3 {
		fmt.Fprintf(&b, `{"key":"k%d","memory":"AAAA","at":%d}`+"\n", i, 1800000000000000000+10*i)
		if i == 500 {
			b.WriteString(`{"key":"k0","memory":"AAAA","at":1800000000000009000}` + "\n")
		}
	}
	if h, err = read(strings.NewReader(b.String()), "j"); err != nil || len(h.Memories) != 1024 {
		t.Fatalf("%d, %v", len(h.Memories), err)
	}
	for key, want := range map[string]bool{"k0": true, "k1": false, "k3": false, "k4": true, "k1026": true} {
		if _, is := h.Memories[key]; is != want {
			t.Errorf("%s is remembered: %v", key, is)
		}
	}
}

// A memory is kept for thirty days, and not for longer.
func TestMemoriesEnd(t *testing.T) {
	for after, want := range map[time.Duration]int{30*24*time.Hour - 1: 1, 30 * 24 * time.Hour: 1, 30*24*time.Hour + 1: 0} {
		m := &machine{boot: "b"}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		j, _, err := Open(conf, m.now())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Remember("A", []byte("a"), m.now()), j.Close()); err != nil {
			t.Fatal(err)
		}
		m.passed += after
		j, h, err := Open(conf, m.now())
		if err != nil || len(h.Memories) != want {
			t.Errorf("after %v: %v, %v, expected %d", after, h.Memories, err, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
