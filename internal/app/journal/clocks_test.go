package journal

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A request with an answer counts as of the latest arrival that the answer leaves. One without may still arrive.
func TestAnswerOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o    limit.Outcome
			want time.Duration
		}{
			{limit.Outcome{Result: limit.Accepted}, 0},
			{limit.Outcome{Result: limit.Accepted, ArrivedAgo: time.Second}, -time.Second},
			{limit.Outcome{Result: limit.Limited}, 0},
			{limit.Outcome{Result: limit.Unknown}, Late},
			{limit.Outcome{Result: limit.Unknown, ArrivedAgo: time.Second}, -time.Second},
		} {
			if a := AnswerOf(&c.o); time.Until(a.Counts) != c.want || a.Result != c.o.Result || a.Actual != nil {
				t.Errorf("%+v counts %v from now: %+v, want %v", c.o, time.Until(a.Counts), a, c.want)
			}
		}
		metered := limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Tokens: 7}}
		if a := AnswerOf(&metered); a.Actual == nil || *a.Actual != metered.Actual {
			t.Errorf("the final cost is %v, want %v", a.Actual, metered.Actual)
		}
	})
}

// The measured time between two runs is never more than the real one, after any change of the
// clocks. It is exact if the machine can measure it.
func TestClocks(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name    string
		between func(m *machine, conf *Config) // an hour passes besides
		age     time.Duration                  // of a send 100 s before the end of the first run, when the second begins
		held    time.Duration                  // that its key still has to stay away, of an hour and a half
	}{
		{"nothing", func(*machine, *Config) {}, 100*time.Second + hour, hour/2 - 100*time.Second},
		{"set forward by a day", func(m *machine, _ *Config) { m.off = 24 * hour }, 100*time.Second + hour, hour/2 - 100*time.Second},
		{"set back by ten years", func(m *machine, _ *Config) { m.off = -10 * 365 * 24 * hour }, 100*time.Second + hour, hour/2 - 100*time.Second},
		{"slept", func(m *machine, _ *Config) { m.slept = hour }, 100*time.Second + hour, hour/2 - 100*time.Second},
		{"booted again", func(m *machine, _ *Config) { m.boot = "other" }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"booted, and set forward", func(m *machine, _ *Config) { m.boot, m.off = "other", 24*hour }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"booted, and set back by ten years", func(m *machine, _ *Config) { m.boot, m.off = "other", -10*365*24*hour }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"booted, trusted", func(m *machine, conf *Config) { m.boot, conf.TrustClock = "other", true }, 100*time.Second + hour, hour/2 - 100*time.Second},
		{"booted, trusted, and set back", func(m *machine, conf *Config) { m.boot, m.off, conf.TrustClock = "other", -24*hour, true }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"it tells no time", func(m *machine, _ *Config) { m.dumb = true }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"a snapshot is taken up again", func(m *machine, _ *Config) { m.passed -= 2 * hour }, 100 * time.Second, hour*3/2 - 100*time.Second},
		{"never any", nil, 100 * time.Second, hour*3/2 - 100*time.Second},
	} {
		m := &machine{boot: "b", dumb: c.between == nil}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		j, _, err := Open(conf, m.now())
		if err != nil {
			t.Fatal(err)
		}
		send := func(key string, a Answer) {
			n, err := j.Send(Send{ID: key, Key: key, Cost: limit.One}, m.now())
			if a.Counts = m.now(); err == nil {
				err = j.answer(n, a)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m.passed += 1000 * time.Second
		send("A", Answer{Result: limit.Accepted})
		send("B", Answer{Result: limit.Limited, Hold: m.now().Add(hour * 3 / 2)})
		m.passed += 100 * time.Second
		send("C", Answer{Result: limit.Accepted})
		j.Close()
		m.passed += hour
		if c.between != nil {
			c.between(m, &conf)
		}
		began := m.now()
		m.passed += time.Second // reading the results takes its time
		_, h, err := Open(conf, began)
		if err != nil || len(h.Sends) != 3 {
			t.Fatalf("%s: %+v, %v", c.name, h, err)
		}
		age := began.Sub(time.Unix(0, h.Sends[0].Counts))
		held := time.Unix(0, h.Holds["B"]).Sub(began)
		if age != c.age || held != c.held {
			t.Errorf("%s: its age is %v, and B is held for %v; want %v and %v", c.name, age, held, c.age, c.held)
		}
	}
}

// In a run with sleep and a changed wall clock, times count by the time that has passed.
func TestClockWithinARun(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(m *machine)
		age     time.Duration
	}{
		{"nothing", func(m *machine) {}, time.Minute},
		{"slept", func(m *machine) { m.passed += time.Hour; m.slept += time.Hour }, time.Hour + time.Minute},
		{"set forward", func(m *machine) { m.off += 24 * time.Hour }, time.Minute},
		{"set back", func(m *machine) { m.off -= 24 * time.Hour }, time.Minute},
	} {
		m := &machine{boot: "b"}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		j, _, err := Open(conf, m.now())
		if err == nil {
			_, err = j.Send(Send{ID: "a", Key: "A", Cost: limit.One}, m.now())
		}
		if err == nil {
			err = j.answer(1, Answer{Result: limit.Accepted, Counts: m.now()})
		}
		c.between(m)
		if err == nil {
			_, err = j.Send(Send{ID: "b", Key: "A", Cost: limit.One}, m.now())
		}
		if err == nil {
			err = j.answer(2, Answer{Result: limit.Accepted, Counts: m.now(), Hold: m.now().Add(time.Hour)})
		}
		m.passed += time.Minute
		_, h, oerr := Open(conf, m.now())
		if err != nil || oerr != nil || len(h.Sends) != 2 {
			t.Fatalf("%+v, %v, %v", h, err, oerr)
		}
		for i, want := range []time.Duration{c.age, time.Minute} {
			if age := m.now().Sub(time.Unix(0, h.Sends[i].Counts)); age != want {
				t.Errorf("%s: send %d is %v old, want %v", c.name, i, age, want)
			}
		}
		if held := time.Unix(0, h.Holds["A"]).Sub(m.now()); held != 59*time.Minute {
			t.Errorf("%s: it is held for %v", c.name, held)
		}
	}
}

