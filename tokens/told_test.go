package tokens_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/tokens"
)

// said sums up facts, so that a golden file can hold thousands of answers.
type said struct{ all strings.Builder }

func (s *said) say(format string, args ...any) { fmt.Fprintf(&s.all, format+"\n", args...) }

// sum returns a number that depends on all facts since the last sum.
func (s *said) sum() string {
	defer s.all.Reset()
	return golden.Sum(s.all.String())
}

// files are the inline or named files of bodies: images, PDFs, sounds, and others.
func files(t *testing.T) (all []string) {
	pdf := func(objects string) string {
		return base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n" + objects + "\ntrailer\n%%EOF\n"))
	}
	page := "1 0 obj\n<</Type /Page /Parent 2 0 R>>\nendobj\n"
	tree := func(n int) string { return fmt.Sprintf("2 0 obj\n<</Type/Pages/Kids[]/Count %d>>\nendobj\n", n) }
	for _, data := range []string{
		asPNG(t, 1, 1), asPNG(t, 40, 30), asPNG(t, 512, 513), asJPEG(t, 2000, 900), asJPEG(t, 0, 900), asPNG(t, 3000, 1200)[:60], pdf(page), pdf(page + page + tree(2)), pdf(page + page + tree(1)), pdf(tree(12) + strings.Repeat(" ", 900)),
		pdf("(a \\) /Type /Page " + page), pdf("%" + page + page), pdf("<</Length 9>>stream\n" + page + "endstream\n" + page), pdf("<</Type/ObjStm/Filter/LZW>>stream\nx\nendstream" + page), pdf(tree(900)),
		base64.StdEncoding.EncodeToString(make([]byte, 3999)), base64.StdEncoding.EncodeToString(make([]byte, 160)), "A", "",
	} {
		all = append(all, data, "data:application/octet-stream;base64,"+data)
	}
	return append(all, "https://example.org/a", "file-1")
}

// filled returns a tree of JSON with files in place of its inline files.
func filled(rng *rand.Rand, tree any, files []string) any {
	switch v := tree.(type) {
	case map[string]any:
		m := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m[k] = filled(rng, v[k], files)
		}
		return m
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, filled(rng, e, files))
		}
		return list
	case string:
		if v == "QUJDREVGR0g=" || v == "AAAA" || strings.HasPrefix(v, "https://example.org") {
			return files[rng.IntN(len(files))]
		}
	}
	return tree
}

// grafted returns a tree of JSON with some values replaced: by values of its own or of another
// body, or by odd ones.
func grafted(rng *rand.Rand, tree any, from []any) any {
	odd := []any{nil, true, false, 0.0, 1.0, 1.5, -1.0, 1e20, "", "text", "a \"quoted\" ÿ 中 \u2028", []any{}, map[string]any{}, []any{"a", 1.0}, map[string]any{"text": "inner", "type": "text"}}
	pick := func() any {
		if rng.IntN(2) == 0 {
			return odd[rng.IntN(len(odd))]
		}
		return from[rng.IntN(len(from))]
	}
	switch v := tree.(type) {
	case map[string]any:
		m := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch rng.IntN(24) {
			case 0: // it is missing
			case 1:
				m[k] = pick()
			default:
				m[k] = grafted(rng, v[k], from)
			}
		}
		return m
	case []any:
		var list = []any{}
		for _, e := range v {
			if rng.IntN(24) == 0 {
				list = append(list, pick())
			}
			list = append(list, grafted(rng, e, from))
		}
		return list
	}
	return tree
}

// branches are all values within a tree.
func branches(tree any, to []any) []any {
	to = append(to, tree)
	switch v := tree.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			to = branches(v[k], to)
		}
	case []any:
		for _, e := range v {
			to = branches(e, to)
		}
	}
	return to
}

// Bodies with replaced values are read as before. The test covers the counts, the bounds, Hidden,
// and the estimates for models of every family.
func TestWhatIsReadOfBodies(t *testing.T) {
	race.Without(t) // one call after another
	var b strings.Builder
	var all []any
	inlined := files(t)
	trees := make([]any, len(bodies))
	for i, c := range bodies {
		if err := json.Unmarshal([]byte(c[1]), &trees[i]); err != nil {
			t.Fatal(err)
		}
		all = branches(trees[i], all)
	}
	models := []string{"gpt-5.6", "gpt-5-nano-2025-08-07", "gpt-4.1-mini", "gpt-4o-mini", "gpt-4o", "o3-pro", "o4-mini", "gpt-4-turbo", "gpt-3.5-turbo", "text-embedding-3-small", "claude-3-5-haiku", "claude-opus-4-1", "claude-x",
		"gemini-2.5-pro", "gemini-3-flash", "", "brand-new"}
	guess, count := newEstimator(t, tokens.Config{CountMax: -1}), newEstimator(t, tokens.Config{DefaultMaxOutput: 5000})
	for i, c := range bodies {
		api := tokens.APIOf(c[0])
		rng := rand.New(rand.NewPCG(uint64(i), 18))
		var s said
		read, text := 0, int64(0)
		for range 150 {
			raw, err := json.Marshal(grafted(rng, filled(rng, trees[i], inlined), all))
			if err != nil {
				t.Fatal(err)
			}
			body, err := tokens.Parse(api, raw)
			s.say("%v %s %t %t %d %d %t %d %d %t %t %d", err != nil, body.Model, body.Stream, body.StreamUsage, body.Choices, body.MaxOutput, body.Bounded, body.TextBytes, body.Attachments, body.Hidden, body.Guessed, body.Bytes())
			if err != nil {
				continue
			}
			read, text = read+1, text+body.TextBytes
			body.Model = models[rng.IntN(len(models))]
			for _, e := range []*tokens.Estimator{guess, count} {
				est := e.Of(body)
				s.say("%d %d %d %t %t", est.Input, est.Output, est.MaxOutput, est.Assumed, est.Counted)
			}
		}
		fmt.Fprintf(&b, "%s: %d of 150 read, %d bytes of text; all that was told: %s\n", c[0], read, text, s.sum())
	}
	golden.CompareFloats(t, "bodies.golden", b.String())
}

