package journal

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// left is a journal that one process after another opens.
type left struct {
	t    *testing.T
	path string
	boot string
	off  time.Duration // of the wall clock
	*Journal
	book   *Findings
	said   []string
	failed []error
}

func newLeft(t *testing.T) *left {
	l := &left{t: t, path: filepath.Join(t.TempDir(), "j"), boot: "b"}
	l.open()
	return l
}

func (l *left) open() {
	l.t.Helper()
	clock := func() (time.Time, boottime.Reading) {
		up := time.Since(time.Unix(0, 0)) + l.off
		return time.Now(), boottime.Reading{Boot: l.boot, Up: up, Awake: up}
	}
	began := time.Now()
	j, h, err := Open(Config{Path: l.path, Keep: time.Minute, Timeout: time.Minute, Clock: clock, Forget: func(string) bool { return true }}, began)
	if err != nil {
		l.t.Fatal(err)
	}
	l.Journal, l.said = j, nil
	l.book = NewFindings(j, h, began, func(err error) { l.failed = append(l.failed, err) })
}

func (l *left) close() {
	l.book.Flush()
	if err := l.Close(); err != nil {
		l.t.Error(err)
	}
}

func (l *left) auto(name string) *LastingAuto {
	a, err := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		l.t.Fatal(err)
	}
	return l.book.Limiter(name, a, func(text string, sure bool) { l.said = append(l.said, fmt.Sprintf("%v: %s", sure, text)) })
}

// learns gives a limit to the limiter.
func learns(a *LastingAuto, n int64) {
	a.State(0, []limit.Rule{{N: n, Per: time.Minute}})
	a.Settle(0, limittest.Admit(a, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
}

func (l *left) resumes(name, want string) {
	l.t.Helper()
	a := l.auto(name)
	limit.Replay(a, 0, mono.Min, nil)
	if got := strings.Join(l.said, "; "); !strings.Contains(got, want) || want == "" && got != "" {
		l.t.Errorf("%s says %q, want %q", name, got, want)
	}
	l.said = nil
}

// Limiters continue from their findings, by name, and report the age. A limiter without findings
// reports nothing. If the age is not known, the report says so.
func TestGoesOn(t *testing.T) {
	l := newLeft(t)
	learns(l.auto("A"), 60)
	learns(l.auto("B"), 70)
	b := l.auto("B")
	learns(b, 80)
	learns(b, 90)
	l.resumes("B", "90 requests per 1m0s") // one that was forgotten meanwhile, in the same process
	l.close()
	l.off = 5 * time.Minute
	l.open()
	l.resumes("A", "true: goes on with what was found 5 min ")
	l.resumes("B", "ago: 90 requests per 1m0s, as the server says")
	l.resumes("C", "")
	l.close()
	l.boot = "c"
	l.open()
	l.resumes("A", "false: goes on with what was found before the machine was started again, nobody knows when, so what it waits for counts from now: 60 requests")
	l.close()
	if l.failed != nil {
		t.Error(l.failed)
	}
}

// A damaged memory is reported, and the search begins anew. The new findings replace it.
func TestBeginsAnew(t *testing.T) {
	l := newLeft(t)
	if err := l.Remember("A", []byte("A\x03 of a later version"), time.Now()); err != nil {
		t.Fatal(err)
	}
	l.close()
	l.open()
	l.resumes("A", "false: begins anew: fairshare: what was found of a limit cannot be taken up: it is damaged: its checksum is wrong")
	learns(l.auto("A"), 60)
	l.close()
	l.open()
	l.resumes("A", "true: goes on")
	l.close()
}

// A failed write to the journal is reported once, and Flush does not wait for ever.
func TestCannotBeWritten(t *testing.T) {
	l := newLeft(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		learns(l.auto("A"), int64(10+i))
		l.book.Flush()
	}
	if len(l.failed) != 1 {
		t.Errorf("told of %v", l.failed)
	}
}

// Of more than are worth it the oldest are forgotten.
func TestForgets(t *testing.T) {
	l := newLeft(t)
	for i := range mostFindings + 2 {
		l.book.put(fmt.Sprint(i), finding{written: []byte{1}, at: time.Unix(int64(i), 0)})
	}
	l.book.Flush()
	_, first := l.book.latest["1"]
	_, second := l.book.latest["2"]
	if len(l.book.latest) != mostFindings || first || !second {
		t.Errorf("%d are known, 1: %v, 2: %v", len(l.book.latest), first, second)
	}
	l.close()
}

// A pause goes on after a restart for its rest, or for all of it if the rest is not known.
func TestStaysAway(t *testing.T) {
	for boot, least := range map[string]time.Duration{"b": 0, "c": 20 * time.Minute} {
		l := newLeft(t)
		a := l.auto("A")
		a.Settle(0, limittest.Admit(a, 0, limit.One), &limit.Outcome{Result: limit.Limited, RetryAfter: 30 * time.Minute})
		all := a.Ready(0, limit.One).Sub(0)
		l.close()
		l.off, l.boot = 20*time.Minute, boot
		l.open()
		b, now := l.auto("A"), mono.Time(time.Hour)
		limit.Replay(b, now, mono.Min, nil)
		if got := b.Ready(now, limit.One).Sub(now); got <= least || got > all-20*time.Minute+least {
			t.Errorf("boot %s: 20 min later it waits for %v of %v", boot, got, all)
		}
		l.close()
	}
}
