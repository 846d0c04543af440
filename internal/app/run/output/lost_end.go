package output

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// tail is the end of a file of results: the last whole line, and what is after it.
type tail struct{ last, half []byte }

// lostEnd finds out whether the journal has lost its end, and with it the sends of requests without
// a result. A power cut takes the ends of both files. Three signs show it:
//
//	the results end within a line, and the journal has no send of its request
//	the last result is later than all of the journal, which does not have its request
//	the journal itself ends within a line
//
// A journal that was cut exactly at the end of a line may show none of them. None of them is left
// by the end of a process, not even by kill -9: each line is written at once, and the send of a
// request is in the journal before its result. The zero value found nothing.
type lostEnd struct {
	half   []string  // the beginnings of results that are no whole lines, with the id or a part of it
	torn   bool      // there are such results
	hashed bool      // they have hashes of ids
	last   []string  // the ids of the last results
	at     time.Time // when the latest of them ended
	known  bool      // the journal has one of these
	Found  bool      // the journal has lost its end
	// left is how many requests further on may have been sent. Several models are read at once.
	left atomic.Int64
}

// MostLost is how many requests in the order of the input may have been sent behind the last of
// which that is known. More than twice as many are never written within the 100 ms after which
// both files are synced.
const MostLost = 2000

// Tails takes in how the files ended. They may be the same.
func (l *lostEnd) Tails(files ...*Results) {
	for i, f := range files {
		if i > 0 && f == files[0] || f == nil {
			continue
		}
		if half := bytes.TrimRight(f.tail.half, "\x00"); len(f.tail.half) > 0 {
			l.torn, l.hashed = true, strings.HasSuffix(f.form.Start(), "batch_req_")
			l.half = append(l.half, strings.TrimPrefix(string(half), f.form.Start()))
		}
		var last struct {
			ID    string    `json:"id"`
			State string    `json:"state"`
			At    time.Time `json:"at"`
		}
		// Results of other forms have no instant, and show nothing.
		if json.Unmarshal(f.tail.last, &last) == nil && last.State == "done" && !last.At.Before(l.at) {
			l.last, l.at = append(l.last[:0], last.ID), last.At
		}
	}
}

// Knows takes in the id of a request that is in the journal.
func (l *lostEnd) Knows(id string) {
	for _, last := range l.last {
		l.known = l.known || last == id
	}
}

// Look looks for the signs, after the journal was read.
func (l *lostEnd) Look(h *journal.History) {
	later := l.at.UnixNano() > h.Until && !l.known && len(l.last) > 0 && h.Gone == ""
	l.Found = later || h.Torn || l.torn && !l.has(h)
	l.left.Store(MostLost)
}

// has reports whether the journal has the sends of all results that are no whole lines.
func (l *lostEnd) has(h *journal.History) bool {
	for _, half := range l.half {
		id, _, whole := strings.Cut(half, `"`)
		found := false
		for known := range h.Doubts {
			if l.hashed { // in the format of OpenAI's batches
				sum := sha256.Sum256([]byte(known))
				known = strings.TrimPrefix(format.BatchID(sum[:]), "batch_req_")
			}
			if found = known == id || !whole && strings.HasPrefix(known, id); found {
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// Passed notes that a request of the input has a result.
func (l *lostEnd) Passed() { l.left.Store(MostLost) }

// MayHave reports whether a request without a result may have been sent before. The requests are
// sent in about the order in which they are read.
func (l *lostEnd) MayHave(id string, h *journal.History) bool {
	_, known := h.Doubts[id]
	switch {
	case !l.Found:
	case known:
		l.Passed()
	case l.left.Add(-1) >= 0:
		return true
	}
	return known
}
