package work

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/pool"
)

// filled is a backlog of n requests, r0 and so on.
func filled(t *testing.T, n int) *backlog.Backlog {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	b, err := backlog.Open(t.Context(), store, "default", backlog.Options{Format: Format})
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]backlog.Job, n)
	for i := range jobs {
		jobs[i] = backlog.Job{ID: fmt.Sprint("r", i), Data: fmt.Appendf(nil, "{\n\"url\":\"http://h/%d\"}", i)}
	}
	if added, err := b.Enqueue(t.Context(), jobs...); err != nil || added != n {
		t.Fatal(added, err)
	}
	return b
}

// opened is a Source of a backlog, and a reader of its lines.
func opened(t *testing.T, b *backlog.Backlog, ahead int) (*Source, *bufio.Reader) {
	t.Helper()
	note, err := ReadNote(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSource(t.Context(), backlog.SessionConfig{Backlog: b, UntilEmpty: true}, len(note.Models), ahead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s, bufio.NewReader(s)
}

func next(t *testing.T, s *Source, r *bufio.Reader) (id string, attempts int, doubt bool) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	id, attempts, doubt = s.Latest()
	if expected := fmt.Sprintf(`{ "url":"http://h/%s"}`+"\n", id[1:]); line != expected {
		t.Fatalf("the line of %s is %q, expected %q", id, line, expected)
	}
	return id, attempts, doubt
}

// A source gives back what has not ended, with the attempts that were made here. What has ended has its result.
func TestSourceGivesBack(t *testing.T) {
	t.Parallel()
	b := filled(t, 3)
	s, r := opened(t, b, 3)
	for range 3 {
		if id, _, _ := next(t, s, r); !s.May(id) || !s.Fresh(id) {
			t.Errorf("%s may not be sent", id)
		}
	}
	s.Ended("r0", run.BacklogEnd{State: pool.Done, Attempts: 1, Line: []byte(`{"id":"r0"}` + "\n")})
	s.Tried("r1", true)
	s.Tried("r1", false)
	s.Return("r2")
	if s.May("r2") || s.Fresh("r2") || s.May("r0") || s.May("nobody") {
		t.Error("expected that only what the run has may be sent")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, err := b.Count(t.Context())
	if err != nil || counts.Done != 1 || counts.Ready != 2 {
		t.Fatalf("%+v, %v; expected one done, and two that any worker may take", counts, err)
	}
	again, r := opened(t, b, 2)
	for range 2 {
		id, attempts, doubt := next(t, again, r)
		if id == "r1" && (attempts != 2 || !doubt) || id == "r2" && (attempts != 0 || doubt) {
			t.Errorf("%s comes with %d attempts, doubt %v", id, attempts, doubt)
		}
		again.May(id)
		again.Ended(id, run.BacklogEnd{State: pool.Done, Attempts: attempts + 1, Repeat: doubt, Line: []byte(`{"id":"` + id + `"}`)})
	}
	if _, err := r.ReadByte(); err == nil || again.Err() != nil {
		t.Errorf("after the last: %v, %v; expected the end", err, again.Err())
	}
	if counts, err = b.Count(t.Context()); err != nil || counts.Done != 3 || counts.Repeats != 1 {
		t.Errorf("%+v, %v; expected all done, and one possible repeat", counts, err)
	}
}

// Of a process that dies, all that was handed out may have been sent. So no more is handed out than begins soon.
func TestSourceHandsOutFew(t *testing.T) {
	t.Parallel()
	s, r := opened(t, filled(t, 20), 2)
	first, _, _ := next(t, s, r)
	second, _, _ := next(t, s, r)
	got := make(chan string)
	go func() {
		for range 2 {
			if _, err := r.ReadString('\n'); err != nil {
				break
			}
			id, _, _ := s.Latest()
			got <- id
		}
		close(got)
	}()
	select {
	case id := <-got:
		t.Errorf("%s was handed out, with two that have not begun", id)
	case <-time.After(100 * time.Millisecond):
	}
	s.May(first)
	if id := <-got; id == "" {
		t.Error("nothing was handed out when the first began")
	}
	s.Ended(second, run.BacklogEnd{State: pool.Expired, Line: []byte("{}")}) // it has ended without an attempt
	if id := <-got; id == "" {
		t.Error("nothing was handed out when the second ended")
	}
}

// A pause holds what was handed out, too: it is given back, and comes when the backlog goes on.
func TestSourceOfAPausedBacklog(t *testing.T) {
	t.Parallel()
	b := filled(t, 2)
	s, r := opened(t, b, 2)
	id, _, _ := next(t, s, r)
	if err := b.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); s.May(id); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("a request may be sent 5 s after a pause, which holds within one")
		}
	}
	s.Return(id)
	if err := b.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		id, attempts, _ := next(t, s, r)
		if !s.May(id) || attempts != 0 {
			t.Errorf("%s may not be sent after the pause, or has %d attempts", id, attempts)
		}
		s.Ended(id, run.BacklogEnd{State: pool.Done, Attempts: 1, Line: []byte("{}")})
	}
}

