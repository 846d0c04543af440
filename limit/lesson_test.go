package limit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// pupil is a Fitted and the limit in it, with the record of all requests that may still count.
type pupil struct {
	own *limit.Rolling
	*limit.Fitted
	told []lessonTold
}

type lessonTold struct {
	at mono.Time
	o  limit.Outcome
}

const lessonPer = time.Second

func newPupil(n int64) *pupil {
	own := limit.MustRolling(n, lessonPer)
	return &pupil{own: own, Fitted: limit.NewFitted(own)}
}

// send sends one request. It is answered after a while, in which no other goes.
func (p *pupil) send(now, answered mono.Time, o limit.Outcome) {
	p.Settle(answered, limittest.Admit(p, now, limit.One), &o)
	p.told = append(p.told, lessonTold{answered, o})
}

// again returns the successor of p. Its limit counted the same requests. Its lessons come from a
// file of another time.
func (p *pupil) again(t testing.TB, now mono.Time, n int64) *pupil {
	t.Helper()
	next := newPupil(n)
	for _, told := range p.told {
		next.own.Settle(told.at, limittest.Admit(next.own, told.at, limit.One), &told.o)
		next.Count(told.at, limit.One, told.o)
	}
	next.told = slices.Clone(p.told)
	const base = 1700000000 * time.Second
	for _, l := range p.Lessons() {
		b, err := json.Marshal(l.Moved(base))
		if err != nil {
			t.Fatal(err)
		}
		var read limit.Lesson
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatal(err)
		}
		read.Index = l.Index
		if got := next.Recall(now, read.Moved(-base)); got != (l.Rule.N == n) {
			t.Fatalf("recalled: %v: %+v", got, l)
		}
	}
	return next
}

// lessonStory runs a program against two: a Fitted that goes on, and one that is replaced again and
// again while nothing is in flight. Their answers must be equal.
func lessonStory(t testing.TB, program []byte) error {
	const n = 12
	whole, part := newPupil(n), newPupil(n)
	now := mono.Time(0)
	for i := 0; i+2 < len(program); i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		switch {
		case op%8 == 0:
			now = now.Add(time.Duration(a) * []time.Duration{ms, 10 * ms, 100 * ms, 10 * time.Second}[b%4])
		case op%8 == 1 && len(part.Lessons()) > 0: // else it would begin with a first window
			part = part.again(t, now, n)
		default:
			if now = max(now, whole.Ready(now, limit.One)); now >= limit.AfterSettle {
				return fmt.Errorf("step %d: never ready", i/3)
			}
			o := limit.Outcome{Result: limit.Accepted}
			if b < 60 {
				o.Result = []limit.Result{limit.Limited, limit.Limited, limit.Limited, limit.Failed, limit.Unsent}[b%5]
			}
			answered := now.Add(time.Duration(a) * ms)
			whole.send(now, answered, o)
			part.send(now, answered, o)
			now = answered
		}
		if !slices.Equal(stages(whole), stages(part)) || !slices.Equal(whole.Misfits(), part.Misfits()) {
			return fmt.Errorf("step %d at %v: %+v, with restarts %+v", i/3, now, whole.Lessons(), part.Lessons())
		}
		for k := range int64(3) {
			c := limit.Cost{1 + k*4}
			if x, y := whole.Ready(now, c), part.Ready(now, c); x != y {
				return fmt.Errorf("step %d at %v: %v are ready at %v, with restarts at %v", i/3, now, c, x, y)
			}
			if own := part.own.Ready(now, c); part.Ready(now, c) < own {
				return fmt.Errorf("step %d at %v: looser than the limit in it", i/3, now)
			}
		}
	}
	return nil
}

// stages returns lessons without the fields that matter only with gaps.
func stages(p *pupil) []limit.Lesson {
	all := p.Lessons()
	for i := range all {
		if all[i].Gap == 0 {
			all[i].Latest, all[i].Answered = 0, 0
		}
	}
	return all
}

func TestLessonStory(t *testing.T) {
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 22))
		program := make([]byte, 3*(20+rng.IntN(200)))
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		if err := lessonStory(t, program); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzLessonStory(f *testing.F) {
	f.Add([]byte{2, 10, 200, 2, 10, 0, 1, 0, 0, 0, 20, 2, 2, 1, 0, 1, 0, 0, 2, 1, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		if err := lessonStory(t, program[:min(len(program), 3000)]); err != nil {
			t.Fatal(err)
		}
	})
}

