package share

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// news keeps the events of a Member's turns that people are to see. Each event is reported once
// when it begins and once when it is over.
type news struct {
	err   error         // of the last turn
	part  int           // the process goes on with 1/part of the limit; 0: it does not
	alone mono.Time     // since when
	quiet time.Duration // for how long nothing is granted, from the last turn on
	until mono.Time     // when that ends, by the node's clock
	there bool          // a turn of this Member has been put
	items []item
}

// item is one event: for the Logger, and for the driver's Events.
type item struct {
	level slog.Level
	kind  string // of observe.Event
	err   error
	text  string
}

func (n *news) say(level slog.Level, kind string, err error, text string, args ...any) {
	n.items = append(n.items, item{level, kind, err, fmt.Sprintf(text, args...)})
}

// turned reads how a turn ended at p, by the node's clock, and notes the events that people are to
// see.
func (n *news) turned(p mono.Time, of *node.Node, fallback Fallback, err error) {
	if errors.Is(err, node.ErrWait) {
		return
	}
	was := n.err
	n.err = err
	from, part, on := of.Alone()
	switch {
	case err == nil && was != nil:
		n.say(slog.LevelInfo, observe.EventBack, nil, "the shared limit is fetched again")
	case err != nil && (was == nil || was.Error() != err.Error()):
		text := "the shared limit cannot be fetched: nothing is sent beyond what was granted"
		switch {
		case atOnce(of.Limiter()):
			text = "the shared limit cannot be fetched: this process goes on with the places that it has, for a minute"
		case part > 0:
			text += fmt.Sprintf(" for %s, and then 1/%d of the limit until it can", whole(from.Sub(p)), part)
		case fallback == Split && node.Away(err):
			text += ", and there is no part of it for this process to go on with"
		}
		n.say(slog.LevelWarn, observe.EventDown, err, "%s", text)
	}
	switch {
	case n.part == 0 && on:
		n.part, n.alone = part, from
		n.say(slog.LevelWarn, observe.EventAlone, nil,
			"without the store this process goes on with 1/%d of the shared limit: more than the limit is sent if others "+
				"still reach the store", part)
	case n.part > 0 && !on:
		why := "the store is back"
		if err != nil {
			why = "it was stopped, and does not know what became of the store meanwhile"
		}
		n.say(slog.LevelWarn, observe.EventBack, nil,
			"%s: this process no longer goes on with 1/%d of the shared limit, after %s", why, n.part, whole(p.Sub(n.alone)))
		n.part = 0
	}
	if err == nil {
		n.silent(p, of.View().Quiet)
	}
}

// short is the longest silence that is no warning to a process that joins others. It is that of a
// limit by the second.
const short = 10 * time.Second

// silent notes, at p, that nothing is granted for a while.
func (n *news) silent(p mono.Time, q node.Quiet) {
	was, newcomer := n.quiet, !n.there
	n.quiet, n.until, n.there = q.For, p.Add(q.For), true
	if was > 0 || q.For <= 0 {
		return
	}
	level := slog.LevelWarn
	// Several processes that begin together find this, and nothing is wrong then. The first of them says how
	// long, why, and how that is ended.
	if q.For < short && q.Why == nil && newcomer {
		level = slog.LevelInfo
	}
	if q.Why == nil {
		q.Why = errors.New("share: another process has found that the store does not know what was granted before")
	}
	n.say(level, observe.EventPaused, q.Why,
		"nothing is sent for %s, until nothing counts that may have been granted before", whole(q.For))
}

func whole(d time.Duration) string { return text.Span(max(d, 0).Round(100 * time.Millisecond)) }

// tell returns a function that passes on the events so far. Call that without the Member's lock,
// since a Logger may call the Member.
func (n *news) tell(c *Config, note func(kind, text string)) func() {
	items := n.items
	n.items = nil
	return func() {
		for _, i := range items {
			attrs, text := []slog.Attr{slog.String("limit", c.Name)}, c.Name+": "+i.text
			if i.err != nil {
				attrs, text = append(attrs, slog.Any("error", i.err)), text+": "+strings.TrimPrefix(i.err.Error(), "share: ")
			}
			if c.Logger != nil {
				c.Logger.LogAttrs(context.Background(), i.level, i.text, attrs...)
			}
			if note != nil {
				note(i.kind, text)
			}
		}
	}
}
