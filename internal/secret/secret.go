package secret

import "unicode/utf8"

// Key is a public name and a secret value.
type Key struct {
	Name, Value string
}

// Set finds the values of several keys. New makes one; the zero value finds none.
type Set struct {
	keys     []Key
	patterns []pattern
	weak     []Key
	first    [256][]int32 // the patterns that begin with each byte
	starts   [256]bool    // the bytes that an echo, escaped or not, may begin with
	// pair has a bit for each two bytes that may begin an echo. Two bytes distinguish most text
	// from an echo.
	pair [256]bitmap
	// reach is the largest size of an echo, in bytes.
	reach int
}

type bitmap [4]uint64

func (b *bitmap) set(c byte)      { b[c>>6] |= 1 << (c & 63) }
func (b *bitmap) has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }

// Cut says at which ends a text is cut off. At such an end a part of a key is an echo, too.
type Cut uint8

const (
	Whole    Cut = 0
	CutEnd   Cut = 1 << iota // more text came after it
	CutStart                 // more text came before it
)

// New returns a Set for the values of keys. It leaves out values that are easy to guess (see
// Guessable); Weak has the names of those.
func New(keys []Key) *Set {
	s := &Set{}
	for _, k := range keys {
		switch {
		case k.Value == "":
		case Guessable(k.Value):
			s.weak = append(s.weak, k)
		default:
			n := len(s.keys)
			s.keys = append(s.keys, k)
			for _, p := range patterns(n, k.Value) {
				s.add(p)
			}
		}
	}
	return s
}

func (s *Set) add(p pattern) {
	n := int32(len(s.patterns))
	s.patterns = append(s.patterns, p)
	s.reach = max(s.reach, (len(p.text)+2)*maxUnit)
	for c, is := range special {
		s.starts[c] = s.starts[c] || is
	}
	for _, c := range p.alternatives(0) {
		s.first[c] = append(s.first[c], n)
		s.starts[c] = true
		for _, d := range p.alternatives(1) {
			s.pair[c].set(d)
		}
		for d := range 256 {
			if special[d] {
				s.pair[c].set(byte(d))
			}
		}
	}
}

// Weak returns the names of the keys that New left out, in their order. It has none whose value says
// that it is no secret: see Placeholder.
func (s *Set) Weak() (names []string) {
	for _, k := range s.weak {
		if !Placeholder(k.Value) {
			names = append(names, k.Name)
		}
	}
	return names
}

// span is an echo: text[from:to] has the value of keys[key].
type span struct{ from, to, key int }

// Hide replaces every echo of a key by the key's name in brackets, and counts the echoes. Every
// other byte stays as it is. If there is no echo, it returns text itself.
func (s *Set) Hide(text []byte, cut Cut) (shown []byte, hidden int) {
	spans := s.find(text, cut)
	if len(spans) == 0 {
		return text, 0
	}
	at := 0
	for i := 0; i < len(spans); hidden++ {
		shown = append(shown, text[at:spans[i].from]...)
		// Overlapping echoes, of several keys or of one in several readings, are replaced together.
		to, last := spans[i].to, -1
		for ; i < len(spans) && (last < 0 || spans[i].from < to); i++ {
			if spans[i].key != last {
				last = spans[i].key
				shown = append(append(append(shown, '['), s.keys[last].Name...), ']')
			}
			to = max(to, spans[i].to)
		}
		at = to
	}
	return append(shown, text[at:]...), hidden
}

// Beginning is the least size of a text for HideBeginning, in bytes.
func (s *Set) Beginning() int { return 3 * (s.reach + maxUnit) }

// HideBeginning is Hide for the beginning of a longer text. An echo may reach beyond the end of
// text, so only the first used bytes are done. The next call must begin with the rest, which is
// shorter than Beginning.
func (s *Set) HideBeginning(text []byte, cut Cut) (shown []byte, used, hidden int) {
	if s.patterns == nil {
		return text, len(text), 0
	}
	used = max(len(text)-s.reach-maxUnit, 0)
	spans := s.find(text, cut&CutStart)
	for i := len(spans) - 1; i >= 0; i-- {
		if e := spans[i]; e.from < used && e.to > used {
			used = e.from
		}
	}
	shown, hidden = s.Hide(text[:used], cut&CutStart)
	return shown, used, hidden
}

// HideIn is Hide for a whole text.
func (s *Set) HideIn(text string) (shown string, hidden int) {
	if s.patterns == nil {
		return text, 0
	}
	b, n := s.Hide([]byte(text), Whole)
	if n == 0 {
		return text, 0
	}
	return string(b), n
}

// Holds reports whether there is an echo in text, and names the key of the first one.
func (s *Set) Holds(text string) (name string, ok bool) {
	spans := s.find([]byte(text), Whole)
	if len(spans) == 0 {
		return "", false
	}
	return s.keys[spans[0].key].Name, true
}

// find returns the echoes in the order in which they begin, without those that lie within another.
func (s *Set) find(text []byte, cut Cut) (spans []span) {
	if s.patterns == nil {
		return nil
	}
	m := matcher{text: text, cut: cut}
	last := span{}
	add := func(e span) {
		if e.to > last.to {
			e.from = max(e.from, last.from) // an echo in base64 may begin before the match
			spans, last = append(spans, e), e
		}
	}
	if cut&CutStart != 0 {
		add(s.suffix(&m))
	}
	for i, c := range text {
		switch {
		case !s.starts[c]:
		case special[c]:
			add(s.longest(&m, s.beginning(&m, i), i))
		case i+1 == len(text) || s.pair[c].has(text[i+1]):
			add(s.longest(&m, s.first[c], i))
		}
	}
	return spans
}

// beginning returns the patterns that an escape at i may begin.
func (s *Set) beginning(m *matcher, i int) (all []int32) {
	var read [units]unit
	for _, u := range m.units(&read, i) {
		if u.value < 256 {
			all = append(all, s.first[u.value]...)
		}
		if !u.byte && u.value >= utf8.RuneSelf {
			var b [utf8.UTFMax]byte
			utf8.EncodeRune(b[:], u.value)
			all = append(all, s.first[b[0]]...)
		}
	}
	return all
}

// longest returns the longest echo at i of these patterns. If there is none, it returns a span that
// ends at 0.
func (s *Set) longest(m *matcher, of []int32, i int) (best span) {
	for _, n := range of {
		p := &s.patterns[n]
		if end := m.match(p, 0, i); end > best.to {
			from, to := m.around(p, i, end)
			best = span{from, to, p.key}
		}
	}
	return best
}

// suffix returns the echo at the start of a text that is cut off there: the longest end of a key
// with which the text begins.
func (s *Set) suffix(m *matcher) (best span) {
	for n := range s.patterns {
		p := &s.patterns[n]
		for j := 1; j <= len(p.text)-p.part; j++ {
			if end := m.match(p, j, 0); end > best.to {
				_, end = m.around(p, 0, end)
				best = span{0, end, p.key}
			}
		}
	}
	return best
}