// A request in flight may arrive after its timeout, if the machine slept meanwhile: later by the
// length of the sleep.
func TestUnansweredInSleep(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(m *machine)
		counts  time.Duration // after it was sent
	}{
		{"killed", func(m *machine) { m.passed += time.Hour }, 10*time.Second + Late},
		{"at once", func(m *machine) { m.passed += 3 * time.Second }, 3*time.Second + Late},
		{"slept", func(m *machine) { m.passed += time.Hour; m.slept += 20 * time.Minute }, 20*time.Minute + 10*time.Second + Late},
		{"slept all the time", func(m *machine) { m.passed += time.Hour; m.slept += time.Hour }, time.Hour + Late},
		{"no timeout", func(m *machine) { m.passed += time.Hour }, time.Hour + Late}, // however long it took, its answer may have come
		{"nobody knows", func(m *machine) { m.passed += time.Hour; m.boot = "other" }, time.Minute + Late},
	} {
		m := &machine{boot: "b"}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		if c.name == "no timeout" {
			conf.Timeout = 0
		}
		j, _, err := Open(conf, m.now())
		sent := m.now()
		if err == nil {
			_, err = j.Send(Send{ID: "a", Key: "A", Cost: limit.One}, sent)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.name == "nobody knows" { // but that a minute passed until this
			m.passed += time.Minute
			if _, err := j.Send(Send{ID: "b", Key: "B", Cost: limit.One}, m.now()); err != nil {
				t.Fatal(err)
			}
			m.passed -= time.Minute
		}
		c.between(m)
		began := m.now()
		m.passed += time.Second
		_, h, err := Open(conf, began)
		if c.name == "nobody knows" {
			sent = began.Add(-time.Minute)
		}
		if err != nil || len(h.Sends) == 0 || time.Unix(0, h.Sends[0].Counts).Sub(sent) != c.counts {
			t.Errorf("%s: %+v, %v; want it to count until %v", c.name, h, err, c.counts)
		}
	}
}
