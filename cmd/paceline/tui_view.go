//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/observe"
)

// runView is what the whole screen of a run shows.
type runView struct {
	title   string
	began   time.Time
	now     time.Time
	p       run.Progress
	parts   []observe.Snapshot // one for each part of the input with limits of its own
	keys    []ctlKey
	most    int // in flight
	keyless bool
	chosen  int     // the key that a pause is of
	typed   *string // the text of another limit, as far as it is typed; nil: none is asked for
	limits  []string
	answer  string // of the last change
	refused bool   // the answer is an error
	said    []string
}

// Rows of a section in colours, beside screen.Green and screen.Red.
const (
	bold   = "1"
	yellow = "33"
)

// section is a table of the screen, or a list of lines. Where there is not room for all of its rows, it shows some.
type section struct {
	head   string
	rows   []string
	colors []string // of each row; empty: none
	seen   int      // a row that is shown in any case
	least  int      // rows that have room before other sections have more
	more   int      // rows that are left out
}

// draw returns the lines of the screen.
func (v *runView) draw(columns, rows int, paint func(color, text string) string) (lines []string) {
	add := func(color, line string) {
		if line = screen.Cut(line, columns); color != "" {
			line = paint(color, line)
		}
		lines = append(lines, line)
	}
	since := "for " + screen.Length(v.now.Sub(v.began))
	title := screen.Cut(v.title, max(columns-len(since)-2, 8))
	add(bold, screen.Pad(title, columns-len(since), false)+since)
	line := runLine(&v.p)
	shown := slices.DeleteFunc(slices.Clone(line), func(p screen.Part) bool {
		return p.Rank == rankBar || p.Rank == rankWhy || p.Rank == rankAnswers || p.Rank == rankInFlight
	})
	if v.p.Total > 0 {
		_, ended, all := v.p.Ended()
		share := fmt.Sprintf("  %3d %%", min(100*ended/all, 100))
		add("", bar(ended, all, max(columns-len(share)-2, barCells))+share)
	}
	lines = append(lines, shown.Fit(columns, paint))
	counts := fmt.Sprintf("%s waiting, %s in flight of %s", text.Thousands(int64(v.p.Waiting)),
		text.Thousands(int64(v.p.InFlight)), text.Thousands(int64(v.most)))
	if v.p.Latency != nil {
		counts += "; answers in " + v.p.Latency.String()
	}
	add("", counts)
	if v.p.Why != "" {
		add(yellow, "waiting: "+waitText(&v.p))
	}
	foot := v.foot()
	room, all := rows-len(lines)-len(foot), v.sections()
	airy := isAiry(all, room)
	if airy {
		room -= len(all)
	}
	for _, s := range fitSections(all, room) {
		if airy {
			lines = append(lines, "")
		}
		add(bold, s.head)
		for i, row := range s.rows {
			add(s.colors[i], row)
		}
	}
	lines = lines[:min(len(lines), max(rows-len(foot), 0))]
	for len(lines) < rows-len(foot) {
		lines = append(lines, "")
	}
	for i, text := range foot {
		color := ""
		if i == 0 && v.refused {
			color = screen.Red
		}
		add(color, text)
	}
	return lines[:min(len(lines), rows)]
}

// foot is the last two lines: what the last key did, and what keys do.
func (v *runView) foot() []string {
	if v.typed != nil {
		return []string{"another rate, such as 10/s; of several limits, the old one first (" + strings.Join(v.limits, ", ") + ")",
			"limit: " + *v.typed + "_   (enter, or esc)"}
	}
	keys := "p pause  + - 0 in flight  l limit  q progress line  ctrl-c stop"
	if len(v.keys) > 1 {
		keys = "p pause all  tab, space pause one  + - 0 in flight  l limit  q line  ctrl-c stop"
	}
	return []string{v.answer, keys}
}

func (v *runView) sections() (all []section) {
	all = append(all, v.limitSection(), v.keySection())
	if len(v.parts) > 1 {
		all = append(all, v.partSection())
	}
	all = append(all, v.hostSection(), v.failureSection(), v.saidSection())
	return slices.DeleteFunc(all, func(s section) bool { return len(s.rows) == 0 })
}