var fiveASecond = limit.Rule{Name: "requests", N: 5, Per: time.Second}

// lessons are the stages of a Fitted of five a second.
var lessons = map[string]limit.Lesson{
	"trial":     {Rule: fiveASecond, State: 1, Fits: 2, Step: 1},
	"held":      {Rule: fiveASecond, State: 2, Fits: 2, Times: 1, Until: at(10 * time.Minute), Careful: true},
	"gap":       {Rule: fiveASecond, State: 2, Fits: 1, Gap: 4 * time.Second, Times: 3, Until: at(time.Hour)},
	"searching": {Rule: fiveASecond, State: 3, Fits: 2, Low: 1, High: 4, Step: 1, Times: 2, Careful: true},
	"growing":   {Rule: fiveASecond, State: 4, Fits: 3, Low: 2, Step: 1, Times: 2},
	"deaf":      {Rule: fiveASecond, Times: 2, Most: 3, Deaf: at(time.Hour)},
}

// A Fitted that begins with a lesson obeys every law, though it has counted nothing.
func TestLessonLaws(t *testing.T) {
	for name, l := range lessons {
		t.Run(name, func(t *testing.T) { limittest.Laws(t, lessonSpec(l)) })
	}
}

func FuzzLessonLaws(f *testing.F) { limittest.Fuzz(f, lessonSpec(lessons["searching"])) }

func lessonSpec(l limit.Lesson) limittest.Spec {
	s := fittedSpec
	s.Programs = 30
	s.New = func() limit.Limiter {
		f := limit.NewFitted(limit.MustRolling(5, time.Second))
		if !f.Recall(0, l) {
			panic("not recalled")
		}
		return f
	}
	return s
}

// A lesson from a file may say anything. The limit in the Fitted is kept all the same. One request
// goes within the longest gap and window.
func FuzzLesson(f *testing.F) {
	for _, l := range lessons {
		b, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var l limit.Lesson
		if json.Unmarshal(b, &l) != nil {
			return
		}
		l.Rule = fiveASecond
		p := newPupil(5)
		now := mono.Time(0)
		p.Recall(now, l)
		for i := range 50 {
			ready := p.Ready(now, limit.One)
			if own := p.own.Ready(now, limit.One); ready < own || ready > now.Add(2*time.Hour) {
				t.Fatalf("%d: ready at %v, the limit in it at %v", i, ready, own)
			}
			o := limit.Outcome{Result: limit.Accepted}
			if i%5 == 4 {
				o.Result = limit.Limited
			}
			p.send(ready, ready.Add(ms), o)
			now = ready.Add(ms)
		}
	})
}

// The lesson of one rate does not bind another. A lesson without sense binds nothing.
func TestLessonOfAnother(t *testing.T) {
	good := lessons["held"]
	for name, change := range map[string]func(*limit.Lesson){
		"rate":            func(l *limit.Lesson) { l.Rule.N = 6 },
		"window":          func(l *limit.Lesson) { l.Rule.Per = time.Minute },
		"unit":            func(l *limit.Lesson) { l.Rule.Unit = limit.Tokens },
		"index":           func(l *limit.Lesson) { l.Index = 1 },
		"none fits":       func(l *limit.Lesson) { l.Fits = 0 },
		"more fits":       func(l *limit.Lesson) { l.Fits = 6 },
		"state":           func(l *limit.Lesson) { l.State = 9 },
		"a negative gap":  func(l *limit.Lesson) { l.Gap = -1 },
		"gap of several":  func(l *limit.Lesson) { l.Gap = time.Second },
		"search downward": func(l *limit.Lesson) { l.State, l.Low, l.High = 3, 1, 2 },
	} {
		l := good
		change(&l)
		f := limit.NewFitted(limit.MustRolling(5, time.Second))
		if f.Recall(0, l) || len(f.Lessons()) != 0 || f.Ready(0, limit.Cost{5}) != 0 {
			t.Errorf("%s: it was recalled", name)
		}
	}
	f := limit.NewFitted(limit.MustRolling(5, time.Second))
	if !f.Recall(0, good) || f.Ready(0, limit.One) != 0 || len(f.Misfits()) != 1 || limit.NewFitted(f) != f {
		t.Errorf("%+v", f.Misfits())
	}
}

