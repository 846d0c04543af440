package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
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
	Door    string // the command of the process: run, exec or proxy
	Began   int64  // ns since 1970
	Journal string // the path of what it sends
	Copied  bool   // what still counts of Journal is in the folder, too
	Follows bool   // Journal has what earlier processes wrote there, too
	Places  bool   // the keys in Journal are Places
	Idle    bool   // the process waits for programs, and sends for none
	// Forward is where programs reach the process as their proxy, and Through the proxy by which the process sends.
	// Both are HOST:PORT. If empty, there is none.
	Forward, Through string

	Led bool // paceline exec leads the requests of the process, and notes those to its own servers
	// Keys are the names of its keys in Journal, by DigestOf of their values.
	Keys map[string]string
	// Servers are those that get its requests. If empty, they are not known.
	Servers []string
	Keep    time.Duration // how far back its sends matter
	// Way says for each of its servers how another program sends there by this one, so that both count
	// together. Without it, that program cannot.
	Way map[string]string

	// AnyKey means that every key may be one of the process: its clients bring keys.
	AnyKey bool `json:"-"`

	path string
	lock *Lock
}

// DigestOf stands for a credential in a file, as secret.Credential finds it: for the key without the word in
// front, such as Bearer. For requests without a key, it stands for their server.
func DigestOf(value string) string {
	if _, key, is := strings.Cut(value, " "); is {
		value = key
	}
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
	s.Began = now.UnixNano()
	s.path = filepath.Join(folder, fmt.Sprintf("%d-%d.json", s.PID, s.Began))
	s.Journal = cmp.Or(s.Journal, s.own())
	lock, err := Own(s.path)
	if err != nil {
		return err
	}
	s.lock = lock
	return s.Write()
}

// own is the path of a journal beside the note.
func (s *Note) own() string { return strings.TrimSuffix(s.path, ".json") + ".journal" }

// Write writes s again, after a change of its fields.
func (s *Note) Write() error {
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
// files of a process at any time. c is that of its Journal, which is closed, without its path.
func (s *Note) End(c Config, now time.Time) error {
	if s == nil || s.lock == nil {
		return nil
	}
	defer s.lock.Release()
	if s.Journal == s.own() {
		return nil
	}
	c.Path = s.Journal
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
	return s.Write()
}

// Drop removes s: another process goes on with its Journal, and has a note of its own.
func (s *Note) Drop() {
	s.remove()
	s.lock.Remove()
}

func (s *Note) remove() {
	for _, end := range []string{"", ".lock", ".salt"} { // those of a proxy
		_ = os.Remove(s.own() + end)
	}
	_ = os.Remove(s.path)
}

// Others returns the notes of processes that have a key of s, and may have sent to its servers: of those that
// have ended, and of those that live. A note of requests that another one or s has, too, is not
// among them. Others removes what nobody needs any more.
func (s *Note) Others(now time.Time) (ended, living []*Note) {
	notes, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), "*.json"))
	for _, path := range notes {
		o := &Note{path: path}
		text, err := os.ReadFile(path)
		if err != nil || path == s.path {
			continue
		}
		if json.Unmarshal(text, o) != nil {
			o.Journal = o.own() // of no use, and removed in its time
		}
		old := now.Sub(o.Written()) > max(o.Keep, shortestStay)
		if !old && !o.isLike(s) {
			continue
		}
		lock, err := Own(path)
		switch _, used := errors.AsType[*InUseError](err); {
		case used:
			if o.isLike(s) {
				living = append(living, o)
			}
		case err != nil:
		case old:
			o.remove()
			lock.Remove()
		default:
			ended = append(ended, o)
		}
		_ = lock.Release()
	}
	all := slices.Concat(ended, living, []*Note{s})
	twice := func(o *Note) bool {
		return slices.ContainsFunc(all, func(n *Note) bool {
			later := n == s || n.Began > o.Began
			return n != o && (n.Follows && n.Journal == o.Journal && later || n.Door == "exec" && o.Led ||
				n == s && n.Led && o.Door == "exec" || n.leads(o) || n == s && o.leads(n))
		})
	}
	return slices.DeleteFunc(ended, twice), slices.DeleteFunc(living, twice)
}

// Written is when the process was last seen to write.
func (s *Note) Written() (at time.Time) {
	for _, path := range []string{s.path, s.Journal} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// leads reports whether o sends by the proxy that s is, which counts the requests.
func (s *Note) leads(o *Note) bool {
	return s.Forward != "" && o.Through != "" && onThisMachine(s.Forward) == onThisMachine(o.Through)
}

// onThisMachine has one name for all addresses of this machine that lead to a port.
func onThisMachine(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || host == "localhost" || ip.IsLoopback() || ip.IsUnspecified()) {
		return ":" + port
	}
	return address
}

// isLike reports whether a server may take the requests of both for those of one key.
func (s *Note) isLike(o *Note) bool {
	return (s.AnyKey || o.AnyKey || s.SharesKey(o)) && (len(s.Servers) == 0 || len(o.Servers) == 0 ||
		slices.ContainsFunc(s.Servers, func(at string) bool { return slices.Contains(o.Servers, at) }))
}

// SharesKey reports whether both have a key.
func (s *Note) SharesKey(o *Note) bool {
	for k := range s.Keys {
		if _, both := o.Keys[k]; both {
			return true
		}
	}
	return false
}

// Path is that of the note.
func (s *Note) Path() string { return s.path }

// Recall reads what s sent with keys of o to servers of o, under their names in o. If o has AnyKey, it is
// under the digests of the keys, with + between. What s sent for a model has / and the model behind the
// name. c is that of the journal of o.
func (s *Note) Recall(o *Note, c Config, began time.Time) (*History, error) {
	if c.Path, c.Full = s.Journal, nil; s.Copied {
		c.Path = s.own()
	}
	h, err := Recall(c, began)
	if err != nil {
		return nil, err
	}
	names := s.namesIn(o)
	all := newHistory()
	for _, sent := range h.Sends {
		if sent.Key = s.keyIn(o, names, sent.Key); sent.Key != "" {
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

// namesIn are the names in o of the keys of s, by their names in s.
func (s *Note) namesIn(o *Note) map[string]string {
	names := map[string]string{}
	for _, digest := range slices.Sorted(maps.Keys(s.Keys)) {
		name := s.Keys[digest]
		switch ours, both := o.Keys[digest]; {
		case o.AnyKey && names[name] != "":
			names[name] += "+" + digest
		case o.AnyKey:
			names[name] = digest
		case both:
			names[name] = ours
		}
	}
	return names
}

// keyIn is the name in o of a send's key; empty: o has no such key, or nothing to do with its server.
func (s *Note) keyIn(o *Note, names map[string]string, key string) string {
	ours, both := names[key]
	model := ""
	if s.Places {
		p, err := ParsePlace(key)
		if err != nil || len(o.Servers) > 0 && !slices.ContainsFunc(o.Servers, func(at string) bool {
			return strings.HasSuffix(at, "://"+p.Host)
		}) {
			return ""
		}
		ours, both = names[p.Key]
		model = p.Model
	} else if !both {
		key, model, _ = strings.Cut(key, "/")
		ours, both = names[key]
	}
	if both && model != "" {
		ours += "/" + model
	}
	return ours
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
