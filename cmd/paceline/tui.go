//go:build unix

package main

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe"
)

const (
	// lookEvery is the least time between two looks at the run. Keys may come faster.
	lookEvery = 150 * time.Millisecond
	// lookPart is the part of the time that looks may take: a fiftieth. A run may have thousands of keys.
	lookPart = 50
)

// runScreen is the whole screen of a run.
type runScreen struct {
	runView
	look   func(*runView) // takes in the present state of the run
	took   time.Duration  // by the latest look
	change func(daemon.Turn) (said string, err error)
	stop   func() // what ctrl-c does
}

func canFill(s *screen.Screen) error { return s.CanFill() }

// fill fills the terminal with the state of a run, until leave is called or the user closes it.
func (f *runFlags) fill(r *run.Run, in *runInput, errs *screen.Screen) (leave func()) {
	if !f.console.tui {
		return func() {}
	}
	c := &controlledRun{r, "run", in.name, time.Now(), errs.Line}
	m := &runScreen{look: c.looked(), change: func(t daemon.Turn) (string, error) { return c.change(t, "--tui") }}
	m.title, m.began = "paceline run "+text.Sanitize(in.name), c.began
	// The terminal sends ctrl-c as a key now. Others of its group are to end, too, such as the program before a pipe.
	m.stop = func() { _ = syscall.Kill(0, syscall.SIGINT) }
	leave, err := errs.Fill(screen.Whole{Press: m.press, Draw: func(columns, rows int, said []string) []string {
		m.lookIfDue(time.Since(m.now))
		m.said = said
		return m.draw(columns, rows, errs.Paint)
	}})
	if err != nil {
		errs.Line("--tui: " + err.Error() + "; the run goes on with the progress line")
		return func() {}
	}
	return leave
}

// lookIfDue looks at the run if the latest look is long enough ago.
func (m *runScreen) lookIfDue(ago time.Duration) {
	if ago < max(lookEvery, lookPart*m.took) {
		return
	}
	began := time.Now()
	m.look(&m.runView)
	m.took = time.Since(began)
}

// looked returns what takes the present state of the run into a view.
func (c *controlledRun) looked() func(*runView) {
	progress, sources := usually(c.Progress), c.Sources()
	return func(v *runView) {
		v.now, v.p = time.Now(), progress()
		v.parts = v.parts[:0]
		for _, s := range sources {
			v.parts = append(v.parts, s.Snapshot())
		}
		v.keys, v.keyless = keysOf(v.parts), len(c.Keys()) == 0
		if v.keyless && len(v.keys) > 0 {
			v.keys[0].Name = ""
		}
		v.chosen = max(min(v.chosen, len(v.keys)-1), 0)
		v.most = c.InFlight()
		v.limits = c.Limits()
	}
}

// press does what a key is for. It returns false if the screen is to be closed.
func (m *runScreen) press(key string) bool {
	if key == "ctrl+c" {
		m.stop()
		return true
	}
	if m.typed != nil {
		m.typeLimit(key)
		return true
	}
	switch key {
	case "q":
		return false
	case "p":
		m.turn(daemon.Turn{Knob: knobOf(m.keys)})
	case "tab", "down":
		m.choose(1)
	case "backtab", "up":
		m.choose(-1)
	case " ":
		if m.chosen < len(m.keys) {
			m.turn(daemon.Turn{Knob: knobOf(m.keys[m.chosen : m.chosen+1]), Name: m.keys[m.chosen].Name})
		}
	case "+", "-":
		step := max(m.most/10, 1)
		if key == "-" {
			step = -step
		}
		m.turn(daemon.Turn{Knob: daemon.Concurrency, Value: strconv.Itoa(max(m.most+step, 1))})
	case "0":
		m.turn(daemon.Turn{Knob: daemon.Concurrency, Value: "0"})
	case "l":
		m.typed = new(string)
	}
	return true
}

// choose goes on to the next of the keys, or back.
func (m *runScreen) choose(by int) {
	if n := len(m.keys); n > 0 {
		m.chosen = (m.chosen + by + n) % n
	}
}

// knobOf is what ends the pause of these keys if a user has paused all of them, and otherwise pauses them.
func knobOf(keys []ctlKey) string {
	for _, k := range keys {
		if k.State != observe.KeyBanned && k.Why != text.ByUser {
			return daemon.Pause
		}
	}
	return daemon.Resume
}

// typeLimit takes a key of the text of another limit.
func (m *runScreen) typeLimit(key string) {
	switch text := *m.typed; {
	case key == "esc":
		m.typed = nil
	case key == "enter":
		m.typed = nil
		if text = strings.TrimSpace(text); text != "" {
			m.turn(m.limitTurn(text))
		}
	case key == "backspace":
		*m.typed = text[:max(len(text)-1, 0)]
	case len(key) == 1:
		*m.typed += key
	}
}

// limitTurn reads RATE, or NAME RATE.
func (m *runScreen) limitTurn(text string) daemon.Turn {
	t := daemon.Turn{Knob: daemon.Limit, Value: text}
	if i := slices.IndexFunc(m.limits, func(name string) bool { return strings.HasPrefix(text, name+" ") }); i >= 0 {
		t.Name = m.limits[i]
		t.Value = strings.TrimSpace(text[len(t.Name):])
	}
	return t
}

// turn makes a change as paceline ctl does.
func (m *runScreen) turn(t daemon.Turn) {
	said, err := m.change(t)
	if m.answer, m.refused = said, err != nil; err != nil {
		m.answer = text.Sanitize(err.Error())
	}
	m.look(&m.runView)
}
