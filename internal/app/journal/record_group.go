package journal

import (
	"runtime"
	"time"
)

// group is a list of records for one write. It has the records that came during the previous write,
// and those of goroutines that are ready to run.
type group struct {
	records []dated
	waits   bool          // nobody writes it yet: it has answers of AnswerSoon alone
	lent    bool          // it has one of these
	done    chan struct{} // closed when the group is written, or has failed with err
	err     error
}

// dated is a record whose instants At and Hold are filled in at the write. Then at and hold, if not
// zero, are put on the journal's scale.
type dated struct {
	record
	at, hold time.Time
}

// scale puts instants on the scale of the run, by one reading of the clocks. The reading must come
// after the instants. If the machine slept between an earlier reading and an instant, the sleep
// would not count.
type scale struct {
	wall    time.Time
	ns      int64 // wall on the scale of the run
	trusted bool  // the wall clock counts
}

func (j *Journal) scale() scale {
	wall, now := j.c.Clock()
	return scale{wall, j.run.At + int64(now.Up) - j.run.Up, j.run.Boot == "" && j.c.TrustClock}
}

func (s scale) at(t time.Time) int64 {
	if s.trusted {
		return t.Round(0).UnixNano() // by the wall clock alone, which counts time asleep
	}
	return s.ns - int64(s.wall.Sub(t))
}

// groupLocked returns the next group. first means that nobody else writes the group, and that the caller must.
func (j *Journal) groupLocked() (g *group, first bool) {
	if j.group == nil {
		j.newGroupLocked().waits = true
	}
	g = j.group
	first, g.waits = g.waits, false
	return g, first
}

func (j *Journal) newGroupLocked() *group {
	j.group, j.room = &group{records: j.room, done: make(chan struct{})}, nil
	return j.group
}

// oneLocked adds a record to the next group, unlocks mu, and waits until the group is written.
func (j *Journal) oneLocked(r dated) error {
	g, first := j.groupLocked()
	g.records = append(g.records, r)
	j.mu.Unlock()
	return j.together(g, first)
}

// together returns when a group is in the file. If the group has a send and SyncSends is set, it is
// then durable. The first goroutine of the group writes it; the others wait.
func (j *Journal) together(g *group, first bool) error {
	if !first {
		<-g.done
		return g.err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	// One write for each record would cost more than the rest of a request.
	runtime.Gosched() // goroutines that are ready to run join the group
	j.mu.Lock()
	j.group = nil
	j.mu.Unlock()
	defer close(g.done)
	if g.err = j.write(g); g.err != nil && g.lent && j.c.Unwritten != nil {
		j.c.Unwritten(g.err)
	}
	clear(g.records)
	j.mu.Lock()
	j.room = g.records[:0]
	j.mu.Unlock()
	return g.err
}

// write writes a group. Before a group with a send it compacts the file, if the file has grown
// enough.
func (j *Journal) write(g *group) error {
	var last *dated // the last send
	for i := range g.records {
		if g.records[i].Send > 0 {
			last = &g.records[i]
		}
	}
	if last != nil && j.file.Size() >= j.compact {
		j.mu.Lock()
		err := j.compactLocked(last.at)
		j.mu.Unlock()
		if err != nil {
			return err
		}
	}
	b := &j.lines
	b.Reset()
	scale := j.scale()
	for i := range g.records {
		r := &g.records[i]
		if !r.at.IsZero() {
			r.At = scale.at(r.at)
		}
		if !r.hold.IsZero() {
			r.Hold = scale.at(r.hold)
		}
		encode(b, &r.record)
	}
	if err := j.file.Append(b.Bytes()); err != nil {
		return err
	}
	if last != nil && j.c.SyncSends {
		return j.file.Sync(1)
	}
	return nil
}
