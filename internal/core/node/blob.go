package node

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Book is the content of a blob: the limiter's memory, and each node's part.
type Book struct {
	Incarnation   string
	Configuration string
	Turn          uint64        // number of the last turn
	Era           uint64        // names the scale of the ledger's time; the scales of two eras are not related
	Shift         time.Duration // the ledger's time is the store's clock plus this
	Slack         time.Duration // by how much the ledger may have been set behind in this era
	Latest        mono.Time     // of the last turn
	Quiet         mono.Time     // nothing is granted before this
	Blank         bool          // nothing was granted nor reported yet since the state was lost
	Life          uint32        // names the time since the state was lost last: see store_lives.go
	Lives         []uint32      // the lives before it
	WentBack      bool          // it is blank since the store went back to an earlier state
	From          uint32        // the life of this knowledge, while it is gathered: see gather
	Base          uint64        // the last known turn in that incarnation
	Gather        mono.Time     // the end of the gathering
	Forgot        mono.Time     // when the store had last lost its state, and some node had not
	State         []byte        // of the limiter
	Nodes         []Entry
}

// Entry is a node in the blob.
type Entry struct {
	ID     string
	Turn   uint64     // the node's own number of its last turn
	At     uint64     // the book's number of that turn
	Open   limit.Cost // granted, and not reported as arrived
	Until  mono.Time  // the node sends nothing after this, unless it comes again
	Next   mono.Time  // when it will have been here again
	Want   int64      // how many more requests it would take
	Mean   limit.Cost // the cost of each of these
	Served uint64     // its virtual time: its grants, in thousandths of a request, divided by its weight
	Weight uint64     // in thousandths
	Least  uint64     // its least part of the whole, in thousandths, if it wants that
	Counts uint64     // its weight at its last turn, after the least parts of all
	Most   limit.Cost // the bound of Open by grants: see may_hold.go
	Asks   limit.Cost // the bound that it asks for
	Asked  uint64     // the turn of the book in which it asked
	Splits bool       // it sends its part by itself while the store is away
	Brisk  bool       // its turns are not far apart
	Came   arrival    // since the store lost its state
	Name   string     // for people
	// Yielding is how many of Want leave a part of the limits free for others, and Leaves is that part,
	// in thousandths. Keeps is the cost of its grants that do not yield and that it has not used: see
	// left_free.go.
	Yielding int64
	Leaves   uint64
	Keeps    limit.Cost
}

const (
	blobMagic = 0xB7
	// Version 1 had neither Splits nor least parts. Version 2 had no Most. Version 3 did not
	// gather. In version 4 an absent node returned as a newcomer only later. None of them was
	// released. Version 5 had no lives. Version 6 has nodes that leave nothing free.
	blobPlain   = 6
	blobVersion = 7
	nodesMost   = 1 << 16
)

// encode writes the blob: a byte that marks it, the version, the fields, and a checksum. While no node leaves
// anything free it is version 6, so that programs without later versions can share the limit.
func (b *Book) encode() []byte {
	version := byte(blobPlain)
	if b.yields() {
		version = blobVersion
	}
	w := append(make(writer, 0, 256+len(b.State)+128*len(b.Nodes)), blobMagic, version)
	w.text(b.Incarnation)
	w.text(b.Configuration)
	w.number(b.Turn)
	w.number(b.Era)
	w.signed(int64(b.Shift))
	w.signed(int64(b.Slack))
	w.signed(int64(b.Latest))
	w.signed(int64(b.Quiet))
	w.number(bit(b.WentBack)<<1 | bit(b.Blank))
	w.number(uint64(b.Life))
	w.number(uint64(len(b.Lives)))
	for _, life := range b.Lives {
		w.number(uint64(life))
	}
	w.number(uint64(b.From))
	w.number(b.Base)
	w.signed(int64(b.Gather))
	w.signed(int64(b.Forgot))
	w.text(string(b.State))
	w.number(uint64(len(b.Nodes)))
	for i := range b.Nodes {
		e := &b.Nodes[i]
		w.text(e.ID)
		w.text(e.Name)
		w.number(e.Turn)
		w.number(e.At)
		w.cost(&e.Open)
		w.cost(&e.Most)
		w.cost(&e.Asks)
		w.number(e.Asked)
		w.signed(int64(e.Until.Sub(b.Latest)))
		w.signed(int64(e.Next.Sub(b.Latest)))
		w.number(uint64(e.Want))
		w.cost(&e.Mean)
		w.number(e.Served)
		w.number(e.Weight<<2 | bit(e.Brisk)<<1 | bit(e.Splits))
		w.number(uint64(e.Came))
		w.number(e.Least)
		w.number(e.Counts)
		if version > blobPlain {
			w.number(uint64(e.Yielding))
			w.number(e.Leaves)
			w.cost(&e.Keeps)
		}
	}
	return binary.BigEndian.AppendUint32(w, crc32.ChecksumIEEE(w))
}

type writer []byte