// Every field goes through a file, so that none can be added and forgotten there.
func TestLessonFields(t *testing.T) {
	var l limit.Lesson
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.CanInt():
			f.SetInt(int64(i + 1))
		case f.CanUint():
			f.SetUint(uint64(i + 1))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		}
	}
	l.Rule, l.Index = fiveASecond, 0
	b, err := json.Marshal(l)
	var got limit.Lesson
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || got != l {
		t.Errorf("%s: %+v, want %+v, %v", b, got, l, err)
	}
}

// Learned rises with each answer that changes a lesson. That includes the answers to all requests
// in flight at a refusal, however they end.
func TestLearnedGoesUp(t *testing.T) {
	for _, ends := range []limit.Result{limit.Accepted, limit.Limited, limit.Unsent} {
		f := limit.NewFitted(limit.MustRolling(25, time.Second))
		f.Settle(0, limittest.Admit(f, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
		var open []*limit.Sent
		for range 20 {
			open = append(open, limittest.Admit(f, at(2*time.Second), limit.One))
		}
		f.Settle(at(2*time.Second), open[0], &limit.Outcome{Result: limit.Accepted})
		f.Settle(at(2*time.Second), open[1], &limit.Outcome{Result: limit.Limited})
		for i, l := range open[2:] {
			before := f.Learned()
			f.Settle(at(2*time.Second), l, &limit.Outcome{Result: ends})
			if after := f.Learned(); after <= before {
				t.Errorf("%v, %d: %d are learned, and were %d", ends, i, after, before)
			}
		}
	}
}

// A counted request is in the past: Ready never returns an instant before it.
func TestCountIsThePresent(t *testing.T) {
	f := limit.NewFitted(limit.MustRolling(25, time.Second))
	f.Count(at(5*time.Second), limit.One, limit.Outcome{Result: limit.Accepted})
	f.Count(at(3*time.Second), limit.One, limit.Outcome{Result: limit.Accepted})
	if got := f.Ready(0, limit.One); got != at(5*time.Second) {
		t.Errorf("ready at %v", got)
	}
}

// A server refuses 1.5 % of the requests at random, and the client is killed every second or so.
// The evidence against the rate as the cause outlives the process, as the evidence for it does.
func TestRefusalsAtRandomOverRestarts(t *testing.T) {
	for seed := range need.Fewer[uint64](1, 3) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p, now, served := newPupil(40), mono.Time(0), 0
		var kept []limit.Lesson // as of the last news: the process may die at any time
		news, lives := uint64(0), 1
		for end := at(time.Hour); now < end; lives-- {
			if lives == 0 {
				p.told = slices.DeleteFunc(p.told, func(told lessonTold) bool { return told.at < now.Add(-2*lessonPer) })
				next := newPupil(40)
				for _, told := range p.told {
					next.own.Settle(told.at, limittest.Admit(next.own, told.at, limit.One), &told.o)
					next.Count(told.at, limit.One, told.o)
				}
				for _, l := range kept {
					next.Recall(now, l)
				}
				next.told, p, news, lives = p.told, next, 0, 1+rng.IntN(40)
			}
			ready := max(now, p.Ready(now, limit.One))
			o := limit.Outcome{Result: limit.Accepted}
			if rng.IntN(1000) < 15 {
				o.Result = limit.Limited
			} else {
				served++
			}
			now = ready.Add(time.Duration(5+rng.IntN(30)) * ms)
			p.send(ready, now, o)
			if p.Learned() < news {
				t.Fatalf("seed %d, at %v: %d are learned, and were %d", seed, now, p.Learned(), news)
			}
			if p.Learned() != news {
				news, kept = p.Learned(), p.Lessons()
			}
		}
		if served < 15*3600 {
			t.Errorf("seed %d: %d served, %.1f a second", seed, served, float64(served)/3600)
		}
	}
}

// A journal keeps lessons, so their form stays: a lesson's rule has no field that is new since.
func TestLessonForm(t *testing.T) {
	const was = `{"rate":{"Limit":"requests","Unit":0,"N":25,"Per":1000000000},"state":2,"fits":20,`
	f := fitted(limit.MustRolling(25, time.Second))
	f.burst(at(0), 25)
	f.burst(at(2*time.Second), 20)
	is, err := json.Marshal(f.Lessons()[0])
	if err != nil || !strings.HasPrefix(string(is), was) {
		t.Errorf("%s, %v; want %s…", is, err, was)
	}
	var read limit.Lesson
	if err := json.Unmarshal(is, &read); err != nil || !limit.NewFitted(limit.MustRolling(25, time.Second)).Recall(0, read) {
		t.Errorf("%+v is not recalled: %v", read, err)
	}
}
