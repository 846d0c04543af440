// Package record keeps in a file what a Transport sends, so that a restart sends no second window, also
// after a kill. It is for a service of one process: for several that run at the same time, there is
// transport.Config.Share.
//
//	sent, err := record.Open("/var/lib/service/partner.sent")
//	defer sent.Close()
//	paced, err := transport.New(transport.Config{Recorder: sent, ...})
//
// A line is in the file before each request goes, and another after its answer. No request waits for the
// disk: the kernel has these lines when the process is killed. After a crash of the machine, which
// takes longer than most windows, the latest lines may be missing.
//
// The file has what still counts in the longest window, some 150 bytes for each request. When it has grown to three
// times that, or to 8 MiB, it is written anew. Beside it are FILE.lock and FILE.salt. The latter hides credentials:
// the file has none, but names that are useless without the salt.
package record

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// compactFrom is the size from which the file is compacted.
const compactFrom = 8 << 20

// File is a transport.Recorder that writes to a file. Open makes it. Safe for concurrent use.
type File struct {
	part
	journal *journal.Journal
	salt    journal.Salt
	began   time.Time
	all     bool          // the file has everything that was sent
	keep    time.Duration // how far back it has everything
	names   journal.Names

	mu      sync.Mutex
	failed  error // the first failure to write, besides those that a Send returns
	parts   map[string]bool
	earlier []journal.Earlier // in the order of their instants; nil once none counts any more
}

// InUseError means that another process has the file, or a File of this one.
type InUseError = durable.InUseError

// Open opens a file, or makes it. It belongs to this process until Close: for another one, Open returns
// an *InUseError. A damaged file is an error, too.
func Open(path string) (*File, error) { return open(path, nil) }

// open is Open with the clocks of the machine, or others.
func open(path string, clock func() (time.Time, boottime.Reading)) (*File, error) {
	lock, err := durable.Own(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f := &File{began: time.Now(), parts: map[string]bool{"": true}}
	f.part = part{file: f}
	if f.salt, err = journal.SaltOf(path + ".salt"); err != nil {
		return nil, fmt.Errorf("record: %w", errors.Join(err, lock.Release()))
	}
	j, h, err := journal.Open(journal.Config{Path: path, Lock: lock, CompactFrom: compactFrom, Clock: clock,
		Unwritten: f.fails, Forget: func(string) bool { return true }}, f.began)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f.journal, f.all, f.keep = j, h.Last == 0, j.Kept()
	for i := range h.Sends {
		// No request arrives later than this, whatever a clock that was set back says.
		e, err := journal.EarlierOf(&h.Sends[i], f.began, f.began.Add(journal.Late))
		if err != nil {
			return nil, fmt.Errorf("record: %s: %w", path, errors.Join(err, j.Close()))
		}
		f.earlier = append(f.earlier, e)
	}
	return f, nil
}

// Part returns the Recorder of another Transport that writes to the same file, with a name of its own.
// The name must not change over restarts. Part panics if the name is empty, or was used before.
func (f *File) Part(name string) transport.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts[name] {
		panic(fmt.Sprintf("record: two Transports with the name %q would count each other's requests", name))
	}
	f.parts[name] = true
	return part{f, name}
}

// Close closes the file, for the next process. Call it after Transport.Drain: requests fail from now on. The error
// may also be that an answer could not be written earlier. Then the next process waits for longer than it has to.
func (f *File) Close() error {
	err := f.journal.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err = errors.Join(f.failed, err); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// part is the Recorder of one Transport.
type part struct {
	file *File
	name string
}

var (
	_ transport.LongRecorder = part{}
	_ transport.Namer        = part{}
	_ transport.Lasting      = part{}
)

// Send implements transport.Recorder.
func (p part) Send(in transport.Partition, cost limit.Cost) (int64, error) {
	return p.send(in, cost, false)
}

// SendLong implements transport.LongRecorder.
func (p part) SendLong(in transport.Partition, cost limit.Cost) (int64, error) {
	return p.send(in, cost, true)
}

func (p part) send(in transport.Partition, cost limit.Cost, long bool) (int64, error) {
	name := p.file.names.Of(journal.Place{Owner: p.name, Partition: in})
	return p.file.journal.Send(journal.Send{Key: name, Cost: cost, Held: long}, time.Now())
}

// Settle implements transport.Recorder. After a failed write the request counts until the end of the
// process, and some time longer.
func (p part) Settle(entry int64, _ limit.Cost, o limit.Outcome) {
	p.file.journal.AnswerSoon(entry, journal.AnswerOf(&o))
}

// fails notes an error for Close.
func (f *File) fails(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// Earlier implements transport.Recorder.
func (p part) Earlier(in transport.Partition, zero time.Time) (all []limit.Past, since mono.Time) {
	f := p.file
	f.mu.Lock()
	defer f.mu.Unlock()
	since = mono.Min
	if !f.all {
		since = mono.Of(zero, f.began.Add(-f.keep))
	}
	if time.Since(f.began) > f.keep+journal.Late {
		f.earlier, f.all = nil, true
		return nil, mono.Min
	}
	for i := range f.earlier {
		if e := &f.earlier[i]; e.Owner == p.name && e.In(in) {
			all = append(all, e.From(zero))
		}
	}
	return all, since
}

// KeepFor implements transport.Lasting.
func (p part) KeepFor(d time.Duration) { p.file.fails(p.file.journal.KeepFor(d)) }

// KeyName implements transport.Namer.
func (p part) KeyName(credential string) string { return p.file.salt.KeyName(credential) }
