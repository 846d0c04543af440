package run

import "sync"

// heldBytes bounds how many bytes the requests take that are read ahead, whatever their number.
const heldBytes = 256 << 20

// course says whether a run goes on, what ended it, and how much is read ahead. Safe for concurrent use.
type course struct {
	mu      sync.Mutex
	changed *sync.Cond // signals changes of all fields but the errors
	bytes   int64      // how many bytes the requests have that are held
	stopped bool       // nothing more is read
	feeding bool       // the feeder has not returned
	reading bool       // the feeder waits for input

	whole   bool  // the input was read to its end
	enough  error // why no more is sent, for a reason that the user gave
	input   error // an ErrInput, with which reading ended
	wrong   error // an ErrHost, or why no key or token is accepted
	failure error // why something could not be written
}

func newCourse() *course {
	c := &course{}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// set makes a change, and wakes all who wait for one.
func (c *course) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

// first keeps err in *of, unless an error is there already. It says whether it kept it.
func (c *course) first(of *error, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *of != nil {
		return false
	}
	*of = err
	return true
}

func (c *course) stop() { c.set(func() { c.stopped = true }) }

func (c *course) isStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// isReading notes whether the feeder waits for input. It returns false if the run is over.
func (c *course) isReading(now bool) bool {
	c.set(func() { c.reading = now })
	return !c.isStopped()
}

// take waits until there is room for a request. It returns false if the run is over.
func (c *course) take(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.bytes > 0 && c.bytes+size > heldBytes && !c.stopped {
		c.changed.Wait()
	}
	if !c.stopped {
		c.bytes += size
	}
	return !c.stopped
}

func (c *course) free(size int64) { c.set(func() { c.bytes -= size }) }

// left waits until the feeder has returned, or is stuck in a read that nothing ends; after such a read it touches nothing any more. gone
// says that it has returned.
func (c *course) left() (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for c.feeding && !c.reading {
		c.changed.Wait()
	}
	return !c.feeding
}