// At a low rate fewer are handed out than at a high one.
func TestSourceHandsOutMoreAtAHighRate(t *testing.T) {
	t.Parallel()
	s, w := &Source{most: 32}, newWindow()
	room := func() (n int) {
		for s.enter(w) == nil {
			n++
		}
		return n
	}
	begins := func(n int, gap time.Duration) {
		for range n {
			w.waiting++
			w.began = time.Now().Add(-gap)
			w.begins(time.Now())
		}
		w.waiting = 0
	}
	if n := room(); n != 8 {
		t.Errorf("%d before the first begins, expected 8", n)
	}
	begins(50, 10*time.Millisecond)
	if n := room(); n < 22 || n > 25 {
		t.Errorf("%d at 100 a second, expected those of 250 ms", n)
	}
	begins(50, 0)
	if n := room(); n != 32 {
		t.Errorf("%d at the highest rate, expected the bound", n)
	}
	begins(50, time.Minute)
	if n := room(); n != 4 {
		t.Errorf("%d at one a minute, expected 4", n)
	}
}

// A lane whose requests do not begin holds up no other.
func TestSourceOfTwoLanes(t *testing.T) {
	t.Parallel()
	b := filled(t, 0)
	var jobs []backlog.Job
	for i := range 10 {
		jobs = append(jobs, backlog.Job{ID: fmt.Sprint("r", i), Data: fmt.Appendf(nil, `{ "url":"http://h/%d"}`, i), Lane: int32(i/5 + 1)})
	}
	if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	if err := ChangeNote(t.Context(), b, func(n *Note) (bool, error) { return n.takes("x") && n.takes("y") && !n.takes("x"), nil }); err != nil {
		t.Fatal(err)
	}
	s, r := opened(t, b, 2)
	handed := map[string]bool{}
	for range 4 + 3 { // two of each lane wait at most; those of the second begin and end
		id, _, _ := next(t, s, r)
		if handed[id] = true; id >= "r5" && s.May(id) {
			s.Ended(id, run.BacklogEnd{State: pool.Done, Line: []byte("{}")})
		}
	}
	for i, j := range jobs {
		if expected := i < 2 || j.Lane == 2; handed[j.ID] != expected {
			t.Errorf("%s was handed out: %v, expected %v", j.ID, handed[j.ID], expected)
		}
	}
}

