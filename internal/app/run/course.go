package run

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// heldBytes bounds the bytes of all requests that are read ahead, whatever their number.
const heldBytes = 256 << 20

// severalOf is the part of what may be read ahead that is read at once, when the rest is there. A reader
// that is woken for each request takes more time than the request in its queue.
const severalOf = 16

// course keeps whether a run goes on, why it ended, and how much is read ahead. Safe for concurrent
// use.
type course struct {
	mu      sync.Mutex
	changed *sync.Cond  // signals changes of all fields but the errors
	bytes   int64       // bytes of the requests that are held
	held    int         // how many there are
	most    int         // how many a reader holds before it waits for room for several; 0: it does not
	several int         // that room
	full    bool        // it waits for it
	stopped atomic.Bool // nothing more is read; changed under the lock, and read without, by each attempt
	feeding bool        // the feeder has not returned
	reading bool        // the feeder waits for input

	halt    func() // stops all that sends or waits
	whole   bool   // the input was read to its end
	enough  error  // the user's own bound that ended sending, such as a budget
	input   error  // an ErrInput, with which reading ended
	wrong   error  // an ErrHost, or the reason why no key or token is accepted
	failure error  // the reason why something could not be written
}

// newCourse makes the course of a run that halt stops.
func newCourse(halt func()) *course {
	c := &course{halt: halt}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// set makes a change, and wakes all goroutines that wait for one.
func (c *course) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

// first keeps err in *of, unless *of has an error. It reports whether it kept err.
func (c *course) first(of *error, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *of != nil {
		return false
	}
	*of = err
	return true
}

func (c *course) stop() { c.set(func() { c.stopped.Store(true) }) }

func (c *course) isStopped() bool { return c.stopped.Load() }

// isReading notes whether the feeder waits for input. It returns false if the run is over.
func (c *course) isReading(now bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading != now {
		c.reading = now
		c.changed.Broadcast()
	}
	return !c.stopped.Load()
}

// take waits until there is room for a request. It returns false if the run is over.
func (c *course) take(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.hasRoom(size) && !c.stopped.Load() {
		c.changed.Wait()
	}
	if !c.stopped.Load() {
		c.bytes += size
		c.held++
	}
	return !c.stopped.Load()
}

// hasRoom reports whether a request may be taken. It is called with the lock held.
func (c *course) hasRoom(size int64) bool {
	switch {
	case c.bytes > 0 && c.bytes+size > heldBytes:
		return false
	case c.held <= c.most-c.several || c.several == 0:
		c.full = false
	case c.held >= c.most:
		c.full = true
	}
	return !c.full
}

// ahead sets how many requests are read ahead, besides those in flight.
func (c *course) ahead(queue, inFlight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.several = queue+inFlight, queue/severalOf
}

// free gives back the bytes of requests that were taken.
func (c *course) free(size int64, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= size
	if c.held -= requests; !c.full || c.held <= c.most-c.several {
		c.changed.Broadcast()
	}
}

// left waits until the feeder has returned, or is stuck in a read that cannot be ended. After such
// a read the feeder changes nothing. gone reports that the feeder has returned.
func (c *course) left() (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped.Store(true)
	for c.feeding && !c.reading {
		c.changed.Wait()
	}
	return !c.feeding
}

// until ends the sending at Config.Until. It reads the wall clock again and again, since the
// clock may be set and a laptop may sleep.
func (c *course) until(conf *Config, done <-chan struct{}) {
	for !conf.isOver() {
		select {
		case <-time.After(min(time.Until(conf.Until.Round(0)), time.Second)):
		case <-done:
			return
		}
	}
	if conf.Every > 0 {
		c.halt()
		return
	}
	c.ends(conf.over())
}

func (c *Config) isOver() bool { return time.Until(c.Until.Round(0)) <= 0 }

func (c *Config) over() error {
	return fmt.Errorf("%w: it is %s (--until)", ErrEnough, c.Until.Format("2 Jan 15:04:05"))
}

// ends stops the sending for a bound of the user.
func (c *course) ends(why error) {
	c.first(&c.enough, why)
	c.halt()
}

// goesWrong ends the run, since a host, a key or a token is wrong.
func (c *course) goesWrong(why error) {
	c.first(&c.wrong, why)
	c.halt()
}

// fail stops the sending after a failed write.
func (c *course) fail(err error) {
	c.first(&c.failure, err)
	c.halt()
}
