package tokens

// shape is what the byte heuristic knows of text: one pass, a table look-up per byte.
type shape struct {
	bytes  int64
	words  int64 // runs of ASCII letters; a capital after a small letter begins another, as in camelCase
	long   int64 // letters of a word beyond its sixth
	digits int64 // groups of up to three digits
	knots  int64 // changes from letters to digits and back, and of capitals inside a word: identifiers, hashes, base64
	marks  int64 // ASCII punctuation and controls
	breaks int64 // runs of white space, but for one space before a word
	two    int64 // characters of two bytes in UTF-8: accented Latin, Greek, Cyrillic, Hebrew, Arabic
	three  int64 // of three: Chinese, Japanese, Korean, Indic, Thai, symbols
	four   int64 // of four: emoji, rare ideographs
}

// tokens guesses. The weights are a least-squares fit of relative error, rounded, to the counts of cl100k_base and
// o200k_base in 500 pieces of 3 kB of prose, programs and JSON. The actual count was 0.98 to 1.08 of the guess on average
// for English, Go, Python, C, JavaScript and JSON, with 0.63 and 1.29 the furthest pieces (bytes / 4: 0.84 to 1.38, 0.67
// and 1.88). For 13 other languages it was 0.63 to 1.11 with o200k_base, and 0.89 to 1.25 with cl100k_base but for scripts
// that vocabulary hardly has: 1.6 to 1.8 for Hindi, Greek and Arabic.
func (s *shape) tokens() float64 {
	return 0.75*float64(s.words) + 0.3*float64(s.long) + 0.7*float64(s.digits) + 0.6*float64(s.knots) + 0.55*float64(s.marks) +
		2*float64(s.breaks) + 0.5*float64(s.two) + 0.9*float64(s.three) + 3*float64(s.four)
}

const (
	mark = iota
	lower
	upper
	digit
	space
	lead2
	lead3
	lead4
	tail
)

var kinds = func() (t [256]uint8) {
	for b := range t {
		switch {
		case 'a' <= b && b <= 'z':
			t[b] = lower
		case 'A' <= b && b <= 'Z':
			t[b] = upper
		case '0' <= b && b <= '9':
			t[b] = digit
		case b == ' ' || '\t' <= b && b <= '\r':
			t[b] = space
		case b >= 0xF0:
			t[b] = lead4
		case b >= 0xE0:
			t[b] = lead3
		case b >= 0xC0:
			t[b] = lead2
		case b >= 0x80:
			t[b] = tail
		}
	}
	return t
}()

// add adds the shape of text, which stands on its own: words do not run over its ends.
func (s *shape) add(text []byte) {
	s.bytes += int64(len(text))
	last, run := -1, 0
	for i := range text {
		kind := int(kinds[text[i]])
		switch kind {
		case lower, upper:
			switch {
			case last != lower && last != upper || last == lower && kind == upper:
				s.words++
				run = 0
				if last == digit {
					s.knots++
				}
			case last == upper && kind == lower && run > 1:
				s.knots++
			}
			if run++; run > 6 {
				s.long++
			}
		case digit:
			if last != digit {
				run = 0
				if last == lower || last == upper {
					s.knots++
				}
			}
			if run%3 == 0 {
				s.digits++
			}
			run++
		case mark:
			s.marks++
		case space:
			if last != space {
				// One space before a word belongs to the word's token.
				if !(text[i] == ' ' && i+1 < len(text) && kinds[text[i+1]] != space && kinds[text[i+1]] != digit) {
					s.breaks++
				}
			} else if text[i] == '\n' && (text[i-1] == ' ' || text[i-1] == '\t') { // a line of nothing but white space
				s.breaks++
			}
		case lead2:
			s.two++
		case lead3:
			s.three++
		case lead4:
			s.four++
		}
		last = kind
	}
}
