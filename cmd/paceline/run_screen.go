package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/internal/shown"
)

const (
	green = "32"
	red   = "31"
)

// screen is standard error: lines, and on a terminal a last line that is rewritten. Safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	fd    int // of the terminal, or -1
	color bool
	every time.Duration // 0: no progress
	shown bool          // there is a line to be rewritten
}

func newScreen(w io.Writer, f *runFlags) (*screen, error) {
	s := &screen{w: w, fd: -1}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.fd = int(file.Fd())
	}
	force := os.Getenv("CLICOLOR_FORCE")
	s.color = f.color == "always" ||
		f.color == "auto" && os.Getenv("NO_COLOR") == "" && (s.fd >= 0 || force != "" && force != "0")
	switch f.progress {
	case "off":
		s.fd = -1
	case "auto":
		// Results and a line that is rewritten do not go together on one terminal.
		if f.out == "-" && f.nowhere == "" && term.IsTerminal(int(os.Stdout.Fd())) {
			s.fd = -1
		}
		if s.fd >= 0 {
			s.every = 200 * time.Millisecond
		}
	default:
		d, err := time.ParseDuration(f.progress)
		if err != nil || d <= 0 {
			return nil, usageError{fmt.Errorf("--progress %q, expected auto, off, or a time such as 5s", f.progress)}
		}
		s.every = d
	}
	return s, nil
}

func (s *screen) paint(color, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// line writes what may have text of strangers in it.
func (s *screen) line(text string) { s.ours(shown.Text(text)) }

// ours writes text with colours.
func (s *screen) ours(text string) { _, _ = s.Write([]byte(text + "\n")) }

// Write implements io.Writer for the log: whole lines, above the one that is rewritten.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	return s.w.Write(b)
}

func (s *screen) clearLocked() {
	if s.shown {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// follow shows the progress until the function it returns is called.
func (s *screen) follow(r *batch.Run) (stop func()) {
	if s.every == 0 {
		return func() {}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		t := time.NewTicker(s.every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				s.show(s.progressText(r.Progress()))
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-finished
		s.mu.Lock()
		s.clearLocked()
		s.mu.Unlock()
	}
}

func (s *screen) show(text string) {
	if s.fd < 0 {
		s.ours(text)
		return
	}
	width, _, err := term.GetSize(s.fd)
	if err != nil || width < 20 {
		width = 80
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.w, "\r\x1b[K"+clip(text, width-1))
	s.shown = true
}

// clip cuts text to so many columns; colours take none.
func clip(text string, columns int) string {
	n, escape := 0, false
	for i, c := range text {
		switch {
		case c == '\x1b':
			escape = true
		case escape:
			escape = c != 'm'
		default:
			if n == columns {
				return text[:i] + "\x1b[0m"
			}
			n++
		}
	}
	return text
}

func (s *screen) progressText(p batch.Progress) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if p.Total > 0 {
		add("%d of %d done", p.Done, p.Total)
	} else {
		add("%d done", p.Done)
	}
	add("%d in flight", p.InFlight)
	add("%d waiting", p.Waiting)
	failed := fmt.Sprintf("%d failed", p.Dead+p.Expired)
	if p.Dead+p.Expired > 0 {
		failed = s.paint(red, failed)
	}
	parts = append(parts, failed)
	rate := fmt.Sprintf("%.1f/s", p.Rate)
	if p.Ceiling > 0 {
		rate += fmt.Sprintf(" (%.0f %% of the ceiling)", p.Percent)
	}
	parts = append(parts, rate)
	color := green
	if p.Rejected > 0 {
		color = red
	}
	parts = append(parts, s.paint(color, fmt.Sprintf("%d rejected", p.Rejected)))
	if p.ETA > 0 {
		add("ETA %v", max(p.ETA.Round(time.Second), time.Second))
	}
	if len(p.Down) > 0 {
		text := "nothing arrives at " + shown.Text(p.Down[0])
		if more := len(p.Down) - 1; more > 0 {
			text += fmt.Sprintf(" (and at %d more)", more)
		}
		parts = append(parts, s.paint(red, text))
	}
	if p.Why != "" {
		add("waiting for %s", shown.Text(p.Why))
	}
	return strings.Join(parts, ", ")
}
