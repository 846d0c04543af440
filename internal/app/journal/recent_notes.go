package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// Note is what a process writes of itself in a folder that all processes of a user share: that it sends, and
// with which keys. So one counts what another sent with the same key a moment ago, whichever files these have.
type Note struct {
	PID     int
	Journal string // the path of what it sends
	Copied  bool   // what still counts of Journal is in the folder, too
	// Keys are the names of its keys in Journal, by DigestOf of their values.
	Keys map[string]string
	// Servers are those that get its requests. If empty, they are not known.
	Servers []string
	Keep    time.Duration // how far back its sends matter

	path string
	lock *Lock
}

// DigestOf stands for the value of a key in a file. For requests without a key, it stands for their server.
func DigestOf(value string) string {
	sum := sha256.Sum256([]byte("paceline: " + value))
	return hex.EncodeToString(sum[:16])
}

// shortestStay is how long a Note of a process that has ended is kept at least, for those with longer limits.
const shortestStay = time.Hour

// Begin writes s in a folder, as the process begins to send. If s has no Journal, it gets the path of one there.
func (s *Note) Begin(folder string, now time.Time) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	s.path = filepath.Join(folder, fmt.Sprintf("%d-%d.json", s.PID, now.UnixNano()))
	s.Journal = cmp.Or(s.Journal, s.own())
	lock, err := Own(s.path)
	if err != nil {
		return err
	}
	s.lock = lock
	return s.write()
}

// own is the path of a journal beside the note.
func (s *Note) own() string { return strings.TrimSuffix(s.path, ".json") + ".journal" }

func (s *Note) write() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := durable.Replace(durable.OS, s.path, text, nil)
	if f == nil {
		return err
	}
	return f.Close()
}

// End notes that the process has ended. It copies what still counts to the folder, since a user may remove the
// files of a process at any time. c is that of its Journal, which is closed.
func (s *Note) End(c Config, now time.Time) error {
	if s == nil || s.lock == nil {
		return nil
	}
	defer s.lock.Release()
	if s.Journal == s.own() {
		return nil
	}
	h, err := Recall(c, now)
	if err != nil {
		return err
	}
	c.Path, c.Full, c.Before, c.Lock, c.Forget = s.own(), nil, nil, nil, func(string) bool { return true }
	j, _, err := Open(c, now)
	if err != nil {
		return err
	}
	only := newHistory()
	only.Sends, only.Nonces, only.Holds = h.Sends, h.Nonces, h.Holds
	err = errors.Join(j.rewriteLocked(only), j.Close())
	if s.Copied = err == nil; !s.Copied {
		return err
	}
	return s.write()
}

// Others returns the notes of processes that have a key of s, and may have sent to its servers: of those that
// have ended, and of those that send at this moment. It removes what nobody needs any more.
func (s *Note) Others(folder string, now time.Time) (ended, sending []*Note) {
	notes, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	for _, path := range notes {
		o := &Note{path: path}
		text, err := os.ReadFile(path)
		if err != nil || path == s.path {
			continue
		}
		if json.Unmarshal(text, o) != nil {
			o.Journal = o.own() // of no use, and removed in its time
		}
		old := now.Sub(o.written()) > max(o.Keep, shortestStay)
		if !old && !o.isLike(s) {
			continue
		}
		lock, err := Own(path)
		switch _, used := errors.AsType[*InUseError](err); {
		case used:
			if o.isLike(s) {
				sending = append(sending, o)
			}
		case err != nil:
		case old:
			_, _ = os.Remove(o.own()), os.Remove(path)
			lock.Remove()
		default:
			ended = append(ended, o)
		}
		_ = lock.Release()
	}
	return ended, sending
}

// written is when the process was last seen to write.
func (s *Note) written() (at time.Time) {
	for _, path := range []string{s.path, s.Journal} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// isLike reports whether a server may take the requests of both for those of one key.
func (s *Note) isLike(o *Note) bool {
	both := false
	for k := range s.Keys {
		_, theirs := o.Keys[k]
		both = both || theirs
	}
	return both && (len(s.Servers) == 0 || len(o.Servers) == 0 ||
		slices.ContainsFunc(s.Servers, func(at string) bool { return slices.Contains(o.Servers, at) }))
}

// Recall reads what s sent with keys of o, under their names in o. c is that of the journal of o.
func (s *Note) Recall(o *Note, c Config, began time.Time) (*History, error) {
	if c.Path, c.Full = s.Journal, nil; s.Copied {
		c.Path = s.own()
	}
	h, err := Recall(c, began)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for digest, name := range s.Keys {
		if ours, both := o.Keys[digest]; both {
			names[name] = ours
		}
	}
	all := newHistory()
	for _, sent := range h.Sends {
		if ours, both := names[sent.Key]; both {
			sent.Key = ours
			all.Sends = append(all.Sends, sent)
		}
	}
	for name, ours := range names {
		if n := h.Nonces[name]; n > 0 {
			all.Nonces[ours] = n
		}
		if until := h.Holds[name]; until > 0 {
			all.Holds[ours] = until
		}
	}
	return all, nil
}

// Join adds the sends, nonces and pauses of other histories.
func (h *History) Join(others ...*History) {
	for _, o := range others {
		h.Sends = append(h.Sends, o.Sends...)
		for k, until := range o.Holds {
			if h.Holds == nil {
				h.Holds = map[string]int64{}
			}
			h.Holds[k] = max(h.Holds[k], until)
		}
		for k, n := range o.Nonces {
			if h.Nonces == nil {
				h.Nonces = map[string]uint64{}
			}
			h.Nonces[k] = max(h.Nonces[k], n)
		}
	}
	slices.SortStableFunc(h.Sends, func(a, b Sent) int { return cmp.Compare(a.Counts, b.Counts) })
}
