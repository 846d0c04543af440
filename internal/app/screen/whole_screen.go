package screen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Whole is what fills a terminal, in place of its last lines. One goroutine calls both functions.
type Whole struct {
	// Draw returns the lines of so many columns and rows. said are the latest lines of the Screen, without colours.
	Draw func(columns, rows int, said []string) []string
	// Press is told each key: a character, or a name such as "up". If it returns false, the terminal is as before again.
	Press func(key string) bool
}

const (
	// The other buffer of the terminal has no scrollback. In it no line is wrapped, and the cursor is hidden.
	enters = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
	leaves = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
	// mostHeld bounds the text that waits until the terminal is as before. More of it is shown there at once.
	mostHeld = 1 << 20
	// mostSaid is how many of the latest lines are kept for Draw.
	mostSaid = 200
)

// whole is a Whole on a terminal.
type whole struct {
	Whole
	screen *Screen
	tty    *os.File
	before *term.State
	keys   chan string
	leave  chan struct{} // closed: the terminal is to be as before
	left   chan struct{} // closed: it is

	// Only the goroutine that draws uses these.
	columns, rows int
	shown         []string

	// The lock of the Screen guards these.
	held  []byte
	said  []string
	stale bool // the terminal has lost what was shown
}

// CanFill says why the terminal cannot be filled; nil: it can.
func (s *Screen) CanFill() error {
	if s.size == nil {
		return errors.New("standard error is no terminal")
	}
	if os.Getenv("TERM") == "dumb" {
		return errors.New("TERM is dumb: the cursor of such a terminal does not move")
	}
	tty, err := openKeys()
	if err != nil {
		return fmt.Errorf("no keys can be read: %w", err)
	}
	return tty.Close()
}

// openKeys opens the terminal of the process. Standard input may be a file of requests.
func openKeys() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// Fill fills the terminal until leave is called, or Press returns false. What is written to the Screen meanwhile stands
// on the terminal after that. Lines of Follow are not shown meanwhile.
func (s *Screen) Fill(c Whole) (leave func(), err error) {
	tty, err := openKeys()
	if err != nil {
		return nil, err
	}
	w := &whole{Whole: c, screen: s, tty: tty, keys: make(chan string, 16), leave: make(chan struct{}),
		left: make(chan struct{})}
	if err := w.control(func(fd int) (err error) { w.before, err = term.MakeRaw(fd); return err }); err != nil {
		tty.Close()
		return nil, err
	}
	s.mu.Lock()
	s.wipeLocked()
	s.whole = w
	_, _ = io.WriteString(s.w, enters)
	s.mu.Unlock()
	go w.read()
	go w.follow()
	return sync.OnceFunc(func() { close(w.leave); <-w.left }), nil
}

// control does something with the terminal. File.Fd would make Read go on after Close.
func (w *whole) control(do func(fd int) error) error {
	conn, err := w.tty.SyscallConn()
	if err != nil {
		return err
	}
	bad := conn.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(bad, err)
}

// read reads keys until the terminal is as before.
func (w *whole) read() {
	b := make([]byte, 256)
	for {
		n, err := w.tty.Read(b)
		if err != nil {
			return
		}
		for _, key := range pressed(b[:n]) {
			select {
			case w.keys <- key:
			case <-w.left:
				return
			}
		}
	}
}

func (w *whole) follow() {
	defer w.restore() // also if Draw or Press panics
	t := time.NewTicker(rewriteEvery)
	defer t.Stop()
	for {
		if len(w.keys) == 0 {
			w.draw()
		}
		select {
		case <-w.leave:
			return
		case <-t.C:
		case key := <-w.keys:
			if !w.Press(key) {
				return
			}
		}
	}
}

// draw writes the lines that are not on the terminal already.
func (w *whole) draw() {
	s := w.screen
	columns, rows := s.size()
	s.mu.Lock()
	said := slices.Clone(w.said)
	s.mu.Unlock()
	lines := w.Draw(columns, rows, said)
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if w.stale || columns != w.columns || rows != w.rows {
		b.WriteString("\x1b[2J")
		w.stale, w.columns, w.rows, w.shown = false, columns, rows, make([]string, rows)
	}
	for i := range w.shown {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		if line != w.shown[i] {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, line)
			w.shown[i] = line
		}
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(s.w, b.String())
	}
}

// restore makes the terminal as it was, and writes there what was said meanwhile.
func (w *whole) restore() {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = nil
	_, _ = io.WriteString(s.w, leaves)
	_ = w.control(func(fd int) error { return term.Restore(fd, w.before) })
	_, _ = s.w.Write(w.held)
	_ = w.tty.Close()
	close(w.left)
}

// holdLocked keeps whole lines until the terminal is as before.
func (w *whole) holdLocked(b []byte) {
	w.held = append(w.held, b...)
	for line := range strings.Lines(string(b)) {
		w.said = append(w.said, bare(strings.TrimRight(line, "\n")))
	}
	w.said = slices.Delete(w.said, 0, max(len(w.said)-mostSaid, 0))
	if len(w.held) < mostHeld {
		return
	}
	// A terminal that sends single keys does not return to the first column at a line feed.
	text := strings.ReplaceAll(string(w.held), "\n", "\r\n")
	_, _ = io.WriteString(w.screen.w, leaves+text+enters)
	w.held, w.stale = w.held[:0], true
}

// bare returns a text without its colours.
func bare(text string) string {
	var b strings.Builder
	for {
		before, after, coloured := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !coloured {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

// keyNames are the sequences that a terminal sends for a key, behind the escape character.
var keyNames = map[string]string{
	"[A": "up", "[B": "down", "[Z": "backtab", "OA": "up", "OB": "down",
}

// pressed returns the keys of what a terminal sent at once: characters that can be typed, and names of others. It leaves
// out keys that have neither.
func pressed(b []byte) (keys []string) {
	text := string(b)
	for text != "" {
		if text == "\x1b" {
			return append(keys, "esc")
		}
		if text[0] == '\x1b' {
			var name string
			name, text = sequence(text[1:])
			if keyNames[name] != "" {
				keys = append(keys, keyNames[name])
			}
			continue
		}
		r := text[0] // a byte of a character that is no ASCII is no key
		text = text[1:]
		switch {
		case r == '\r' || r == '\n':
			keys = append(keys, "enter")
		case r == '\t':
			keys = append(keys, "tab")
		case r == '\b' || r == 0x7f:
			keys = append(keys, "backspace")
		case r == 3:
			keys = append(keys, "ctrl+c")
		case r >= ' ' && r < 0x7f:
			keys = append(keys, string(rune(r)))
		}
	}
	return keys
}

// sequence cuts a sequence from a text, which follows an escape character: up to its letter, as in [A or [1;5A.
func sequence(text string) (name, rest string) {
	end := 1
	if text[0] == '[' || text[0] == 'O' {
		for end < len(text) && (text[end] < '@' || text[end] > '~') {
			end++
		}
		end = min(end+1, len(text))
	}
	return text[:end], text[end:]
}
