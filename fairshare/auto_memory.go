package fairshare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A memory is a letter, a version, the fields that auto_memory_fields.go lists, and a checksum.
// Instants are kept relative to the one at which it was written, since the next process has another
// scale.
const (
	memoryLetter  = 'A'
	memoryVersion = 7
	memoryLeast   = 2 + crc32.Size
)

// errMemory is the error of a memory that Recall refuses.
var errMemory = errors.New("fairshare: what was found of a limit cannot be taken up")

// AppendMemory appends to b what a knows at now, for Recall in another process. That is the limit
// or the pace that it found, how sure it is of that, when its next request goes, and for how long
// it stays away. Requests in flight count as sent. AppendMemory changes nothing, and appends a
// few kilobytes at most.
func (a *Auto) AppendMemory(b []byte, now mono.Time) []byte {
	begin := len(b)
	m := memory{b: append(b, memoryLetter, memoryVersion), at: now}
	a.keep(&m)
	return binary.LittleEndian.AppendUint32(m.b, crc32.ChecksumIEEE(m.b[begin:]))
}

// Recall makes a go on from a memory that was written at the instant at, on the scale of now. a
// must be new, with the same configuration. sent lists requests of the process before, in any
// order. Those after at count as if a had sent them. Then a goes on as if it had had nothing to
// send since. Nothing goes sooner than it would have, and at first requests go one at a time.
//
// If at is not known for sure, pass the latest instant that it may be. Recall refuses a memory that
// is damaged, of another version or of another configuration. The error names the cause; then a is as
// new.
func (a *Auto) Recall(now, at mono.Time, written []byte, sent []limit.Past) error {
	m := memory{b: written, at: min(at, now), reads: true}
	switch end := len(written) - crc32.Size; {
	case len(written) < memoryLeast:
		m.fail("it has %d bytes", len(written))
	case crc32.ChecksumIEEE(written[:end]) != binary.LittleEndian.Uint32(written[end:]):
		m.fail("it is damaged: its checksum is wrong")
	case written[0] != memoryLetter:
		m.fail("it begins with %q, not %q", written[0], memoryLetter)
	case written[1] != memoryVersion:
		m.fail("it is of version %d, and this is version %d", written[1], memoryVersion)
	default:
		m.b = written[2:end]
	}
	next, err := NewAuto(a.config)
	if err != nil {
		return err
	}
	next.keep(&m)
	if m.err == nil && len(m.b) > 0 {
		m.fail("%d bytes too many", len(m.b))
	}
	if m.err != nil {
		return fmt.Errorf("%w: %w", errMemory, m.err)
	}
	next.resume(now, m.at, sent)
	next.news = a.news + 1
	*a = *next
	return nil
}

// resume catches up with the requests that were sent after the memory was written. Requests in
// flight then are over, and their outcome is unknown. So requests wait for the next answers one by
// one.
func (a *Auto) resume(now, at mono.Time, sent []limit.Past) {
	f := a.fair
	later := slices.DeleteFunc(slices.Clone(sent),
		func(p limit.Past) bool { return p.Sent <= at || p.Result == limit.Unsent })
	slices.SortStableFunc(later, func(p, q limit.Past) int { return int(min(max(p.Sent.Sub(q.Sent), -1), 1)) })
	for _, p := range later {
		if c := f.counts(&p.Cost); c > 0 {
			f.last = max(f.last, min(p.Sent, now))
			f.pay(f.last, c)
		}
	}
	f.last = max(f.last, now)
	f.room = 1
	if a.alone != nil {
		since := slices.DeleteFunc(slices.Clone(sent),
			func(p limit.Past) bool { return p.Sent < at || p.Result == limit.Unsent })
		a.alone.restore(now, since)
	}
}

// News counts changes of AppendMemory that are worth writing down. It rises with each refusal,
// whenever a limit is stated, found or used up, and otherwise once a second at most.
func (a *Auto) News() uint64 { return a.news }

const newsEvery = time.Second

// hears counts the news of an answer.
func (a *Auto) hears(now mono.Time, news bool) {
	if news || now.Sub(a.noted) >= newsEvery {
		a.news, a.noted = a.news+1, now
	}
}

// memory writes each value to b, or reads it from there. So one list of fields serves both. After
// the first error, which it keeps, it reads nothing more.
type memory struct {
	b     []byte
	at    mono.Time
	reads bool
	err   error
}

func (m *memory) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// number writes or reads a whole number from least to most.
func number[T ~int | ~int64 | ~uint8 | ~uint64](m *memory, what string, v *T, least, most int64) {
	if !m.reads {
		m.b = binary.AppendVarint(m.b, int64(*v))
		return
	}
	if m.err != nil {
		return
	}
	n, size := binary.Varint(m.b)
	switch {
	case size <= 0:
		m.fail("%s is missing", what)
	case n < least || n > most:
		m.fail("%s is %d, expected %d to %d", what, n, least, most)
	default:
		*v, m.b = T(n), m.b[size:]
	}
}

func (m *memory) flag(what string, v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(m, what, &n, 0, 1)
	*v = n == 1
}

// real writes or reads a finite number from least to most.
func (m *memory) real(what string, v *float64, least, most float64) {
	if !m.reads {
		m.b = binary.LittleEndian.AppendUint64(m.b, math.Float64bits(*v))
		return
	}
	if m.err != nil {
		return
	}
	if len(m.b) < 8 {
		m.fail("%s is missing", what)
		return
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(m.b))
	if !(x >= least && x <= most) {
		m.fail("%s is %v, expected %v to %v", what, x, least, most)
		return
	}
	*v, m.b = x, m.b[8:]
}

// span writes or reads a time of at most farthest.
func (m *memory) span(what string, v *time.Duration, least time.Duration) {
	number(m, what, v, int64(least), farthest)
}

// farthest is a time longer than any other, and short enough that a few of it can be added up.
const farthest = math.MaxInt64 / 4

// past writes or reads an instant that is no later than the memory, or mono.Min.
func (m *memory) past(what string, v *mono.Time) { m.until(what, v, 0) }

// instant writes or reads any instant, or mono.Min.
func (m *memory) instant(what string, v *mono.Time) { m.until(what, v, farthest) }

func (m *memory) until(what string, v *mono.Time, most int64) {
	known := *v > mono.Min
	if m.flag(what, &known); !known {
		*v = mono.Min
		return
	}
	d := min(max(v.Sub(m.at), -farthest), time.Duration(most))
	number(m, what, &d, -farthest, most)
	if m.reads {
		*v = m.at.Add(d)
	}
}

// longestText bounds the name of a limit.
const longestText = 256

func (m *memory) text(what string, v *string) {
	if !m.reads {
		s := (*v)[:min(len(*v), longestText)]
		n := len(s)
		number(m, what, &n, 0, longestText)
		m.b = append(m.b, s...)
		return
	}
	n := 0
	if number(m, what, &n, 0, longestText); m.err == nil && n > len(m.b) {
		m.fail("%s has %d bytes, and %d are left", what, n, len(m.b))
	}
	if m.err == nil {
		*v, m.b = string(m.b[:n]), m.b[n:]
	}
}
