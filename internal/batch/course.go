package batch

import "sync"

// heldBytes bounds what the requests read ahead take, whatever their number.
const heldBytes = 256 << 20

// course says whether a run goes on, what ended it, and how much is read ahead. Safe for concurrent use.
type course struct {
	mu      sync.Mutex
	changed *sync.Cond // of all but the errors
	bytes   int64      // of requests that are held
	stopped bool       // nothing more is read
	feeding bool       // the feeder is there
	reading bool       // and waits for input

	whole   bool  // the input was read to its end
	enough  error // no more is to be sent
	input   error // an ErrInput: reading ended
	wrong   error // an ErrHost
	failure error // of a write
}

func newCourse() *course {
	c := &course{}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// set changes what others may wait for.
func (c *course) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

// first keeps the first of errors, and says whether it was that.
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

// isReading notes whether the feeder waits for input. False: the run is over.
func (c *course) isReading(now bool) bool {
	c.set(func() { c.reading = now })
	return !c.isStopped()
}

// take waits until there is room for a request. False: the run is over.
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

// left waits until the feeder is gone, or stuck in a read that nothing ends, after which it touches nothing any more.
func (c *course) left() (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for c.feeding && !c.reading {
		c.changed.Wait()
	}
	return !c.feeding
}