// Answers with missing, repeated or replaced members are read as before, in pieces of any size.
func TestWhatIsReadOfAnswers(t *testing.T) {
	race.Without(t) // one call after another
	type given struct {
		name   string
		api    tokens.API
		stream bool
		text   string
	}
	all := make([]given, 0, len(streams)+len(vendorAnswers))
	for _, c := range streams {
		all = append(all, given{c.api.String() + ", events", c.api, true, c.text})
	}
	for _, c := range vendorAnswers {
		all = append(all, given{c.name, c.api, c.stream, c.answer})
	}
	const odd = "{}[]\":,0129\\ \n\rdxe-.nt"
	var b strings.Builder
	for i, c := range all {
		rng := rand.New(rand.NewPCG(uint64(i), 19))
		var s said
		known, input := 0, int64(0)
		for range 300 {
			text := c.text
			for range rng.IntN(3) {
				at := rng.IntN(len(text))
				to := min(at+rng.IntN(1<<rng.IntN(8)), len(text))
				switch rng.IntN(4) {
				case 0:
					text = text[:at] + text[to:]
				case 1:
					text = text[:to] + text[at:]
				case 2:
					text = text[:at] + string(odd[rng.IntN(len(odd))]) + text[at:]
				case 3:
					text = text[:at] + string(odd[rng.IntN(len(odd))]) + text[min(at+1, len(text)):]
				}
				if text == "" {
					text = " "
				}
			}
			w := tokens.NewWatcher(c.api, c.stream, pieces(text, rng.IntN(50)))
			if got, err := io.ReadAll(w); err != nil || string(got) != text {
				t.Fatalf("%s: %q became %q, %v", c.name, text, got, err)
			}
			u, err := w.Usage()
			s.say("%+v %t %t %t", u, errors.Is(err, tokens.ErrIncomplete), errors.Is(err, tokens.ErrNoUsage), errors.Is(err, tokens.ErrMalformed))
			if err == nil {
				known, input = known+1, input+u.Input
			}
			if !c.stream {
				u, err = tokens.ParseUsage(c.api, []byte(text))
				s.say("%+v %t %t %t", u, errors.Is(err, tokens.ErrIncomplete), errors.Is(err, tokens.ErrNoUsage), errors.Is(err, tokens.ErrMalformed))
			}
		}
		fmt.Fprintf(&b, "%s: %d of 300 say what was used, %d tokens of input; all that was told: %s\n", c.name, known, input, s.sum())
	}
	golden.Compare(t, "answers.golden", b.String())
}

// The lessons, and so the estimates, are as before. The test covers known and unknown models, every
// sort of body, and with and without a chance of an overrun.
func TestWhatIsLearned(t *testing.T) {
	race.Without(t) // one call after another
	fitted, judged := prompts(t)
	texts, truth := append(fitted, judged...), newEstimator(t, tokens.Config{})
	var b strings.Builder
	for i, c := range []tokens.Config{{}, {Overrun: 0.1, InputOverrun: 0.05, Models: 2}, {Overrun: 0.3, CountMax: 200, DefaultMaxOutput: 900, Alias: map[string]string{"prod": "gpt-4o"}}} {
		e := newEstimator(t, c)
		rng := rand.New(rand.NewPCG(uint64(i), 20))
		var s said
		for n := 1; n <= 600; n++ {
			model := []string{"gpt-4o", "gpt-4", "claude-x", "brand-new", "prod"}[rng.IntN(5)]
			rest := []string{"", `,"max_tokens":700`, `,"max_tokens":90,"n":2`, `,"tools":[{"type":"function","function":{"name":"f"}}]`, `,"web_search_options":{}`}[rng.IntN(5)]
			text := texts[rng.IntN(len(texts))]
			est := estimate(t, e, tokens.Chat, string(chatBody(model, text, rest)))
			s.say("%d %d %d %t %t %t %d", est.Input, est.Output, est.MaxOutput, est.Assumed, est.Counted, est.Calibrated, est.Tokens())
			if n%60 == 0 {
				fmt.Fprintf(&b, "%d, %d answers: %s is to have %d in and %d of %d out; all that was told: %s\n", i, n, model, est.Input, est.Output, est.MaxOutput, s.sum())
			}
			actual := estimate(t, truth, tokens.Chat, string(chatBody("gpt-4o", text, rest)))
			used := tokens.Usage{Input: actual.Input * int64(80+rng.IntN(60)) / 100, Output: est.MaxOutput * int64(rng.IntN(40)) / 100}
			e.Learn(est, used)
		}
	}
	golden.CompareFloats(t, "learned.golden", b.String())
}
