package tokens

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"io"
	"strings"
)

// Providers count a PDF by its pages. How many it has is found without reading it as a reader of PDFs would: each page is a dictionary of
// /Type /Page, the root of their tree has their /Count, and both are plain text or in object streams, which are deflated
// (ISO 32000-1, 7.5.7, 7.7.3). So one pass over the file finds them, whatever its table of objects says.

const (
	pdfName   = 24        // of a name so much is kept; those that matter are shorter
	pdfDepth  = 32        // dictionaries within dictionaries
	inflated  = 12        // object streams are inflated to so many times the size of the file at most, and
	leastPDF  = 256 << 10 // so much at least
	perStream = 2 << 10   // what each of them costs besides
	pageSize  = 16        // bytes of a page at least, so that no /Count makes a file a giant
)

// pdfPages returns how many pages a PDF has that is inlined as base64 in JSON, with or without "data:" before it. It is false for what is
// no PDF, or keeps its pages where they are not found, as where object streams are encrypted.
func pdfPages(v []byte) (n int64, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return 0, false
	}
	v = v[1 : len(v)-1]
	if bytes.HasPrefix(v, []byte("data:")) {
		_, v, _ = bytes.Cut(v, []byte(","))
	}
	const magic = "JVBER" // %PDF in base64
	if !bytes.HasPrefix(v, []byte(magic)) {
		return 0, false
	}
	if bytes.IndexByte(v, '\\') >= 0 { // some encoders write "\/"
		v = bytes.ReplaceAll(v, []byte(`\/`), []byte("/"))
	}
	size := len(v) / 4 * 3
	s := pdfScan{budget: max(size*inflated, leastPDF)}
	s.scan(bufio.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(v))), true)
	n = s.pages
	if s.count > 0 && (s.count < n || s.unread || n == 0) { // pages of earlier revisions are still there, and do not count
		n = s.count
	}
	found := n > 0 && (s.count > 0 || !s.unread)
	return n, found && n <= int64(size/pageSize)+1
}

// pdfScan is what was found in a PDF.
type pdfScan struct {
	pages  int64 // dictionaries of pages
	count  int64 // the largest that a tree of pages says of itself
	unread bool  // an object stream could not be read
	budget int   // how many bytes may still be inflated
	dicts  []pdfDict

	inflate io.Reader // it is large, so there is one; nil: none yet
}

// pdfDict is what matters of a dictionary.
type pdfDict struct {
	last, kind         string // the latest name, and what it is a dictionary of
	count              int64
	flate, other, tree bool // how its stream is encoded; it has kids
}

// scan reads the text of a PDF, or of one of its object streams, to its end or to where it cannot be read.
func (s *pdfScan) scan(r *bufio.Reader, file bool) {
	var last pdfDict // the latest one that has ended, outside of all others
	word := make([]byte, 0, pdfName)
	s.dicts = s.dicts[:0]
	for {
		c, err := r.ReadByte()
		if err != nil {
			return
		}
		switch c {
		case '%':
			if file {
				pdfLine(r)
			}
		case '(':
			pdfString(r)
		case '<':
			if s.opens(r) {
				s.dicts = append(s.dicts, pdfDict{})
			}
		case '>':
			if next, _ := r.Peek(1); len(next) == 1 && next[0] == '>' && len(s.dicts) > 0 {
				r.ReadByte()
				last = s.ends()
			}
		case '/':
			s.name(string(pdfWord(r, word)))
		default:
			if !pdfRegular(c) {
				continue
			}
			word = pdfWord(r, append(word[:0], c))
			switch {
			case file && len(s.dicts) == 0 && string(word) == "stream":
				s.stream(r, &last)
			default:
				s.value(word)
			}
			word = word[:0]
		}
	}
}

// opens reads what follows a "<": another one, which begins a dictionary, or a string of hexadecimal digits.
func (s *pdfScan) opens(r *bufio.Reader) bool {
	next, _ := r.Peek(1)
	if len(next) == 1 && next[0] == '<' {
		r.ReadByte()
		if len(s.dicts) < pdfDepth {
			return true
		}
		s.dicts, s.unread = s.dicts[:0], true
		return false
	}
	for {
		if c, err := r.ReadByte(); err != nil || c == '>' {
			return false
		}
	}
}

