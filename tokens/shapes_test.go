package tokens

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// The features of texts: words, letters after the sixth, rare pairs, capitals after the third
// letter, groups of three digits, runs of marks and of white space.
func TestShapesOfTexts(t *testing.T) {
	for text, want := range map[string]map[int]int64{
		"":                  {},
		"letter":            {words: 1},
		"letters":           {words: 1, long: 1},
		"internationally":   {words: 1, long: 9},
		"one two":           {words: 2},
		"camelCase":         {words: 2},
		"ABC":               {words: 1, odd: 1},
		"BANANAS":           {words: 1, long: 1, capital: 4},
		"qz":                {words: 1, odd: 1},
		"zzzz":              {words: 1},
		"7":                 {groups: 1},
		"777":               {groups: 1},
		"7777":              {groups: 2},
		"1234567":           {groups: 3},
		"a 7":               {words: 1, groups: 1, apart: 1},
		"!":                 {runs: 1},
		"!!!":               {runs: 1, more: 2},
		".a":                {words: 1, runs: 1, joined: 1},
		".7":                {groups: 1, runs: 1},
		"!a":                {words: 1, runs: 1},
		"..a":               {words: 1, runs: 1, more: 1},
		"a b":               {words: 2},
		"a  b":              {words: 2, breaks: 1},
		"a\nb":              {words: 2, breaks: 1},
		"a\n\nb":            {words: 2, breaks: 1},
		"a\r\nb":            {words: 2, breaks: 1},
		"a\n \nb":           {words: 2, breaks: 2},
		"a\tb":              {words: 2, breaks: 1},
		"é":                 {latin: 1},
		"日本":                {han: 2},
		"a日b":               {words: 2, han: 1},
		"\x00":              {symbol: 1},
		"\x7f":              {symbol: 1},
		"👍":                 {emoji: 1},
		"1日1":               {groups: 2, han: 1},
		"the_one":           {words: 2, runs: 1, joined: 1},
		"don't":             {words: 2, runs: 1, joined: 1},
		"a, b":              {words: 2, runs: 1},
		"\t\v\f\r\n":        {breaks: 1},
		"A1b2":              {words: 2, groups: 2},
		"aaaaaaaaaaaaaaaaa": {words: 1, long: 11, odd: 4},
	} {
		var s, expect shape
		s.add([]byte(text))
		expect.bytes = int64(len(text))
		for f, n := range want {
			expect.n[f] = n
		}
		if s != expect {
			t.Errorf("%q counts %v, want %v", text, s.n, expect.n)
		}
	}
}

// The text of a JSON string equals that of encoding/json, for all escapes.
func TestUnquoteAsJSONHasIt(t *testing.T) {
	parts := []string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`, `\u00e9`, `\u65e5`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\u0041`, `\uFFFF`, `\u000a`,
		`\uAbCd`, `\u9f0F`, "a", "é", "日", "👍", "\xff", "\xe6\x97", " ", "\x7f"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b bytes.Buffer
		for range rng.IntN(6) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		var want string
		if err := json.Unmarshal([]byte(`"`+b.String()+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := str([]byte(`"` + b.String() + `"`)); got != want {
			t.Fatalf("%q is read as %q, want %q", b.String(), got, want)
		}
	}
}

// The models older than Claude 4.7 count images differently.
func TestOlderClaudes(t *testing.T) {
	for model, older := range map[string]bool{
		"claude-3-5-sonnet-20241022": true, "claude-opus-4-20250514": true, "claude-sonnet-4-5": true, "claude-haiku-4-6": true, "claude-2.1": true, "claude-1": true, "claude-4": true,
		"us.anthropic.claude-3-haiku-20240307-v1:0": true,
		"claude-opus-4-7": false, "claude-sonnet-4-8": false, "claude-4-9": false, "claude-opus-5": false, "claude-9": false, "claude-0": false, "claude-x": false, "claude-": false, "": false,
		"claude-10": false, "claude-20-1": false, "claude-19": false, "claude-instant": false, "gpt-4o": false, "claude-opus-": false,
	} {
		if olderClaude(model) != older {
			t.Errorf("%q is older than Claude 4.7: %v", model, !older)
		}
	}
}
