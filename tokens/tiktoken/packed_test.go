package tiktoken

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer"

	"github.com/paceline-go/paceline/internal/testkit/race"
)

var update = flag.Bool("update", false, "pack the vocabularies anew")

// reference returns all tokens of a vocabulary with their ranks, from the module that has them as
// Go programs.
func reference(t testing.TB, name string) (tokenizer.Codec, map[string]int) {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.Encoding(name))
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[string]int{}
	for id, gap := uint(0), 0; gap < 100; id++ {
		token, err := codec.Decode([]uint{id})
		if err != nil {
			gap++
			continue
		}
		ranks[token], gap = int(id), 0
	}
	return codec, ranks
}

func pack(t testing.TB, ranks map[string]int) []byte {
	t.Helper()
	tokens := slices.Sorted(maps.Keys(ranks))
	data := binary.LittleEndian.AppendUint32(nil, uint32(len(tokens)))
	last := ""
	for _, token := range tokens {
		shared := 0
		for shared < min(len(last), len(token)) && last[shared] == token[shared] {
			shared++
		}
		if len(token) > 255 {
			t.Fatalf("a token of %d bytes", len(token))
		}
		data = append(data, byte(shared), byte(len(token)-shared))
		data, last = append(data, token[shared:]...), token
	}
	for shift := 0; shift < 24; shift += 8 {
		for _, token := range tokens {
			data = append(data, byte(ranks[token]>>shift))
		}
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPackedAsInTheModule(t *testing.T) {
	race.Without(t) // one call after another
	for _, v := range vocabularies {
		_, want := reference(t, v.name)
		if *update {
			if v.more != nil { // these belong to another vocabulary, and are few
				continue
			}
			if err := os.WriteFile(v.name+".bin", pack(t, want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		v.Count("") // which unpacks
		if !maps.Equal(v.ranks, want) {
			t.Errorf("%s: %d tokens are not the %d of the module", v.name, len(v.ranks), len(want))
		}
	}
}

var samples = []string{
	"", " ", "  ", "\n", " \n ", "\r\n\r\n  x", "Hello, world's end", "I'LL'S we'Re'ǅ", "don'T can't've 'd'", "it's 'tis A'ſ 'ſb 'll'LL'lL",
	"中文ABC日本 語", "ABCdefGHIjkl", "\u0301A\u0301a\u0301", " \u0301ABC", "-\u0301", "ǅ ʰ ªº ǅa Aʰ", "1234567 ٣٤٥٦ ⅷ½ 12a",
	"    if x:\n\t\treturn  y  \n\n\n", "a\u00a0b\u2003\u3000c\u0085d\u200be", "//path///\r\n/x !?\n\n !!/\n", "\xff\xfe a\xc3", "<|endoftext|>",
	"🙂👩‍👩‍👧 ok", strings.Repeat("a", 300), strings.Repeat("xyz", 99), strings.Repeat(" ", 200) + "x", "x" + strings.Repeat("\n", 60),
	"İSTANBUL ΣΊΣΥΦΟΣ ß ẞ", "हिन्दी ภาษาไทย עברית",
}

// patterns are tiktoken's own. pretokenize.go follows them.
var patterns = map[string]string{
	"r50k_base":   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"p50k_base":   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"cl100k_base": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"o200k_base": `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
}

// model is a vocabulary from independent sources.
type model struct {
	ours  *vocabulary
	split *regexp2.Regexp
}

func models(t testing.TB) (out []model) {
	t.Helper()
	for _, v := range vocabularies {
		// Without the parentheses regexp2 would take the code that the module has generated for the
		// pattern. That code ends a run of spaces at its first newline, where the pattern means the
		// last. It also finds nothing in "\x7f".
		out = append(out, model{v, regexp2.MustCompile("(?:"+patterns[v.name]+")", regexp2.None)})
	}
	return out
}

// merged returns the number of tokens of a piece: byte-pair encoding by its definition, in the
// square of the piece's length.
func merged(ranks map[string]int, piece string) int64 {
	if _, ok := ranks[piece]; ok {
		return 1
	}
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		lowest, at := unmergeable, -1
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && rank < lowest {
				lowest, at = rank, i
			}
		}
		if at < 0 {
			return int64(len(parts))
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
}

// check compares the pieces of a text with the pattern, and the merging of each piece with the
// definition.
func (m model) check(t *testing.T, text string) {
	t.Helper()
	text = string([]rune(text))
	match, err := m.split.FindStringMatch(text)
	var sum int64
	for left := text; left != ""; {
		if err != nil || match == nil {
			t.Fatalf("%s: of %q the pattern leaves %q: %v", m.ours.name, text, left, err)
		}
		piece := left[:m.ours.split(left)]
		if piece != match.String() {
			t.Fatalf("%s: of %q the piece %q is %q by the pattern", m.ours.name, text, piece, match.String())
		}
		n := m.ours.Count(piece)
		if want := merged(m.ours.ranks, piece); n != want {
			t.Fatalf("%s: %q is %d tokens, want %d", m.ours.name, piece, n, want)
		}
		sum, left = sum+n, left[len(piece):]
		match, err = m.split.FindNextMatch(match)
	}
	if got := m.ours.Count(text); got != sum {
		t.Fatalf("%s: %q is %d tokens, and its pieces are %d", m.ours.name, text, got, sum)
	}
}

func FuzzCounts(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	all := models(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range all {
			m.check(t, text)
		}
	})
}

// Pieces of the samples in random orders. A fuzzer without coverage does not find these.
func TestCountsInAnyOrder(t *testing.T) {
	race.Without(t) // one call after another
	var bits []string
	for _, s := range samples {
		runes := []rune(s)
		for i := 0; i < len(runes); i += 3 {
			bits = append(bits, string(runes[i:min(i+3, len(runes))]))
		}
	}
	all := models(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			b.WriteString(bits[rng.IntN(len(bits))])
		}
		for _, m := range all {
			m.check(t, b.String())
		}
	}
}

// The module counts plain text as this package does.
func TestCountsAsTheModule(t *testing.T) {
	race.Without(t) // one call after another
	text, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vocabularies {
		codec, _ := reference(t, v.name)
		for line := range strings.Lines(string(text)) {
			if want, err := codec.Count(line); err != nil || v.Count(line) != int64(want) {
				t.Errorf("%s: %q is %d tokens, want %d, %v", v.name, line, v.Count(line), want, err)
			}
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	for _, v := range vocabularies {
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				unpack(v.packed)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	text := strings.Repeat("The quick brown fox doesn't jump over 12345 lazy dogs; antidisestablishmentarianism, naïvely.\n", 100)
	for _, v := range vocabularies {
		codec, _ := reference(b, v.name)
		b.Run(v.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Count(text)
			}
		})
		b.Run(v.name+"/module", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = codec.Count(text)
			}
		})
	}
}
