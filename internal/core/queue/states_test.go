package queue_test

import (
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/core/queue"
)

// transitions has a scenario per row of the table in docs/request_states.md: what comes before, the step, and what is
// known after it. Request a is the one that moves.
var transitions = map[string]struct {
	config              queue.Config
	before, step, after string
}{
	"none|Submit|there is room, and its id is not held|waiting": {
		queue.Config{MaxLen: 1}, ``, `0s submit a id=x -> ok`,
		`0s state a -> waiting
		 0s counts  -> 1: 1 waiting`},
	"waiting|Take||in flight": {
		queue.Config{}, `0s submit a -> ok`, `0s take a -> a 1`,
		`0s state a -> in flight
		 0s counts  -> 1: 1 in flight`},
	"waiting|Expire|the deadline has passed|expired": {
		queue.Config{}, `0s submit a ttl=1s -> ok`, `1s expire -> a expired`,
		`1s counts -> 1: 1 expired`},
	"waiting|Expire|as above, `OnExpiry: Retry`, attempts are left|waiting": {
		queue.Config{OnExpiry: queue.Retry, MaxAttempts: 2}, `0s submit a ttl=1s -> ok`, `1s expire -> a waiting`,
		`1s info a -> 0s 2s 1 deadline passed while waiting
		 1s counts -> 1: 1 waiting`},
	"waiting|Expire|as above, it was the last attempt|dead": {
		queue.Config{OnExpiry: queue.Retry, MaxAttempts: 1}, `0s submit a ttl=1s -> ok`, `1s expire -> a dead`,
		`1s dead   -> a@1s:1:deadline passed while waiting
		 1s counts -> 1: 1 dead`},
	"waiting|Lapse|the deadline comes before an answer can|expired": {
		queue.Config{}, `0s submit a ttl=1s -> ok`, `900ms lapse a why=slow -> expired`,
		`900ms counts -> 1: 1 expired`},
	"waiting|Lapse|as above, `OnExpiry: Retry`, attempts are left|waiting": {
		queue.Config{OnExpiry: queue.Retry, MaxAttempts: 2}, `0s submit a ttl=1s -> ok`, `900ms lapse a why=slow -> waiting`,
		`900ms info a -> 0s 1.9s 1 slow
		 900ms counts -> 1: 1 waiting`},
	"waiting|Lapse|as above, it was the last attempt|dead": {
		queue.Config{OnExpiry: queue.Retry, MaxAttempts: 1}, `0s submit a ttl=1s -> ok`, `900ms lapse a why=slow -> dead`,
		`900ms dead   -> a@900ms:1:slow
		 900ms counts -> 1: 1 dead`},
	"waiting|Kill||dead": {
		queue.Config{}, `0s submit a -> ok`, `1s kill a why=400 -> dead`,
		`1s dead   -> a@1s:0:400
		 1s head   -> none
		 1s counts -> 1: 1 dead`},
	"waiting|Cancel||cancelled": {
		queue.Config{}, `0s submit a -> ok`, `0s cancel a -> true`,
		`0s head   -> none
		 0s counts -> 1: 1 cancelled`},
	"in flight|Done||done": {
		queue.Config{}, "0s submit a ttl=1s -> ok\n0s take -> a 1", `5s done a -> done`,
		`5s counts -> 1: 1 done`},
	"in flight|Retry|attempts are left, and the next can be made before the deadline|waiting": {
		queue.Config{MaxAttempts: 2}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `1s retry a until=2s why=500 -> waiting`,
		`1s info a -> 0s 3s 1 500
		 1s head   -> none
		 2s head   -> a
		 2s counts -> 1: 1 waiting`},
	"in flight|Retry|as above, `OnExpiry: Retry`|waiting": {
		queue.Config{MaxAttempts: 2, OnExpiry: queue.Retry}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `1s retry a until=2s why=500 -> waiting`,
		`1s info a -> 0s 5s 1 500`},
	"in flight|Retry|the deadline has not passed, and it was the last attempt|dead": {
		queue.Config{MaxAttempts: 1}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `2.9s retry a until=9s why=500 -> dead`,
		`2.9s dead   -> a@2.9s:1:500
		 2.9s counts -> 1: 1 dead`},
	"in flight|Retry|the deadline has passed|expired": {
		queue.Config{}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `3s retry a -> expired`,
		`3s counts -> 1: 1 expired`},
	"in flight|Retry|the next attempt could not be made before the deadline|expired": {
		queue.Config{}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `1s retry a until=3s -> expired`,
		`1s counts -> 1: 1 expired`},
	"in flight|Retry|`OnExpiry: Retry`, it was the last attempt|dead": {
		queue.Config{MaxAttempts: 1, OnExpiry: queue.Retry}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `4s retry a why=500 -> dead`,
		`4s dead   -> a@4s:1:500
		 4s counts -> 1: 1 dead`},
	"in flight|More||waiting": {
		queue.Config{MaxAttempts: 2}, "0s submit a ttl=3s -> ok\n0s take -> a 1\n0s retry a until=1s why=500 -> waiting\n0s submit b -> ok\n1s take a -> a 2", `1s more a -> waiting`,
		`1s info a -> 0s 3s 0
		 1s head   -> a
		 1s take   -> a 1
		 2s more a -> waiting
		 3s expire -> a expired
		 3s head   -> b`},
	"in flight|Return||waiting": {
		queue.Config{}, "0s submit a ttl=3s -> ok\n0s take -> a 1", `1s return a -> waiting`,
		`1s info a -> 0s 3s 0
		 1s take   -> a 1
		 1s return a until=2s -> waiting
		 1s head   -> none
		 1s wake   -> 2s
		 2s take   -> a 1
		 2s return a until=9s -> waiting
		 3s expire -> a expired`},
	"in flight|Kill||dead": {
		queue.Config{}, "0s submit a -> ok\n0s take -> a 1", `1s kill a why=400 -> dead`,
		`1s dead   -> a@1s:1:400
		 1s counts -> 1: 1 dead`},
	"dead|Requeue|there is room|waiting": {
		queue.Config{MaxLen: 1}, "0s submit a ttl=3s -> ok\n0s take -> a 1\n1s kill a why=400 -> dead", `2s requeue a -> ok`,
		`2s info a -> 2s 5s 0
		 2s dead   ->
		 2s counts -> 1: 1 waiting`},
	"dead|Drop||dropped": {
		queue.Config{}, "0s submit a -> ok\n1s kill a why=400 -> dead", `2s drop a -> true`,
		`2s dead   ->
		 2s counts -> 1: 1 dropped`},
}

