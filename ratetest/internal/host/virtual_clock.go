package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ClockPath is the path below which a server with a virtual clock answers for it:
//
//	/clock/sleep?client=NAME&seconds=1.5   answers when the client's sleep is over
//	/clock/leave?client=NAME               the clock no longer waits for the client
//	/clock/now
//
// Each answer is the time of the virtual clock in seconds, as text.
const ClockPath = "/clock/"

// MostClients is the most clients of a virtual clock.
const MostClients = 1000

// patience is how long the virtual clock stands still, in real time, before it gives up.
const patience = time.Minute

// virtualClock lets the clients of a test sleep in virtual time. Safe for concurrent use.
type virtualClock struct {
	stopped chan struct{} // closed: no sleep any more, for the reason why

	mu       sync.Mutex // guards the fields below, and is never held across a wait
	sleepers *sleepers
	waiting  map[string]chan struct{} // closed when the sleep of the client is over
	why      error
	moved    time.Time   // the latest call of a client, in real time
	alarm    *time.Timer // looks whether that is too long ago
}

func newVirtualClock(clients int) *virtualClock {
	return &virtualClock{sleepers: newSleepers(clients), waiting: map[string]chan struct{}{}, stopped: make(chan struct{})}
}

func (v *virtualClock) now() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Duration(v.sleepers.now)
}

// sleep returns when the client's sleep is over. If ctx is done before, the client has left.
func (v *virtualClock) sleep(ctx context.Context, name string, d time.Duration) error {
	over, err := v.enter(name, d)
	if err != nil {
		return err
	}
	select {
	case <-over:
	case <-v.stopped:
		return v.reason()
	case <-ctx.Done():
	}
	// Without this, a client that went away as its sleep ended would stay awake for ever.
	if err := ctx.Err(); err != nil {
		v.leave(name)
		return err
	}
	return nil
}

func (v *virtualClock) enter(name string, d time.Duration) (over chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.why != nil {
		return nil, v.why
	}
	if err := v.sleepers.sleep(name, d); err != nil {
		return nil, err
	}
	over = make(chan struct{})
	v.waiting[name] = over
	v.advanceLocked()
	return over, nil
}

// leave returns the time before others wake up for it.
func (v *virtualClock) leave(name string) (time.Duration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.sleepers.leave(name); err != nil {
		return 0, err
	}
	now := time.Duration(v.sleepers.now)
	delete(v.waiting, name)
	v.advanceLocked()
	return now, nil
}

func (v *virtualClock) advanceLocked() {
	if name, ok := v.sleepers.next(); ok {
		close(v.waiting[name])
		delete(v.waiting, name)
	}
	v.moved = time.Now()
	if v.alarm == nil {
		v.alarm = time.AfterFunc(patience, v.look)
	}
}

// look stops the clock if it has stood still for too long while clients wait.
func (v *virtualClock) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	rest := patience - time.Since(v.moved)
	switch {
	case v.why != nil:
	case len(v.waiting) == 0:
		v.alarm = nil // the next call sets it again
	case rest > 0:
		v.alarm.Reset(rest)
	default:
		v.stopLocked(fmt.Errorf("the virtual clock stands still for %v: %s", patience, v.sleepers.stands()))
	}
}

func (v *virtualClock) stop(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopLocked(why)
}

func (v *virtualClock) stopLocked(why error) {
	if v.why != nil {
		return
	}
	v.why = why
	close(v.stopped)
	if v.alarm != nil {
		v.alarm.Stop()
	}
}

func (v *virtualClock) reason() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.why
}

// ServeHTTP answers below ClockPath.
func (v *virtualClock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now, status, err := v.handle(r)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, inSeconds(now)) // an error means that the client has gone
}

// handle returns the time of the answer, or an error with its status.
func (v *virtualClock) handle(r *http.Request) (now time.Duration, status int, err error) {
	q := r.URL.Query()
	name := q.Get("client")
	switch strings.TrimPrefix(r.URL.Path, ClockPath) {
	case "now":
		return v.now(), 0, nil
	case "leave":
		now, err = v.leave(name)
		return now, http.StatusConflict, err
	case "sleep":
		d, err := parseSeconds(q.Get("seconds"))
		if err != nil {
			return 0, http.StatusBadRequest, err
		}
		if err = v.sleep(r.Context(), name, d); err != nil && v.reason() != nil {
			return 0, http.StatusServiceUnavailable, err
		}
		return v.now(), http.StatusConflict, err
	}
	return 0, http.StatusNotFound, errors.New("no such path: expected /clock/sleep?client=NAME&seconds=1.5, " +
		"/clock/leave?client=NAME or /clock/now")
}

// parseSeconds reads the length of a sleep. It rounds up, so no sleep is too short.
func parseSeconds(text string) (time.Duration, error) {
	const longest = math.MaxInt64 / int64(time.Second)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < float64(longest)) {
		return 0, fmt.Errorf("seconds %q: expected a number from 0 to %d, such as 1.5", text, longest)
	}
	ns := n * float64(time.Second)
	const digits = 4e-16 // of a float64: 1.07 s is no nanosecond more
	if whole := math.Round(ns); math.Abs(ns-whole) <= ns*digits {
		return time.Duration(whole), nil
	}
	return time.Duration(math.Ceil(ns)), nil
}

// inSeconds writes all digits of a duration, as a float64 could not.
func inSeconds(d time.Duration) string {
	text := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
