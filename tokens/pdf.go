package tokens

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"io"
	"strings"
)

// Providers count a PDF by its pages. Their number is found in one pass, without a full PDF reader.
// Each page is a dictionary of /Type /Page. The root of the page tree has the total as /Count. Both
// are plain text or in object streams, which are deflated (ISO 32000-1, 7.5.7, 7.7.3). So the pass
// needs no table of objects.

const (
	pdfName   = 24        // bytes kept of a name; the names of interest are shorter
	pdfDepth  = 32        // dictionaries within dictionaries
	inflated  = 12        // object streams are inflated to at most so many times the size of the file,
	leastPDF  = 256 << 10 // but at least to this
	perStream = 2 << 10   // extra cost of each object stream
	pageSize  = 16        // least bytes of a page, so that no /Count makes a small file count as huge
)

// pdfPages returns the number of pages of a PDF that is inline base64 in JSON, with or without
// "data:" before it. ok is false if v is no PDF. It is also false if the pages are not found, as in
// encrypted object streams.
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
	// Pages of earlier revisions are still in the file, and do not count.
	if s.count > 0 && (s.count < n || s.unread || n == 0) {
		n = s.count
	}
	found := n > 0 && (s.count > 0 || !s.unread)
	return n, found && n <= int64(size/pageSize)+1
}

// pdfScan has the facts found in a PDF.
type pdfScan struct {
	pages  int64 // dictionaries of pages
	count  int64 // the largest /Count of a page tree
	unread bool  // an object stream could not be read
	budget int   // bytes that may still be inflated
	dicts  []pdfDict

	inflate io.Reader // a large reader, so one serves all streams; nil: none yet
}

// pdfDict has the entries of a dictionary that pdfScan needs.
type pdfDict struct {
	last, kind         string // the latest name, and the dictionary's /Type
	count              int64
	flate, other, tree bool // the stream's encodings; the dictionary has kids
}

// scan reads the text of a PDF, or of one of its object streams. It stops at the end or at the
// first place that cannot be read.
func (s *pdfScan) scan(r *bufio.Reader, file bool) {
	var last pdfDict // the latest dictionary that has ended, outside of all others
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

// opens reads the bytes after a "<". Another "<" begins a dictionary; otherwise it is a string of
// hexadecimal digits.
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

// name adds a name to the innermost dictionary: a key, or the value of the key before.
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

// value adds a number or another word to the innermost dictionary.
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

// ends closes the innermost dictionary, and returns it if no other dictionary is around it.
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

// stream reads the stream of a dictionary: its objects, if it has any.
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
		s.inflate, err = zlib.NewReader(r) // it reads byte by byte if r can, and so not beyond the end of the stream
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

// pdfBudget is a reader of inflated data, up to the budget.
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

// pdfWord reads the rest of a name or another word, and keeps its beginning.
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

// pdfString reads a string in parentheses, which may contain other strings.
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