func TestEveryTransitionOfTheDrawing(t *testing.T) {
	for name, c := range transitions {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			timeline(t, c.config, c.before+"\n"+c.step+"\n"+c.after)
		})
	}
}

// drawn reads the table, and the arrows of the diagram.
func drawn(t *testing.T) (rows []string, arrows map[[3]string]bool) {
	doc, err := os.ReadFile("../../../docs/request_states.md")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{"[*]": "none", "Waiting": "waiting", "InFlight": "in flight", "Done": "done", "Expired": "expired",
		"Dead": "dead", "Dropped": "dropped", "Cancelled": "cancelled"}
	arrows = map[[3]string]bool{}
	for l := range strings.Lines(string(doc)) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "|---") && !strings.HasPrefix(l, "| from") {
			cells := strings.Split(strings.Trim(l, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, strings.Join(cells[:4], "|"))
		}
		from, rest, ok := strings.Cut(l, " --> ")
		to, events, labelled := strings.Cut(rest, ": ")
		if !ok || !labelled {
			continue
		}
		for event := range strings.SplitSeq(events, ", ") {
			if event, _, _ = strings.Cut(event, " ("); event != "too late" {
				arrows[[3]string{states[from], event, states[to]}] = true
			}
		}
	}
	return rows, arrows
}

func TestTheDrawingIsWhatIsTested(t *testing.T) {
	rows, arrows := drawn(t)
	if len(rows) != len(transitions) {
		t.Errorf("the table has %d rows, and %d are tested", len(rows), len(transitions))
	}
	inTable := map[[3]string]bool{}
	for _, row := range rows {
		if _, ok := transitions[row]; !ok {
			t.Errorf("not tested: %s", row)
		}
		cells := strings.Split(row, "|")
		arrow := [3]string{cells[0], cells[1], cells[3]}
		inTable[arrow] = true
		if !arrows[arrow] {
			t.Errorf("in the table but not in the diagram: %v", arrow)
		}
	}
	for arrow := range arrows {
		if !inTable[arrow] {
			t.Errorf("in the diagram but not in the table: %v", arrow)
		}
	}
}

// A transition that the table does not have panics or is refused, and changes nothing.
func TestNoOtherTransition(t *testing.T) {
	rows, _ := drawn(t)
	allowed := map[[2]string]bool{}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		allowed[[2]string{cells[0], cells[1]}] = true
	}
	steps := map[string]string{"Take": "take", "Expire": "expire", "Lapse": "lapse", "Done": "done", "Retry": "retry", "Return": "return", "More": "more", "Kill": "kill",
		"Cancel": "cancel", "Requeue": "requeue", "Drop": "drop", "Submit": "submit"}
	refusals := 0
	for state, before := range map[string]string{
		"waiting":   ``,
		"in flight": `take a`,
		"dead":      `kill a`,
		"done":      "take a\ndone a",
		"expired":   "take a\nretry a until=2h",
		"dropped":   "kill a\ndrop a",
		"cancelled": "cancel a",
	} {
		for event, verb := range steps {
			if allowed[[2]string{state, event}] {
				continue
			}
			if event == "Submit" && state != "waiting" && state != "in flight" && state != "dead" {
				continue // another request, which may have the id
			}
			refusals++
			l := newLine(t, queue.Config{})
			l.do(0, "submit", []string{"a", "id=x", "ttl=1h"})
			for b := range strings.Lines(before) {
				words := strings.Fields(b)
				l.do(0, words[0], words[1:])
			}
			ticket := l.tickets["a"]
			counts, info := l.Counts(), l.Info(ticket)
			// After the deadline, so that Expire would act if it could.
			answer := l.do(instant("2h"), verb, []string{"a", "id=x", "ttl=1h"})
			ok := map[string]bool{"false": true, "gone": true, "none": true, "duplicate": true, "dead": event == "Submit"}[answer] ||
				strings.HasPrefix(answer, "panic: queue: "+event)
			if !ok || l.Counts() != counts || l.Info(ticket) != info {
				t.Errorf("%s, %s: answered %q, counts %+v", state, event, answer, l.Counts())
			}
			if err := l.Verify(); err != nil {
				t.Errorf("%s, %s: %v", state, event, err)
			}
		}
	}
	if refusals < 40 {
		t.Errorf("only %d refusals were tried", refusals)
	}
}

func TestStateNames(t *testing.T) {
	for s, want := range map[queue.State]string{queue.None: "none", queue.InFlight: "in flight", queue.Cancelled: "cancelled", 99: "state 99"} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
	for s := range queue.Cancelled + 3 {
		if want := s >= queue.Done && s <= queue.Cancelled; s.Ended() != want {
			t.Errorf("%v.Ended() = %v", s, s.Ended())
		}
	}
}
