package journal

import (
	"runtime"
	"time"
)

// group is the records that are written together: those of all goroutines that came while the group before was being written, and of
// those that are ready to run.
type group struct {
	records []dated
	done    chan struct{} // closed when the group is written, or has failed with err
	err     error
}

// dated is a record whose instants At and Hold are filled in when it is written: then at and hold, where they are not zero, are put on
// the journal's scale.
type dated struct {
	record
	at, hold time.Time
}

// scale puts instants on the scale of the run, by one look at the clocks. That look must come after the instants: if the machine slept in
// between, that time would not count.
type scale struct {
	wall    time.Time
	ns      int64 // wall on the scale of the run
	trusted bool  // the wall clock is what counts
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

// groupLocked returns the group that is written next. first says that it is new, and that the caller has to write it.
func (j *Journal) groupLocked() (g *group, first bool) {
	if first = j.group == nil; first {
		j.group, j.room = &group{records: j.room, done: make(chan struct{})}, nil
	}
	return j.group, first
}

// oneLocked adds a record to the next group, unlocks mu, and waits until the group is written.
func (j *Journal) oneLocked(r dated) error {
	g, first := j.groupLocked()
	g.records = append(g.records, r)
	j.mu.Unlock()
	return j.together(g, first)
}

// together returns when a group is in the file, and durable if it has a send and SyncSends is set. Whoever was first in the group writes
// it; the others wait.
func (j *Journal) together(g *group, first bool) error {
	if !first {
		<-g.done
		return g.err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	runtime.Gosched() // goroutines that are ready to run join the group: a write for each would be the dearest part of a request
	j.mu.Lock()
	j.group = nil
	j.mu.Unlock()
	defer close(g.done)
	g.err = j.write(g)
	clear(g.records)
	j.mu.Lock()
	j.room = g.records[:0]
	j.mu.Unlock()
	return g.err
}

// write writes a group. If a send is in it and the file has grown enough, it compacts the file before.
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