// name takes in a name in the innermost dictionary: a key, or the value of the key before.
func (s *pdfScan) name(name string) {
	if len(s.dicts) == 0 {
		return
	}
	d := &s.dicts[len(s.dicts)-1]
	switch {
	case d.last == "Type":
		d.kind, d.last = name, ""
		return
	case d.last == "Filter" && (name == "FlateDecode" || name == "Fl"):
		d.flate = true
		return
	case d.last == "Filter" && strings.HasSuffix(name, "Decode"):
		d.other = true
		return
	case name == "Predictor":
		for i := range s.dicts {
			s.dicts[i].other = true
		}
	case name == "Kids":
		d.tree = true
	}
	d.last = name
}

// value takes in a number or another word.
func (s *pdfScan) value(word []byte) {
	if len(s.dicts) == 0 {
		return
	}
	d := &s.dicts[len(s.dicts)-1]
	if d.last == "Count" {
		n := int64(0)
		for _, c := range word {
			if c < '0' || c > '9' || n > 1<<40 {
				n = 0
				break
			}
			n = 10*n + int64(c-'0')
		}
		d.count = n
	}
	d.last = ""
}

// ends takes in the innermost dictionary, which has ended, and returns it if it is in no other.
func (s *pdfScan) ends() (d pdfDict) {
	d = s.dicts[len(s.dicts)-1]
	s.dicts = s.dicts[:len(s.dicts)-1]
	switch {
	case d.kind == "Page":
		s.pages++
	case d.kind == "Pages" && d.tree:
		s.count = max(s.count, d.count)
	}
	if len(s.dicts) > 0 {
		s.dicts[len(s.dicts)-1].last = ""
		return pdfDict{}
	}
	return d
}

// stream reads the stream of a dictionary: what is in it, if it has objects.
func (s *pdfScan) stream(r *bufio.Reader, d *pdfDict) {
	if d.kind == "ObjStm" {
		s.objects(r, d)
	}
	const end = "endstream"
	at := 0
	for at < len(end) {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return
		case c == end[at]:
			at++
		case c == end[0]:
			at = 1
		default:
			at = 0
		}
	}
}

// objects reads an object stream.
func (s *pdfScan) objects(r *bufio.Reader, d *pdfDict) {
	if c, _ := r.ReadByte(); c == '\r' {
		r.ReadByte()
	}
	if !d.flate || d.other || s.budget <= 0 {
		s.unread = true
		return
	}
	s.budget -= perStream
	var err error
	if s.inflate == nil {
		s.inflate, err = zlib.NewReader(r) // it reads byte by byte from what can, and so not beyond its end
	} else {
		err = s.inflate.(zlib.Resetter).Reset(r, nil)
	}
	if err != nil {
		s.unread = true
		return
	}
	within := &pdfBudget{from: s.inflate, scan: s}
	s.scan(bufio.NewReader(within), false)
	s.unread = s.unread || within.failed
}

// pdfBudget is what is inflated, as long as that may go on.
type pdfBudget struct {
	from   io.Reader
	scan   *pdfScan
	failed bool
}

// Read implements io.Reader.
func (b *pdfBudget) Read(p []byte) (int, error) {
	if b.scan.budget <= 0 {
		b.failed = true
		return 0, io.EOF
	}
	n, err := b.from.Read(p[:min(len(p), b.scan.budget)])
	b.scan.budget -= n
	b.failed = b.failed || err != nil && err != io.EOF
	return n, err
}

// pdfWord reads the rest of a name or another word, and keeps the beginning of it.
func pdfWord(r *bufio.Reader, word []byte) []byte {
	for {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return word
		case !pdfRegular(c):
			r.UnreadByte()
			return word
		case len(word) < pdfName:
			word = append(word, c)
		}
	}
}

// pdfRegular reports whether a byte is part of a word.
func pdfRegular(c byte) bool { return c > ' ' && !strings.ContainsRune("()<>[]{}/%", rune(c)) }

// pdfLine reads a comment.
func pdfLine(r *bufio.Reader) {
	for {
		if c, err := r.ReadByte(); err != nil || c == '\n' || c == '\r' {
			return
		}
	}
}

// pdfString reads a string in parentheses, which may contain others.
func pdfString(r *bufio.Reader) {
	for depth := 1; depth > 0; {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return
		case c == '\\':
			r.ReadByte()
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
	}
}
