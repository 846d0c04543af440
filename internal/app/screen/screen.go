package screen

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/paceline-go/paceline/internal/text"
)

// rewriteEvery is how often a terminal has its last lines rewritten: often enough to look alive, too rarely to flicker.
const rewriteEvery = 200 * time.Millisecond

// Rarely is the Config.Every of a log that somebody reads later, such as that of nohup, systemd or CI.
const Rarely time.Duration = -1

// rarely is the pause before the next line of such a log: a few lines show that all goes well, and a night has not
// thousands of them.
func rarely(elapsed time.Duration) time.Duration {
	switch {
	case elapsed < 5*time.Minute:
		return 30 * time.Second
	case elapsed < time.Hour:
		return time.Minute
	}
	return 5 * time.Minute
}

func always(every time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return every }
}

// Config is what a Screen shows.
type Config struct {
	// Every is how often a line tells how far the verb is where no lines are rewritten. If zero, never,
	// and if Rarely, ever more rarely as the verb goes on: see rarely.
	Every time.Duration
	// Plain says that no lines are rewritten, not even on a terminal.
	Plain bool
	// After is how long the verb has to run before anything tells how far it is.
	After time.Duration
	// Color is "always" or "never"; anything else leaves it to the terminal and the environment
	// (NO_COLOR, CLICOLOR_FORCE).
	Color string
}

// Screen is standard error. Safe for concurrent use.
type Screen struct {
	pause    func(elapsed time.Duration) time.Duration // until Follow's next look; nil: it has none
	after    time.Duration
	color    bool
	size     func() (columns, rows int) // of the terminal; nil: there is none
	rewrites bool                       // whether lines are rewritten

	mu     sync.Mutex
	w      io.Writer
	drawn  []int    // how many columns each line has that is to be rewritten
	before []string // the lines at the last tick, if none are rewritten
	whole  *whole   // what fills the terminal; nil: nothing does
}

// New returns a Screen that writes to w.
func New(w io.Writer, c Config) *Screen {
	s := &Screen{w: w, after: c.After}
	switch {
	case c.Every == Rarely:
		s.pause = rarely
	case c.Every > 0:
		s.pause = always(c.Every)
	}
	terminal := IsTerminal(w)
	force := os.Getenv("CLICOLOR_FORCE")
	s.color = c.Color == "always" || c.Color != "never" && os.Getenv("NO_COLOR") == "" &&
		(terminal && os.Getenv("TERM") != "dumb" || force != "" && force != "0")
	if s.rewrites = terminal && !c.Plain && os.Getenv("TERM") != "dumb"; s.rewrites {
		s.pause = always(rewriteEvery)
	}
	if terminal {
		fd := int(w.(*os.File).Fd())
		s.size = func() (columns, rows int) {
			wide, rows, err := term.GetSize(fd)
			if err != nil || wide < 1 || rows < 1 {
				return 80, 24
			}
			return wide, rows
		}
	}
	return s
}

// IsTerminal says whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Paint puts text in a colour, if the Screen shows colours.
func (s *Screen) Paint(color, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Line writes a line that may have text of strangers in it. On a terminal it is broken at spaces.
func (s *Screen) Line(line string) { s.Ours(text.Sanitize(line)) }

// Ours writes a line of our own, with its colours. On a terminal it is broken at spaces.
func (s *Screen) Ours(text string) {
	if s.size != nil {
		wide, _ := s.size()
		text = Fit(text, wide)
	}
	_, _ = s.Write([]byte(text + "\n"))
}

// Write implements io.Writer, for a log and what programs read. It has to be given whole lines, and
// writes them as they are, above those that are rewritten.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != nil {
		s.whole.holdLocked(b)
		return len(b), nil
	}
	s.wipeLocked()
	return s.w.Write(b)
}

// wipeLocked erases the lines that were drawn, and leaves the cursor where they began. If the
// terminal has become narrower, they take more rows by now.
func (s *Screen) wipeLocked() {
	if len(s.drawn) == 0 {
		return
	}
	wide, _ := s.size()
	up := -1
	for _, n := range s.drawn {
		up += max((n+wide-1)/wide, 1)
	}
	_, _ = io.WriteString(s.w, "\r"+strings.Repeat("\x1b[A", up)+"\x1b[J")
	s.drawn = s.drawn[:0]
}

// Follow shows the lines that look returns, until the function that it returns is called. Where
// lines are not rewritten, the first is shown each time, and another only if it is new. One
// goroutine at a time calls look.
func (s *Screen) Follow(look func() []Line) (stop func()) {
	if s.pause == nil {
		return func() {}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		began := time.Now()
		t := time.NewTimer(s.pause(0))
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if time.Since(began) >= s.after && !s.isFilled() {
					s.show(look())
				}
				t.Reset(s.pause(time.Since(began)))
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-finished
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wipeLocked()
	})
}

func (s *Screen) isFilled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole != nil
}

func (s *Screen) show(lines []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != nil { // since the lines were computed
		return
	}
	if !s.rewrites {
		s.tellLocked(lines)
		return
	}
	s.wipeLocked()
	wide, rows := s.size()
	var texts []string
	for _, l := range lines[:min(len(lines), max(rows-1, 1))] {
		// The last column stays free: after it some terminals go on in the next row.
		if text := l.Fit(max(wide-1, 1), s.Paint); text != "" {
			texts = append(texts, text)
			s.drawn = append(s.drawn, Width(text))
		}
	}
	_, _ = io.WriteString(s.w, strings.Join(texts, "\n"))
}

// tellLocked writes the first line, and those of the others that say something new.
func (s *Screen) tellLocked(lines []Line) {
	var b strings.Builder
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.Fit(0, s.Paint)
		if texts[i] != "" && (i == 0 || !slices.Contains(s.before, texts[i])) {
			b.WriteString(texts[i] + "\n")
		}
	}
	s.before = texts
	_, _ = io.WriteString(s.w, b.String())
}
