package limit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// state is a state that is being written: a letter for the kind of limiter, a version, and numbers
// as varints.
type state []byte

const stateVersion = 1

func begun(b []byte, kind byte) state { return append(b, kind, stateVersion) }

func (w *state) number(n int64)      { *w = binary.AppendUvarint(*w, uint64(n)) }
func (w *state) instant(t mono.Time) { *w = binary.AppendVarint(*w, int64(t)) }

// after writes an instant as the time since before, which is not later.
func (w *state) after(t, before mono.Time) { *w = binary.AppendUvarint(*w, uint64(t)-uint64(before)) }

// reader reads a state. It keeps the first error, and reads only zeros after it.
type reader struct {
	kind string
	all  []byte
	at   int
	err  error
}

func reading(kind string, letter byte, b []byte) *reader {
	r := &reader{kind: kind, all: b}
	switch {
	case len(b) < 2:
		r.fail("it has %d bytes", len(b))
	case b[0] != letter:
		r.fail("it begins with %q, not %q: it is of another kind of limit", b[0], letter)
	case b[1] != stateVersion:
		r.at = 1
		r.fail("version %d, not %d", b[1], stateVersion)
	}
	r.at = 2
	return r
}

func (r *reader) fail(format string, args ...any) error {
	if r.err == nil {
		r.err = fmt.Errorf("limit: %s: state, byte %d of %d: %s", r.kind, r.at, len(r.all), fmt.Sprintf(format, args...))
	}
	return r.err
}

// end returns the first error. Bytes that are left are an error, too.
func (r *reader) end() error {
	if r.err == nil && r.at != len(r.all) {
		r.fail("%d bytes too many", len(r.all)-r.at)
	}
	return r.err
}

func (r *reader) uvarint(what string) uint64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.all[r.at:])
	if size <= 0 {
		r.fail("%s: no number", what)
		return 0
	}
	r.at += size
	return n
}

// number reads a number from least to most.
func (r *reader) number(what string, least, most int64) int64 {
	at := r.at
	n := r.uvarint(what)
	if r.err == nil && (n > math.MaxInt64 || int64(n) < least || int64(n) > most) {
		r.at = at
		r.fail("%s, %d, is not between %d and %d", what, n, least, most)
		return 0
	}
	return int64(n)
}

func (r *reader) instant(what string) mono.Time {
	at, n := r.at, r.uvarint(what)
	t := mono.Time(n>>1) ^ -mono.Time(n&1)
	return r.legal(what, at, t)
}

func (r *reader) legal(what string, at int, t mono.Time) mono.Time {
	if r.err == nil && t > mono.Max {
		r.at = at
		r.fail("%s is no instant", what)
		return 0
	}
	return t
}

// after reads an instant that is later than before. If equal is true, it may be the same.
func (r *reader) after(what string, before mono.Time, equal bool) mono.Time {
	at, d := r.at, r.uvarint(what)
	t := mono.Time(uint64(before) + d)
	if r.err == nil && (t < before || t == before && !equal) {
		r.at = at
		r.fail("%s is not after the one before", what)
		return 0
	}
	return r.legal(what, at, t)
}

func (r *reader) bytes(what string) []byte {
	n := r.number("the length of "+what, 0, int64(len(r.all)))
	if r.err == nil && n > int64(len(r.all)-r.at) {
		r.fail("%s has %d bytes, and %d are left", what, n, len(r.all)-r.at)
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.all[r.at-int(n) : r.at]
}

// arrivals writes the entries of a log or a timeline, with the forgotten cost. Each entry is (when,
// cost), oldest first.
func (w *state) arrivals(n int, gone int64, lost mono.Time, entry func(i int) (at mono.Time, cost int64)) {
	w.number(gone)
	w.instant(lost)
	w.number(int64(n))
	before := mono.Min
	for i := range n {
		at, cost := entry(i)
		if i == 0 {
			w.instant(at)
		} else {
			w.after(at, before)
		}
		w.number(cost)
		before = at
	}
}

// arrivals calls begin with the forgotten cost, and add for each entry. It checks that the sums do
// not overflow.
func (r *reader) arrivals(begin func(n int, gone int64, lost mono.Time), add func(at mono.Time, cost int64)) {
	gone := r.number("what was forgotten", 0, math.MaxInt64/2)
	lost := r.instant("the last forgotten arrival")
	n := r.number("the number of arrivals", 0, int64(len(r.all)-r.at)/2)
	if r.err != nil {
		return
	}
	begin(int(n), gone, lost)
	sum, at := gone, mono.Min
	for i := range n {
		if i == 0 {
			at = r.instant("an arrival")
		} else {
			at = r.after("an arrival", at, false)
		}
		cost := r.number("what an arrival counts", 1, math.MaxInt64/2-sum)
		if r.err != nil {
			return
		}
		sum += cost
		add(at, cost)
	}
}

func (w *state) log(g *log) {
	w.arrivals(g.n, g.gone, g.lost, func(i int) (mono.Time, int64) { return g.at(i).at, g.upTo(i+1) - g.upTo(i) })
}

func (r *reader) log() log {
	g := newLog()
	r.arrivals(func(n int, gone int64, lost mono.Time) {
		g.gone, g.lost = gone, lost
		size := 8
		for size < n {
			size *= 2
		}
		g.ring = make([]arrival, size)
	}, func(at mono.Time, cost int64) { g.add(at, cost) })
	return g
}

func (w *state) timeline(t *timeline) {
	at, sum := t.entries()
	w.arrivals(len(at), t.gone(), t.lost, func(i int) (mono.Time, int64) {
		if i+1 < len(at) {
			return at[i], sum[i+1] - sum[i]
		}
		return at[i], t.end - sum[i]
	})
}

func (r *reader) timeline() timeline {
	t := timeline{lost: mono.Min}
	r.arrivals(func(n int, gone int64, lost mono.Time) {
		t.at, t.sum, t.end, t.lost = make([]mono.Time, 0, n), make([]int64, 0, n), gone, lost
	}, t.add)
	return t
}

// levels reads the levels of a bucket. From one level to the next the instant rises, and the cost
// since then falls.
func (r *reader) levels() (v levels) {
	full, since := mono.Min, int64(1<<61)
	for i := range r.number("the number of levels", 0, int64(len(r.all)-r.at)/2) {
		if i == 0 {
			full = r.instant("a level")
		} else {
			full = r.after("a level", full, true)
		}
		since = r.number("what has gone since a level", 0, since)
		if r.err != nil {
			return levels{}
		}
		if i == 0 {
			v.gone = since
		}
		v.list = append(v.list, level{full, v.gone - since})
	}
	return v
}

func (r *reader) account() (s restored) {
	s.last = r.instant("the last change")
	s.limit = r.number("the limit", 1, MaxCost)
	s.window = r.number("the window", 1, int64(mono.Max))
	return s
}