func (w *writer) number(n uint64) { *w = binary.AppendUvarint(*w, n) }
func (w *writer) signed(n int64)  { *w = binary.AppendVarint(*w, n) }
func (w *writer) text(s string)   { w.number(uint64(len(s))); *w = append(*w, s...) }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (w *writer) cost(c *limit.Cost) {
	set := uint64(0)
	for u, n := range c {
		if n != 0 {
			set |= 1 << u
		}
	}
	w.number(set)
	for _, n := range c {
		if n != 0 {
			w.number(uint64(n))
		}
	}
}

// VersionError means that a blob has another version than this program's.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("share: the limit is kept in version %d, and this program has version %d: run the same version "+
		"everywhere", e.Version, blobVersion)
}

// Decode reads a blob. The error is a *VersionError, or says where the blob is damaged.
func Decode(blob []byte) (*Book, error) {
	switch {
	case len(blob) < 6:
		return nil, fmt.Errorf("share: the blob is damaged: it has %d bytes", len(blob))
	case blob[0] != blobMagic:
		return nil, fmt.Errorf("share: the blob is damaged: it begins with %#x, not %#x", blob[0], blobMagic)
	}
	body := blob[:len(blob)-4]
	if sum := binary.BigEndian.Uint32(blob[len(body):]); sum != crc32.ChecksumIEEE(body) {
		return nil, fmt.Errorf("share: the blob is damaged: of %d bytes the checksum is %#x, not %#x", len(blob),
			crc32.ChecksumIEEE(body), sum)
	}
	version := blob[1]
	if version < blobPlain || version > blobVersion { // after the checksum: a damaged blob has no version
		return nil, &VersionError{int(version)}
	}
	r := reader{all: body, at: 2}
	b := &Book{}
	b.Incarnation, b.Configuration = r.text(), r.text()
	b.Turn, b.Era = r.number(), r.number()
	b.Shift, b.Slack = time.Duration(r.signed()), time.Duration(r.signed())
	b.Latest, b.Quiet = r.instant(), r.instant()
	blank := r.number()
	b.Blank, b.WentBack = blank&1 == 1, blank>>1&1 == 1
	b.Life = r.life()
	if lives := r.number(); lives > livesMost {
		r.fail("%d lives", lives)
	} else {
		for range lives {
			b.Lives = append(b.Lives, r.life())
		}
	}
	b.From, b.Base, b.Gather, b.Forgot = r.life(), r.number(), r.instant(), r.instant()
	b.State = []byte(r.text())
	n := r.number()
	if n > nodesMost {
		r.fail("%d nodes", n)
	}
	const least = 16 // bytes of an entry; a damaged blob may claim more entries than it has room for
	b.Nodes = slices.Grow(b.Nodes, int(min(n, uint64(len(body)-r.at)/least)))
	for i := uint64(0); i < n && r.err == nil; i++ {
		var e Entry
		e.ID, e.Name = r.text(), r.text()
		e.Turn, e.At = r.number(), r.number()
		e.Open, e.Most, e.Asks, e.Asked = r.cost(), r.cost(), r.cost(), r.number()
		e.Until, e.Next = b.Latest.Add(time.Duration(r.signed())), b.Latest.Add(time.Duration(r.signed()))
		e.Want, e.Mean = int64(min(r.number(), math.MaxInt32)), r.cost()
		e.Served = r.number()
		weight := r.number()
		e.Weight, e.Brisk, e.Splits = weight>>2, weight>>1&1 == 1, weight&1 == 1
		if e.Came = arrival(min(r.number(), uint64(arrivals))); e.Came == arrivals {
			r.fail("an arrival that is none")
		}
		e.Least, e.Counts = r.number(), r.number()
		if version > blobPlain {
			e.Yielding, e.Leaves, e.Keeps = int64(min(r.number(), math.MaxInt32)), min(r.number(), 1000), r.cost()
		}
		b.Nodes = append(b.Nodes, e)
	}
	if r.err == nil && r.at != len(body) {
		r.fail("%d bytes too many", len(body)-r.at)
	}
	return b, r.err
}

type reader struct {
	all []byte
	at  int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("share: the blob is damaged at byte %d of %d: %s", r.at, len(r.all), fmt.Sprintf(format, args...))
	}
}

func (r *reader) number() uint64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.all[r.at:])
	if size <= 0 {
		r.fail("no number")
		return 0
	}
	r.at += size
	return n
}

func (r *reader) life() uint32 {
	n := r.number()
	if n > math.MaxUint32 {
		r.fail("a life that is none")
	}
	return uint32(n)
}

func (r *reader) signed() int64 {
	n := r.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) instant() mono.Time {
	t := mono.Time(r.signed())
	if t > mono.Max {
		r.fail("no instant")
	}
	return t
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.all)-r.at) {
		r.fail("%d bytes are to follow, and %d do", n, len(r.all)-r.at)
	}
	if r.err != nil {
		return ""
	}
	r.at += int(n)
	return string(r.all[r.at-int(n) : r.at])
}

func (r *reader) cost() (c limit.Cost) {
	set := r.number()
	if set >= 1<<len(c) {
		r.fail("a unit that is none")
	}
	for u := range c {
		if r.err == nil && set>>u&1 == 1 {
			c[u] = int64(min(r.number(), limit.MaxCost))
		}
	}
	return c
}