// tabled makes a section of a table whose first row is the heading.
func tabled(t *screen.Table, colors []string, least int) section {
	var b strings.Builder
	_ = t.Write(&b, 0)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	return section{head: lines[0], rows: lines[1:], colors: colors, least: least}
}

func right(n int64) string { return screen.Pad(text.Thousands(n), 7, true) }
func flying(n int) string  { return screen.Pad(text.Thousands(int64(n)), len("in flight"), true) }

// mostRows bounds the rows of a section that are worked out: a run may have thousands of keys.
const mostRows = 100

// limitSection shows each limit, in the order of the Snapshots: rows that change places cannot be read.
func (v *runView) limitSection() (s section) {
	var t screen.Table
	var colors []string
	binds := 0 // the row of the limit for which most wait
	most, all := 0, 0
	t.Head("limits", "", "used", "", "waiting", "next")
	for i := range v.parts {
		for _, l := range v.parts[i].Limits {
			if all++; all > mostRows {
				continue
			}
			key, color, waiting := "", "", ""
			if !v.keyless {
				key = text.Sanitize(l.Key)
			}
			if l.Waiting > 0 {
				color, waiting = yellow, right(int64(l.Waiting))
			}
			if l.Waiting > most {
				most, binds = l.Waiting, all-1
			}
			t.Row(limitName(&l, v.parts[i].Name), key, text.Thousands(l.Used)+" of "+text.Thousands(l.Allowed),
				bar(int(l.Used), int(max(l.Allowed, 1)), barCells), waiting, v.nextWords(&l))
			colors = append(colors, color)
		}
	}
	s = tabled(&t, colors, 2)
	s.seen, s.more = binds, all-len(s.rows)
	return s
}

// limitName names a limit as a user gives it, with what it is of.
func limitName(l *observe.LimitState, model string) string {
	name := l.Name
	if l.PerWindow > 0 {
		if name = (rate.Rate{N: l.PerWindow, Per: l.Window}).String(); l.Unit != "requests" {
			name += " " + l.Unit
		}
	}
	if what := cmp.Or(l.Resource, l.Model, model); what != "" {
		name += " of " + what
	}
	return text.Sanitize(name)
}

// nextWords say when one more may go.
func (v *runView) nextWords(l *observe.LimitState) (words string) {
	switch left := l.Next.Sub(v.now); {
	case l.Why == text.ByUser:
		words = "paused"
	case l.Why != "" && l.PausedUntil.IsZero():
		words = "never"
	case l.NextUnknown:
		words = "at an answer"
	case left >= time.Second:
		words = "in " + screen.Length(left)
	}
	if l.Fits > 0 {
		words = strings.TrimPrefix(words+fmt.Sprintf(", %s fit", text.Thousands(l.Fits)), ", ")
	}
	return words
}

// keySection shows each key, its state, and how its requests ended.
func (v *runView) keySection() section {
	var t screen.Table
	var colors []string
	t.Head("  keys", " served", "refused", "in flight", "state")
	from := max(min(v.chosen-mostRows/2, len(v.keys)-mostRows), 0)
	for i, k := range v.keys[from:min(from+mostRows, len(v.keys))] {
		var sum observe.Counts
		inFlight := 0
		for _, part := range v.parts {
			for _, of := range part.Keys {
				if of.Name == k.Name || v.keyless {
					observe.AddCounts(&sum, &of.Counts)
					inFlight += of.InFlight
				}
			}
		}
		mark, color, state := "  ", "", k.State
		if from+i == v.chosen && len(v.keys) > 1 {
			mark = "> "
		}
		if k.State != observe.KeyOK {
			color = screen.Red
		}
		if !k.Until.IsZero() {
			state += " until " + k.Until.Local().Format(time.DateTime)
		}
		if k.Why != "" {
			state += ", " + k.Why
		}
		t.Row(mark+text.Sanitize(cmp.Or(k.Name, "all requests")), right(sum.Accepted), right(sum.Limited), flying(inFlight),
			text.Sanitize(state))
		colors = append(colors, color)
	}
	s := tabled(&t, colors, 2)
	s.seen, s.more = v.chosen-from, len(v.keys)-len(s.rows)
	return s
}

