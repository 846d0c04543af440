package journal

import (
	"runtime"
	"time"
)

// group is what is written at once: the records of all who came while the group before was written, or who can run.
type group struct {
	records []dated
	done    chan struct{} // closed when it is written, or has failed with err
	err     error
}

// dated is a record whose instants are put on the journal's scale when it is written: of At and Hold, if they are not zero.
type dated struct {
	record
	at, hold time.Time
}

// scale puts instants on the scale of the run, by one look at the clocks. It must not be looked before what it is for: time
// that was slept through in between would not count.
type scale struct {
	wall    time.Time
	ns      int64 // wall's, on the scale
	trusted bool  // the wall clock is what counts
}

func (j *Journal) scale() scale {
	wall, now := j.c.Clock()
	return scale{wall, j.run.At + int64(now.Up) - j.run.Up, j.run.Boot == "" && j.c.TrustClock}
}

func (s scale) at(t time.Time) int64 {
	if s.trusted {
		return t.Round(0).UnixNano() // what was slept through counts
	}
	return s.ns - int64(s.wall.Sub(t))
}

// groupLocked is where records are put that are to be written next. first: nobody is there who does that.
func (j *Journal) groupLocked() (g *group, first bool) {
	if first = j.group == nil; first {
		j.group, j.room = &group{records: j.room, done: make(chan struct{})}, nil
	}
	return j.group, first
}

// oneLocked puts a record there, unlocks mu, and has it written.
func (j *Journal) oneLocked(r dated) error {
	g, first := j.groupLocked()
	g.records = append(g.records, r)
	j.mu.Unlock()
	return j.together(g, first)
}

// together writes a group. It returns when that is in the file, durable if there is a send in it and SyncSends is set. The first writes
// it.
func (j *Journal) together(g *group, first bool) error {
	if !first {
		<-g.done
		return g.err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	runtime.Gosched() // whoever can run joins: a write for each would be the dearest part of a request
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

// write writes a group, and makes room before sends.
func (j *Journal) write(g *group) error {
	var last *dated // send
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
