package queue_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// line drives a queue by words: a step is an instant, an action and, after ->, its answer.
//
//	0s   submit a ttl=1s prio=2   -> ok
//	0s   take                     -> a 1
//	1s   retry a until=3s why=bad -> waiting
type line struct {
	*queue.Queue
	tickets map[string]queue.Ticket
}

func newLine(tb testing.TB, c queue.Config) *line {
	return &line{newQueue(tb, c), map[string]queue.Ticket{}}
}

func timeline(t *testing.T, c queue.Config, script string) {
	t.Helper()
	l := newLine(t, c)
	for step := range strings.Lines(script) {
		step = strings.TrimSpace(step)
		if step == "" {
			continue
		}
		if err := l.step(step); err != nil {
			t.Fatalf("%s\n%v", step, err)
		}
	}
}

// step does what a line of a script says, and returns an error if the answer is another, or the queue inconsistent.
func (l *line) step(step string) error {
	action, want, _ := strings.Cut(step, "->")
	words := strings.Fields(action)
	got := l.do(instant(words[0]), words[1], words[2:])
	if want = strings.TrimSpace(want); got != want {
		return fmt.Errorf("answered %q, want %q", got, want)
	}
	return l.Verify()
}

func instant(s string) mono.Time {
	switch s {
	case "min":
		return mono.Min
	case "max":
		return mono.Max
	}
	return mono.Time(duration(s))
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// do returns the answer in words; a panic as "panic: …".
func (l *line) do(now mono.Time, verb string, words []string) (answer string) {
	defer func() {
		if r := recover(); r != nil {
			answer = fmt.Sprintf("panic: %v", r)
		}
	}()
	name, options := "", map[string]string{}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			options[key] = value
		} else {
			name = w
		}
	}
	ticket := l.tickets[name]
	switch verb {
	case "submit":
		r := queue.Request{Cost: limit.One, Value: name}
		if options["id"] != "" {
			r.ID = options["id"]
		}
		if options["ttl"] != "" {
			r.TTL = duration(options["ttl"])
		}
		if options["renewal"] != "" {
			r.Renewal = duration(options["renewal"])
		}
		if options["prio"] != "" {
			n, err := strconv.Atoi(options["prio"])
			if err != nil {
				panic(err)
			}
			r.Priority = n
		}
		t, err := l.Submit(now, r)
		if err == nil {
			l.tickets[name] = t
		}
		return word(err)
	case "head":
		if t, r, ok := l.Head(now); ok {
			if l.tickets[r.Value.(string)] != t {
				return "another ticket"
			}
			return r.Value.(string)
		}
		return "none"
	case "take": // the head, if no name is given
		if name == "" {
			t, r, ok := l.Head(now)
			if !ok {
				return "none"
			}
			ticket, name = t, r.Value.(string)
		}
		return fmt.Sprintf("%s %d", name, l.Take(now, ticket))
	case "expire":
		var said []string
		for {
			e, ok := l.Expire(now)
			if !ok {
				break
			}
			said = append(said, e.Request.Value.(string)+" "+e.State.String())
		}
		if said == nil {
			return "none"
		}
		return strings.Join(said, ", ")
	case "wake":
		if t, ok := l.Wake(now); ok {
			return t.String()
		}
		return "none"
	case "lapse":
		return l.Lapse(now, ticket, options["why"]).State.String()
	case "done":
		return l.Done(now, ticket).State.String()
	case "retry":
		until := now
		if options["until"] != "" {
			until = instant(options["until"])
		}
		return l.Retry(now, ticket, until, options["why"]).State.String()
	case "return":
		until := now
		if options["until"] != "" {
			until = instant(options["until"])
		}
		return l.Return(now, ticket, until).State.String()
	case "more":
		return l.More(now, ticket).State.String()
	case "hold":
		l.Hold(name)
		return "ok"
	case "release":
		l.Release(name)
		return "ok"
	case "kill":
		return l.Kill(now, ticket, options["why"]).State.String()
	case "cancel":
		return fmt.Sprint(l.Cancel(now, ticket))
	case "requeue":
		return word(l.Requeue(now, ticket))
	case "drop":
		return fmt.Sprint(l.Drop(now, ticket))
	case "state":
		return l.Info(ticket).State.String()
	case "info": // submitted, deadline, attempts, reason
		i := l.Info(ticket)
		deadline := "never"
		if i.Deadline != limit.Never {
			deadline = i.Deadline.String()
		}
		return strings.TrimSpace(fmt.Sprintf("%v %s %d %s", i.Submitted, deadline, i.Attempts, i.Reason))
	case "lookup":
		t, s, ok := l.Lookup(name)
		if !ok {
			return "none"
		}
		return fmt.Sprintf("%v %v", l.Info(t).Request.Value, s)
	case "waiting":
		var names []string
		for _, t := range l.Waiting() {
			names = append(names, l.Info(t).Request.Value.(string))
		}
		return strings.Join(names, " ")
	case "dead":
		var names []string
		for _, d := range l.DeadLetters() {
			if l.tickets[d.Request.Value.(string)] != d.Ticket {
				return "another ticket"
			}
			names = append(names, fmt.Sprintf("%v@%v:%d:%s", d.Request.Value, d.Died, d.Attempts, d.Reason))
		}
		return strings.Join(names, " ")
	case "counts": // those that are not 0
		c := l.Counts()
		said := []string{fmt.Sprint(c.Submitted, ":")}
		for _, n := range []struct {
			name string
			n    int
		}{
			{"waiting", c.Waiting}, {"in flight", c.InFlight}, {"done", c.Done}, {"expired", c.Expired},
			{"dead", c.Dead}, {"dropped", c.Dropped}, {"cancelled", c.Cancelled},
		} {
			if n.n != 0 {
				said = append(said, fmt.Sprint(n.n, " ", n.name))
			}
		}
		return strings.Join(said, " ")
	}
	panic("no verb " + verb)
}

func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, queue.ErrFull):
		return "full"
	case errors.Is(err, queue.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, queue.ErrDead):
		return "dead"
	case errors.Is(err, queue.ErrGone):
		return "gone"
	}
	return err.Error()
}