// The note keeps what it does not change, and has a bound for the models. Words that are no JSON are those of earlier
// workers.
func TestNote(t *testing.T) {
	t.Parallel()
	b := filled(t, 0)
	if done, err := b.SetNote(t.Context(), nil, []byte("with limits")); err != nil || !done {
		t.Fatal(done, err)
	}
	for i := range run.MostModels + 1 {
		name := fmt.Sprint("m", i)
		err := ChangeNote(t.Context(), b, func(n *Note) (bool, error) {
			is := n.takes(name)
			if expected := i < run.MostModels; is != expected || n.Limits != "with limits" || n.takes(name) || n.takes("") ||
				n.takes(strings.Repeat("x", run.LongestModel+1)) {
				t.Errorf("the model %d: %v, %+v", i, is, n)
			}
			return is, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := ReadNote(t.Context(), b)
	if err != nil || n.Lane("m0") != 1 || n.Lane("m15") != 16 || n.Lane("m16") != 0 || n.Lane("") != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// A backlog that is removed ends the run, and says so.
func TestSourceOfARemovedBacklog(t *testing.T) {
	t.Parallel()
	b := filled(t, 1)
	s, r := opened(t, b, 1)
	next(t, s, r)
	s.May("r0")
	if err := b.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil || s.Err() == nil || !strings.Contains(s.Err().Error(), "no such backlog") {
		t.Errorf("%v, %v; expected the end, since there is no such backlog", err, s.Err())
	}
}

func TestResultsAreInOrderAndNamed(t *testing.T) {
	t.Parallel()
	b := filled(t, 5)
	s, r := opened(t, b, 5)
	if n, err := b.Cancel(t.Context()); n != 0 || err != nil { // no id is not all of them
		t.Errorf("%d requests are cancelled by no id, %v", n, err)
	}
	if n, err := b.Cancel(t.Context(), "r4"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for range 4 {
		id, _, _ := next(t, s, r)
		s.May(id)
	}
	line := func(id, state, rest string) []byte {
		return []byte(`{"id":"` + id + `","state":"` + state + `","attempts":1,"waited_ms":0,"at":"2026-07-03T14:00:00.000Z"` + rest + "}\n")
	}
	s.Ended("r3", run.BacklogEnd{State: pool.Done, Attempts: 1, Line: line("r3", "done", `,"status":200,"body":"{\"n\":3}"`)})
	s.Ended("r1", run.BacklogEnd{State: pool.Dead, Attempts: 1, Line: line("r1", "dead", `,"status":404,"error":"answered 404"`)})
	s.Ended("r2", run.BacklogEnd{State: pool.Done, Attempts: 1, Repeat: true, Line: line("r2", "done", `,"status":200,"body":"text"`)}) // the line does not say so
	s.Ended("r0", run.BacklogEnd{State: pool.Done, Attempts: 1, Line: []byte("of another program")})
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, letters strings.Builder
	n, err := (&Results{Backlog: b, Out: &out, Dead: &letters}).Write(t.Context())
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	expected := []string{`"r0","state":"done"`, `"r2","state":"done"`, `"r3","state":"done"`, `"r4","state":"cancelled"`}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(expected) || !strings.Contains(letters.String(), `"r1","state":"dead"`) {
		t.Fatalf("results\n%s\ndead letters\n%s", &out, &letters)
	}
	for i, l := range lines {
		var one struct {
			PossibleRepeat bool `json:"possible_repeat"`
		}
		if err := json.Unmarshal([]byte(l), &one); err != nil || !strings.Contains(l, expected[i]) || one.PossibleRepeat != (i == 1) {
			t.Errorf("result %d is %s (%v), expected %s, and a possible repeat in the second alone", i, l, err, expected[i])
		}
	}
	shape, err := output.CompileShape("id=.id, n=.body.n?, again=.possible_repeat, class=.class", output.CSV)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := format.NewLLM(format.LLMConfig{Provider: format.OpenAI})
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	letters.Reset()
	if _, err := (&Results{Backlog: b, Out: &out, Dead: &letters, Format: batch}).Write(t.Context()); err != nil ||
		!strings.Contains(out.String(), `"custom_id":"r3","response":{"status_code":200,"request_id":"","body":{"n":3}}`) ||
		!strings.Contains(out.String(), `"custom_id":"r2","response":{"status_code":200,"request_id":"","body":"text"},"error":null,"possible_repeat":true`) ||
		!strings.Contains(out.String(), `"custom_id":"r4","response":null,"error":{"code":"batch_cancelled"`) ||
		!strings.Contains(letters.String(), `"custom_id":"r1","response":{"status_code":404,`) {
		t.Errorf("in the form of a batch\n%s\ndead letters\n%s\n%v", &out, &letters, err)
	}
	out.Reset()
	states, err := States([]string{"done", "cancelled"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Results{Backlog: b, Out: &out, Shape: shape, States: states}).Write(t.Context()); err != nil ||
		out.String() != "id,n,again,class\nr0,,false,\nr2,,true,\nr3,3,false,\nr4,,false,\n" {
		t.Errorf("rows\n%s%v", &out, err)
	}
}

func TestWholeInWords(t *testing.T) {
	at := time.Date(2026, 7, 3, 14, 0, 0, 0, time.UTC)
	workers := func(results int64) []backlog.WorkerStatus {
		return []backlog.WorkerStatus{
			{ID: 1, Host: "a", PID: 11, Held: 9, Sending: 1, Results: results}, {ID: 2, Host: "b", PID: 12, Held: 1},
			{ID: 3, Host: "c\x1b", PID: 13}, {ID: 4, Host: "d", PID: 14, Dead: true, Ended: at, Results: 7},
		}
	}
	var w Whole
	if w.Words() != "" || w.Lines() != nil {
		t.Error("words before the first count")
	}
	w.take(at, backlog.Counts{Total: 20000, Ready: 20000}, workers(0))
	w.take(at.Add(10*time.Second), backlog.Counts{Total: 20000, Ready: 17990, Held: 10, Done: 1997, Dead: 3, Repeats: 4}, workers(1990))
	words := "all workers: 2,000 of 20,000 ended, 200.0/s, ETA 1 min 30 s, 3 workers, 3 dead, 4 possible repeats"
	if text := w.Words(); text != words {
		t.Errorf("%q", text)
	}
	want := []string{words,
		"worker 1 (process 11 on a): has 9 requests, may have sent 1 of them; 1990 results, 199.0/s",
		"worker 2 (process 12 on b): has 1 request, may have sent 0 of them; 0 results, 0.0/s",
		`worker 3 (process 13 on c\x1b): has 0 requests, may have sent 0 of them; 0 results, 0.0/s`,
		"worker 4 (process 14 on d): ended at 14:00:00"}
	if lines := w.Lines(); !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	for i := range 40 { // the rate is of the latest time
		w.take(at.Add(time.Duration(i+11)*time.Second), backlog.Counts{Total: 20000, Ready: int64(17900 - 100*i), Done: int64(2100 + 100*i)}, workers(1990))
	}
	if text := w.Words(); !strings.Contains(text, "100.0/s") {
		t.Errorf("%q, expected the rate of the last 20 s", text)
	}
	later := workers(2500) // the first ends, the second is given up while it sends
	later[0] = backlog.WorkerStatus{ID: 1, Host: "a", PID: 11, Dead: true, Ended: at, Results: 2500}
	later[1] = backlog.WorkerStatus{ID: 2, Host: "b", PID: 12, Dead: true, Ended: at.Add(time.Minute), Sending: 3}
	for i, n := range []int{1, 0} { // that is news once
		gone := w.take(at.Add(time.Minute), backlog.Counts{Total: 20000}, later)
		if len(gone) != n || n > 0 && Name(&gone[0])+": "+End(&gone[0]) !=
			"worker 2 (process 12 on b): given up at 14:01:00; 3 of its requests may be sent twice" {
			t.Errorf("count %d: %+v", i, gone)
		}
	}
}

// A budget is taken in parts, and never more of it than there is. What is given back is there for the next.
func TestBudgetOfABacklog(t *testing.T) {
	b := filled(t, 1)
	s := &Source{backlog: b}
	take := func(least, want sending.Money) {
		t.Helper()
		if part, err := s.Money(t.Context(), least); part != want || err != nil {
			t.Errorf("of a budget that has to give %d or more it takes %d, expected %d: %v", least, part, want, err)
		}
	}
	take(1, 0)
	if err := ChangeNote(t.Context(), b, func(n *Note) (bool, error) {
		n.Budget = &Budget{Most: 320}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	take(1, 10) // a thirty-second
	take(300, 300)
	take(11, 0)
	take(10, 10)
	take(1, 0)
	if err := GiveBack(t.Context(), b, 7); err != nil {
		t.Fatal(err)
	}
	take(8, 0)
	take(7, 7)
}
