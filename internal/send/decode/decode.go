package decode

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// coding is one content coding.
type coding uint8

const (
	gzipped coding = iota + 1
	deflated
	brotlied
	zstded
)

// named are the names of codings. The names with x- are older.
var named = map[string]coding{"gzip": gzipped, "x-gzip": gzipped, "deflate": deflated, "br": brotlied, "zstd": zstded,
	"identity": 0, "": 0}

// mostCodings is how many codings in a row are read. A server has one, and a gateway before it may
// add one.
const mostCodings = 2

// Codings are the content codings of a body, in the order in which they were applied. The zero
// value has none. Safe for concurrent use.
type Codings struct {
	all   [mostCodings]coding
	count int
	other string // what is not known of them; empty: all are known
}

// Of returns the codings that a header names.
func Of(h http.Header) (c Codings) {
	for _, field := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(field, ",") {
			c.add(name)
		}
	}
	return c
}

func (c *Codings) add(name string) {
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimSpace(name)
	one, known := named[strings.ToLower(name)]
	switch {
	case c.other != "":
	case !known:
		const most = 32
		c.other = fmt.Sprintf("%.*q", most, name)
	case one == 0:
	case c.count == len(c.all):
		c.other = fmt.Sprintf("more than %d", mostCodings)
	default:
		c.all[c.count] = one
		c.count++
	}
}

// None reports whether a body is as it is.
func (c Codings) None() bool { return c.count == 0 && c.other == "" }

// Known reports whether all the codings are known.
func (c Codings) Known() bool { return c.other == "" }

// errUnknown is about codings that no reader is known for.
func (c Codings) errUnknown() error {
	return fmt.Errorf("decode: %w: %s", ErrUnknown, c.other)
}

var (
	// ErrUnknown reports a coding that is not known, or too many in a row.
	ErrUnknown = errors.New("unknown content coding")
	// ErrBounds reports a body that would take too much memory or grow too much.
	ErrBounds = errors.New("content coding is out of bounds")
	// ErrDamaged reports bytes that are not in the named coding.
	ErrDamaged = errors.New("content coding is damaged")
)
