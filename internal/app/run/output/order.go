package output

import (
	"cmp"
	"slices"
	"sync"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// span is a line in a file. If n is 0, there is no line.
type span struct {
	at, n int64
	isOld bool // an earlier run wrote it
}

// These bound how much may wait behind a slow request. Beyond them no more is read; requests that
// were read go on.
const (
	mostOutOfOrder      = 100_000
	mostBytesOutOfOrder = 1 << 30
)

// order puts the lines of ended requests into the order in which the requests were read. Safe for
// concurrent use.
type order struct {
	mu      sync.Mutex
	changed *sync.Cond
	queue   []format.Hash // ids that were read, and are not shown
	at      int           // index in queue of the first
	ends    map[format.Hash]span
	cut     map[format.Hash]span // lines of earlier runs, whose requests are sent again although they are done
	bytes   int64
	place   int    // in the input, of the last that was read
	unread  []span // of rest: those that ended and were not read
	stopped bool
}

func newOrder() *order {
	o := &order{ends: map[format.Hash]span{}, cut: map[format.Hash]span{}}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// read takes in the next request of the input. anew says that this run sends it; otherwise it ended
// in an earlier run. read waits while too many lines wait for their turn. The request may have ended before it
// is read, where another feeder hands it over.
func (o *order) read(d format.Hash, place int, anew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.stopped && len(o.queue) > o.at && (len(o.queue)-o.at >= mostOutOfOrder || o.bytes > mostBytesOutOfOrder) {
		o.changed.Wait()
	}
	o.queue, o.place = append(o.queue, d), place
	o.changed.Broadcast()
	if anew {
		if s := o.ends[d]; s.isOld {
			o.cut[d] = s
			delete(o.ends, d)
		}
	} else if _, ok := o.ends[d]; !ok {
		o.ends[d] = span{} // a dead letter
	}
}

// await waits while a request at this place is too far ahead of those that were read. It never waits for one
// that was read, since others may wait for that.
func (o *order) await(place int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.stopped && place > o.place && (len(o.ends) >= mostOutOfOrder || o.bytes > mostBytesOutOfOrder) {
		o.changed.Wait()
	}
}

// ended notes the place of a request's line. An empty span says that it has none: then a line of an earlier run
// stays.
func (o *order) ended(d format.Hash, s span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.n == 0 {
		if was, ok := o.cut[d]; ok {
			s = was
		} else if was := o.ends[d]; was.isOld {
			s = was
		}
	}
	delete(o.cut, d)
	if !s.isOld {
		o.bytes += s.n
	}
	o.ends[d] = s
}

// next returns the next line to show, if its request has ended.
func (o *order) next() (span, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at == len(o.queue) {
		o.queue, o.at = o.queue[:0], 0
		return span{}, false
	}
	s, ok := o.ends[o.queue[o.at]]
	if ok {
		o.popLocked(s)
	}
	return s, ok
}

// rest is next, but skips requests that have not ended.
func (o *order) rest() (span, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.at < len(o.queue) {
		if s, ok := o.ends[o.queue[o.at]]; ok {
			o.popLocked(s)
			return s, true
		}
		o.at++
	}
	for d, s := range o.ends { // they ended before they were read
		if !s.isOld && s.n > 0 {
			o.unread = append(o.unread, s)
			o.bytes -= s.n
			delete(o.ends, d)
		}
	}
	if len(o.unread) == 0 {
		return span{}, false
	}
	slices.SortFunc(o.unread, func(a, b span) int { return cmp.Compare(b.at, a.at) }) // the last is the first in the file
	s := o.unread[len(o.unread)-1]
	o.unread = o.unread[:len(o.unread)-1]
	return s, true
}

func (o *order) popLocked(s span) {
	delete(o.ends, o.queue[o.at])
	o.at++
	if !s.isOld {
		o.bytes -= s.n
	}
	if o.at > mostOutOfOrder {
		o.queue, o.at = append(o.queue[:0], o.queue[o.at:]...), 0
	}
	o.changed.Broadcast()
}

// ready returns how many ended requests wait for one before them.
func (o *order) ready() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queued := map[format.Hash]bool{}
	for _, d := range o.queue[o.at:] {
		if queued[d] = true; o.ends[d].n > 0 {
			n++
		}
	}
	for d, s := range o.ends {
		if s.n > 0 && !s.isOld && !queued[d] {
			n++
		}
	}
	return n
}

// stop ends all waits in read.
func (o *order) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	o.changed.Broadcast()
}