// partSection shows the parts of the input that have limits of their own, by model.
func (v *runView) partSection() section {
	var t screen.Table
	t.Head("models", "waiting", "in flight", " served", "refused")
	for i := range v.parts {
		s := &v.parts[i]
		t.Row(text.Sanitize(cmp.Or(s.Name, "others")), right(int64(s.Waiting)), flying(s.InFlight), right(s.Accepted),
			right(s.Limited))
	}
	return tabled(&t, make([]string, len(v.parts)), 1)
}

// hostSection shows how long the answers of each host take, if there are several.
func (v *runView) hostSection() section {
	var t screen.Table
	n := 0
	t.Head("answers of", " number", "p50", "p99", "longest")
	for i := range v.parts {
		for _, u := range v.parts[i].Upstream {
			n++
			t.Row(text.Sanitize(u.Host), right(u.Count), rounded(u.P50), rounded(u.P99), rounded(u.Max))
		}
	}
	if n < 2 {
		return section{}
	}
	return tabled(&t, make([]string, n), 1)
}

// rounded writes a duration for people who look at it.
func rounded(d time.Duration) string {
	if d < time.Second {
		return text.Span(d.Round(time.Millisecond))
	}
	return text.Span(d.Round(10 * time.Millisecond))
}

func (v *runView) failureSection() section {
	s := section{head: "failures of the last minute", least: 2}
	for _, f := range v.p.Lately {
		line := fmt.Sprintf("%d × %s (%s)", f.Attempts, f.What, fate(&f))
		if f.Example != "" {
			line += ", such as: " + f.Example
		}
		s.rows, s.colors = append(s.rows, text.Sanitize(line)), append(s.colors, screen.Red)
	}
	return s
}

func (v *runView) saidSection() section {
	return section{head: "messages", rows: v.said, colors: make([]string, len(v.said)), seen: len(v.said) - 1, least: 2}
}

// isAiry reports whether there is room for an empty line before each section.
func isAiry(all []section, room int) bool {
	for i := range all {
		room -= 2 + min(len(all[i].rows), all[i].least+2)
	}
	return room >= 0
}

// fitSections leaves out rows until the sections take no more than room lines. Of each section the least rows have room
// first. Then the sections have one row more in turn.
func fitSections(all []section, room int) []section {
	given := make([]int, len(all))
	for i := range all {
		n := min(len(all[i].rows), all[i].least)
		if n+1 > room {
			n = max(room-1, 0)
		}
		given[i], room = n, room-n-1
		if n == 0 {
			room++
		}
	}
	for more := true; more && room > 0; {
		more = false
		for i := range all {
			if room > 0 && given[i] > 0 && given[i] < len(all[i].rows) {
				given[i], room, more = given[i]+1, room-1, true
			}
		}
	}
	var fit []section
	for i, s := range all {
		n := given[i]
		if n == 0 {
			continue
		}
		if left := len(s.rows) - n + s.more; left > 0 {
			s.head = noted(s.head, fmt.Sprintf(" (%d more)", left))
		}
		from := max(min(s.seen-n+1, len(s.rows)-n), 0)
		s.rows, s.colors = s.rows[from:from+n], s.colors[from:from+n]
		fit = append(fit, s)
	}
	return fit
}

// noted puts a note behind the first heading of a table, into the spaces there if they are enough.
func noted(head, note string) string {
	end := len(head) - len(strings.TrimLeft(head, " "))
	for end < len(head) && !strings.HasPrefix(head[end:], "  ") {
		end++
	}
	if free := len(head[end:]) - len(strings.TrimLeft(head[end:], " ")); free > len(note) {
		return head[:end] + note + head[end+len(note):]
	}
	return head + " " + note
}
