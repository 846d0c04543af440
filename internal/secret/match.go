package secret

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// state is a place in the text and a place in a pattern. Up to these places the two agree.
type state struct{ at, j int }

// match returns the end of p in the text, if p from its j-th byte on begins at i; otherwise 0. If
// the text is cut off within p, after at least p.part bytes of it, match returns the end of the
// text.
func (m *matcher) match(p *pattern, j, i int) int {
	// Several readings of a place may fit, as with a value that has "%25" in it. All but the first
	// wait in open. They are never removed, so that the rest is read only once where two readings
	// meet.
	var open []state
	s, next, from := state{i, j}, 0, j
	for {
		end, ok := m.follow(p, s, from, &open)
		if ok {
			return end
		}
		if next == len(open) {
			return 0
		}
		s = open[next]
		next++
	}
}

// follow goes on from s as long as the text fits. If several readings fit, it takes the first and
// puts the others into open.
func (m *matcher) follow(p *pattern, s state, from int, open *[]state) (end int, ok bool) {
	for s.j < len(p.text) {
		if s.at == len(m.text) {
			return s.at, m.cut&CutEnd != 0 && s.j-from >= p.part
		}
		if c := m.text[s.at]; !special[c] {
			if !p.has(s.j, c) {
				return 0, false
			}
			s.at++
			s.j++
			continue
		}
		var read [units]unit
		ways := 0
		all := m.units(&read, s.at)
		if m.torn && m.cut&CutEnd != 0 && s.j-from >= p.part {
			return len(m.text), true
		}
		was := s
		for _, u := range all {
			n := p.reads(was.j, u)
			if n == 0 {
				continue
			}
			way := state{u.end, was.j + n}
			if ways++; ways == 1 {
				s = way
			} else {
				remember(open, way)
			}
		}
		if ways == 0 {
			return 0, false
		}
	}
	return s.at, true
}

// remember adds a state, unless it is there already.
func remember(open *[]state, s state) {
	const most = 64
	if slices.Contains(*open, s) {
		return
	}
	if len(*open) < most {
		*open = append(*open, s)
	}
}

// reads returns how many bytes of the pattern, from its j-th on, a unit stands for.
func (p *pattern) reads(j int, u unit) int {
	if u.byte || u.value < utf8.RuneSelf {
		if u.value >= 0 && u.value < 256 && p.has(j, byte(u.value)) {
			return 1
		}
		return 0
	}
	var b [utf8.UTFMax]byte
	if c := utf8.AppendRune(b[:0], u.value); strings.HasPrefix(p.text[j:], string(c)) {
		return len(c)
	}
	if u.value < 256 && p.text[j] == byte(u.value) {
		return 1
	}
	return 0
}

// around extends an echo in base64 by the characters before and after it, if they have bits of the
// value.
func (m *matcher) around(p *pattern, from, to int) (int, int) {
	if n := p.lead.n; n > 0 {
		from = m.before(from, func(v byte) bool { return v&(1<<n-1) == p.lead.value })
	}
	if n := p.tail.n; n > 0 && to < len(m.text) {
		var read [units]unit
		for _, u := range m.units(&read, to) {
			if v := sextetOf(u); v < 64 && v>>(6-n) == p.tail.value {
				to = u.end
				break
			}
		}
	}
	return from, to
}

// maxEscape is the largest size of an escape for a character in base64, in bytes: \\u002b in JSON
// in JSON, &#x0002b; in HTML.
const maxEscape = 12

// before returns the beginning of the character that ends at i, if it is one of base64 and right
// accepts its value. Otherwise it returns i.
func (m *matcher) before(i int, right func(v byte) bool) int {
	for from := max(0, i-maxEscape); from < i; from++ {
		if from < i-1 && !special[m.text[from]] {
			continue
		}
		var read [units]unit
		for _, u := range m.units(&read, from) {
			if v := sextetOf(u); u.end == i && v < 64 && right(v) {
				return from
			}
		}
	}
	return i
}

func sextetOf(u unit) byte {
	if u.value < 0 || u.value >= utf8.RuneSelf {
		return 64
	}
	return sextet(byte(u.value))
}
