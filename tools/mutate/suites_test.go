package mutate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

// End is what became of the tests.
type End uint8

const (
	Passed        End = iota
	Failed            // a test failed
	Crashed           // the process ended without the name of a test: a fatal error, or no memory
	TooLong           // more than Factor times the usual processor time, or time
	ReallyTooLong     // the same, and without a fault they were as quick as ever right after it
)

// Factor is how many times what is usual the tests may take: a hang costs that much. Tests that are
// as quick as ever right after it are at most half of it, so it cannot be less than what a busy
// machine makes of them, twice.
const Factor = 3

// floorCPU comes on top of that, for tests that take next to nothing.
const floorCPU = 4 * time.Second

// mostSkipped is how many tests may fail without a fault: those that need a browser do, which wants
// more memory than limited allows.
const mostSkipped = 10

// Suite is the tests of a package. Its methods are safe for concurrent use.
type Suite struct {
	Folder string
	// Binary has them built so that the number 0 is without a fault.
	Binary string
	// Least is the least time after which they hang. If zero, 15 s.
	Least time.Duration
	// Most is how long they may take without a fault. If zero, 10 minutes.
	Most time.Duration

	mu    sync.Mutex // held while they are measured; guards the rest
	usual map[bool]*Result
	skip  []string
}

// Result is how a run of tests ended.
type Result struct {
	End       End
	Test      string // the first that failed
	Wall, CPU time.Duration
	Output    string
}

// Usual returns how the tests end without a fault. A few that fail then are skipped from then on:
// copies are not inlined, so there may be more to allocate.
func (s *Suite) Usual(ctx context.Context, short bool) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.usual[short]; u != nil {
		return u, nil
	}
	return s.measureLocked(ctx, short)
}

func (s *Suite) measureLocked(ctx context.Context, short bool) (*Result, error) {
	for {
		r, err := s.start(ctx, s.Binary, 0, short, "", s.skip, cmp.Or(s.Most, 10*time.Minute), time.Hour)
		switch {
		case err != nil:
			return nil, err
		case r.End == Passed:
			if s.usual == nil {
				s.usual = map[bool]*Result{}
			}
			s.usual[short] = r
			return r, nil
		case r.End == TooLong:
			return nil, fmt.Errorf("mutate: without a fault, the tests in %s take longer than %v", s.Folder,
				r.Wall.Round(time.Second))
		case r.Test == "" || len(s.skip) >= mostSkipped:
			return nil, fmt.Errorf("mutate: without a fault, the tests in %s:\n%s", s.Folder, r.Output)
		}
		for _, m := range failedTest.FindAllStringSubmatch(r.Output, -1) {
			s.skip = append(s.skip, m[1])
		}
	}
}

// Skipped returns the tests that fail without a fault.
func (s *Suite) Skipped() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.skip)
}

// Run runs the tests as they are built in binary, with the mutant of that number at work, until the
// first fails; only the one of a name, if that is not empty. Where they go on for too long, it runs
// them without a fault: if they are slower then than they were, too, it is the machine, and the
// mutant has another chance, in so much more time.
func (s *Suite) Run(ctx context.Context, binary string, number int, short bool, only string) (*Result, error) {
	u, err := s.Usual(ctx, short)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		wall, cpu := s.most(u)
		r, err := s.start(ctx, binary, number, short, only, s.Skipped(), wall, cpu)
		if err != nil || r.End != TooLong || tries == 3 {
			return r, err
		}
		s.mu.Lock()
		fresh, err := s.measureLocked(ctx, short)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if fresh.Wall <= wall/2 && fresh.CPU <= cpu/2 {
			r.End = ReallyTooLong
			return r, nil
		}
		u = fresh
	}
}

func (s *Suite) most(usual *Result) (wall, cpu time.Duration) {
	return max(cmp.Or(s.Least, 15*time.Second), Factor*usual.Wall), Factor*usual.CPU + floorCPU
}

// start runs them once.
func (s *Suite) start(ctx context.Context, binary string, number int, short bool, only string, skip []string, wall,
	cpu time.Duration) (*Result, error) {
	args := []string{"-c", limited, strconv.Itoa(int(cpu/time.Second) + 2), binary,
		"-test.paniconexit0", "-test.failfast=" + strconv.FormatBool(number != 0), "-test.timeout", wall.String(),
		"-test.short=" + strconv.FormatBool(short)}
	if only != "" {
		args = append(args, "-test.run", "^"+only+"$")
	}
	if len(skip) > 0 {
		args = append(args, "-test.skip", "^("+strings.Join(skip, "|")+")$")
	}
	ctx, cancel := context.WithTimeout(ctx, wall*4/3) // it has stopped by itself before that
	defer cancel()
	c := exec.CommandContext(ctx, "sh", args...)
	c.Dir = s.Folder
	c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "PACELINE_LONG=", overlay.AtWork(number))
	c.WaitDelay = time.Second // what it has started may still have its output
	began := time.Now()
	out, err := c.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, err
	}
	r := &Result{Wall: time.Since(began), CPU: c.ProcessState.UserTime() + c.ProcessState.SystemTime(),
		Output: string(out)}
	switch {
	case err == nil:
		r.End = Passed
	case ctx.Err() != nil || r.CPU >= cpu || strings.Contains(r.Output, "panic: test timed out after"):
		r.End = TooLong
	default:
		r.End = Crashed
		if m := failedTest.FindStringSubmatch(r.Output); m != nil {
			r.End, r.Test = Failed, m[1]
		}
	}
	return r, nil
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// limited bounds the memory of a test, for a mutant may never stop asking for more, and the seconds of processor time.
const limited = `ulimit -v 8000000 2>/dev/null; ulimit -t "$0"; exec "$@"`
