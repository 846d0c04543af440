package fairshare

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// HoldsUntil returns when nothing that the server said keeps a request away any more. It is not
// before now. It is for Hints with no request in flight.
func (h *Hints) HoldsUntil(now mono.Time) mono.Time {
	all := limit.Cost{}
	for u := range all {
		all[u] = limit.MaxCost
	}
	return h.Ready(now, all)
}

// AppendIdle appends what the server said to b. Requests in flight are left out. RestoreIdle reads
// it into new Hints of the same configuration, in the same process.
func (h *Hints) AppendIdle(b []byte) []byte {
	b = binary.AppendVarint(b, int64(h.last))
	for u := range h.words {
		w := &h.words[u]
		if w.most < 0 {
			continue
		}
		b = append(b, byte(u)+1, bits(w.cut, w.known.all, w.known.served))
		for _, n := range w.figures() {
			b = binary.AppendVarint(b, n.get(h.last))
		}
	}
	return append(b, 0)
}

var errHints = errors.New("fairshare: Hints: the state is damaged")

// RestoreIdle returns what follows the state in b.
func (h *Hints) RestoreIdle(b []byte) (rest []byte, err error) {
	number := func() (n int64) {
		n, size := binary.Varint(b)
		if size <= 0 {
			b, err = nil, errHints
			return 0
		}
		b = b[size:]
		return n
	}
	h.last = mono.Time(number())
	for err == nil && len(b) > 0 && b[0] != 0 {
		u := int(b[0]) - 1
		if u >= len(h.words) || len(b) < 2 {
			return nil, errHints
		}
		w, flags := &h.words[u], b[1]
		b = b[2:]
		w.cut, w.known.all, w.known.served = flags&1 != 0, flags&2 != 0, flags&4 != 0
		for _, n := range w.figures() {
			n.set(number(), h.last)
		}
	}
	if err != nil || len(b) == 0 {
		return nil, errHints
	}
	return b[1:], nil
}

func bits(all ...bool) (b byte) {
	for i, is := range all {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// figure is an instant, a span or an amount. An instant is written as its distance from the last
// change, which takes fewer bytes.
type figure struct {
	at     *mono.Time
	span   *time.Duration
	amount *int64
}

// figures are the figures of a word, in the order of the state.
func (w *word) figures() [10]figure {
	return [10]figure{
		{at: &w.until}, {at: &w.since}, {at: &w.heard}, {at: &w.known.since}, {at: &w.known.literal},
		{span: &w.per}, {span: &w.known.per}, {span: &w.known.doubt}, {amount: &w.least}, {amount: &w.most},
	}
}

func (n figure) get(last mono.Time) int64 {
	switch {
	case n.at != nil:
		return int64(*n.at) - int64(last)
	case n.span != nil:
		return int64(*n.span)
	}
	return *n.amount
}

func (n figure) set(value int64, last mono.Time) {
	switch {
	case n.at != nil:
		*n.at = mono.Time(value + int64(last))
	case n.span != nil:
		*n.span = time.Duration(value)
	default:
		*n.amount = value
	}
}
