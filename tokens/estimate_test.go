package tokens_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

func chatBody(model, text, rest string) []byte {
	content, _ := json.Marshal(text)
	return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":%s}]%s}`, model, content, rest)
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		config tokens.Config
		says   string
	}{
		{tokens.Config{Overrun: -0.1}, "Overrun -0.1"},
		{tokens.Config{Overrun: 1}, "Overrun 1"},
		{tokens.Config{Overrun: math.NaN()}, "Overrun NaN"},
		{tokens.Config{Overrun: 0.001}, "Overrun 0.001"},
		{tokens.Config{InputOverrun: 2}, "InputOverrun 2"},
		{tokens.Config{InputOverrun: 1e-9}, "InputOverrun 1e-09"},
		{tokens.Config{Models: -1}, "Models -1"},
		{tokens.Config{DefaultMaxOutput: -1}, "DefaultMaxOutput -1"},
		{tokens.Config{MaxOutput: map[string]int64{"m": 0}}, `"m": 0`},
		{tokens.Config{InputOverrun: 1}, "InputOverrun 1"},
		{tokens.Config{Overrun: 1.0 / 514}, "the least is 1/513"},
		{tokens.Config{DefaultMaxOutput: 1<<44 + 1}, "DefaultMaxOutput 17592186044417"},
		{tokens.Config{MaxOutput: map[string]int64{"m": 1<<44 + 1}}, `"m": 17592186044417`},
	} {
		if _, err := tokens.New(test.config); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v, want an error saying %q", test.config, err, test.says)
		}
	}
}

// New accepts values at the bounds. The refused values begin right behind them.
func TestNewTakesWhatIsAtTheBounds(t *testing.T) {
	for _, c := range []tokens.Config{
		{Overrun: 1.0 / 513, InputOverrun: 1.0 / 513}, {Overrun: 0.9999, InputOverrun: 0.9999}, {DefaultMaxOutput: 1 << 44, Models: 1},
		{DefaultMaxOutput: 1, CountMax: -1, MaxOutput: map[string]int64{"least": 1, "most": 1 << 44}},
	} {
		if _, err := tokens.New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// With Overrun 0 the reserved output is the maximum of the body, the model or the configuration,
// whatever the lessons.
func TestOutputIsBounded(t *testing.T) {
	e := newEstimator(t, tokens.Config{MaxOutput: map[string]int64{"mine": 500, "gpt-4o": 777}, DefaultMaxOutput: 9000,
		Alias: map[string]string{"prod-7": "gpt-4o", "prod-8": "gpt-4.1"}})
	for _, test := range []struct {
		name    string
		api     tokens.API
		body    string
		want    int64
		assumed bool
	}{
		{"stated", tokens.Chat, `{"model":"gpt-4o","messages":[],"max_completion_tokens":100}`, 100, false},
		{"for each choice", tokens.Chat, `{"model":"gpt-4o","messages":[],"max_tokens":100,"n":4}`, 400, false},
		{"none", tokens.Messages, `{"model":"claude-x","messages":[],"max_tokens":0}`, 0, false},
		{"configured", tokens.Chat, `{"model":"mine","messages":[]}`, 500, true},
		{"configured beats published", tokens.Chat, `{"model":"gpt-4o","messages":[],"n":2}`, 1554, true},
		{"configured for what the alias means", tokens.Chat, `{"model":"prod-7","messages":[]}`, 777, true},
		{"published", tokens.Responses, `{"model":"gpt-4.1-mini","input":"x"}`, 32768, true},
		{"published, by alias", tokens.Chat, `{"model":"prod-8","messages":[]}`, 32768, true},
		{"published, of a later release", tokens.Responses, `{"model":"gpt-5.1-2025-11-13","input":"x"}`, 128000, true},
		{"a later release that may differ", tokens.Chat, `{"model":"gpt-4.7","messages":[]}`, 9000, true},
		{"unknown", tokens.Chat, `{"model":"brand-new","messages":[]}`, 9000, true},
		{"named nowhere", tokens.Chat, `{"messages":[]}`, 9000, true},
		{"impossible", tokens.Chat, `{"model":"m","messages":[],"max_tokens":17592186044416,"n":17592186044416}`, 1 << 44, false},
		{"embeddings", tokens.Embeddings, `{"model":"brand-new","input":"x"}`, 0, false},
	} {
		for round := range 2 {
			est := estimate(t, e, test.api, test.body)
			if est.Output != test.want || est.MaxOutput != test.want || est.Assumed != test.assumed {
				t.Errorf("%s, round %d: %+v, want %d", test.name, round, est, test.want)
			}
			for range 100 {
				e.Learn(est, tokens.Usage{Input: 10, Output: min(1, test.want)})
			}
		}
	}
}

// The chance of an overrun holds from the first answer at which it can: 1/Overrun − 1 answers.
func TestOutputIsLearned(t *testing.T) {
	e := newEstimator(t, tokens.Config{Overrun: 0.05, Vocabulary: tiktoken.Vocabulary})
	const body = `{"model":"m","messages":[],"max_tokens":1000}`
	for n := range 700 {
		est := estimate(t, e, tokens.Chat, body)
		switch {
		case n < 19 && est.Output != 1000:
			t.Fatalf("after %d answers %d, want the maximum", n, est.Output)
		case n >= 19 && est.Output != 100:
			t.Fatalf("after %d answers of 100 tokens %d, want that", n, est.Output)
		}
		e.Learn(est, tokens.Usage{Input: 1, Output: 100})
	}
	// Another maximum, and several choices, scale it. A body without a maximum has lessons of its
	// own.
	if got := estimate(t, e, tokens.Chat, `{"model":"m","messages":[],"max_tokens":10,"n":2}`); got.Output != 2 || got.MaxOutput != 20 {
		t.Errorf("%+v, want 2 of 20", got)
	}
	if got := estimate(t, e, tokens.Chat, `{"model":"m","messages":[]}`); got.Output != 128000 {
		t.Errorf("%+v, want 128000", got)
	}
	// The answers become longer. After 25 of the last 512 the quantile follows. After 512 the short
	// answers are forgotten.
	long := tokens.Usage{Input: 1, Output: 1000}
	for range 24 {
		e.Learn(estimate(t, e, tokens.Chat, body), long)
	}
	if got := estimate(t, e, tokens.Chat, body).Output; got != 100 {
		t.Errorf("24 long answers of 512: %d, want 100", got)
	}
	e.Learn(estimate(t, e, tokens.Chat, body), long)
	if got := estimate(t, e, tokens.Chat, body).Output; got != 1000 {
		t.Errorf("25 long answers of 512: %d, want 1000", got)
	}
	for range 512 {
		e.Learn(estimate(t, e, tokens.Chat, body), tokens.Usage{Input: 1, Output: 30})
	}
	if got := estimate(t, e, tokens.Chat, body).Output; got != 30 {
		t.Errorf("after 512 short answers: %d, want 30", got)
	}
}

// For a model without a stated maximum, outputs above the assumption raise it.
func TestAssumedMaximumIsCorrected(t *testing.T) {
	e := newEstimator(t, tokens.Config{DefaultMaxOutput: 1000})
	const body = `{"model":"m","messages":[]}`
	e.Learn(estimate(t, e, tokens.Chat, body), tokens.Usage{Input: 1, Output: 4000})
	if got := estimate(t, e, tokens.Chat, body); got.MaxOutput != 4000 || got.Output != 4000 {
		t.Errorf("%+v, want 4000", got)
	}
}

// The stated chance holds for outputs of several distributions. Overruns are few, and much less
// than the maximum is reserved.
func TestOverrunIsAsStated(t *testing.T) {
	race.Without(t) // one call after another
	const rounds = 2000
	laws := map[string]func(*rand.Rand) float64{
		"uniform":     func(r *rand.Rand) float64 { return r.Float64() },
		"exponential": func(r *rand.Rand) float64 { return min(1, r.ExpFloat64()*0.05) },
		"lognormal":   func(r *rand.Rand) float64 { return min(1, math.Exp(r.NormFloat64()*1.2-4)) },
		"two kinds": func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 1
			}
			return 0.01 + 0.01*r.Float64()
		},
	}
	for _, chance := range []float64{0.01, 0.05, 0.2} {
		for name, law := range laws {
			e := newEstimator(t, tokens.Config{Overrun: chance})
			random := rand.New(rand.NewPCG(1, 2))
			over, reserved, used := 0, 0.0, 0.0
			for range rounds {
				most := 100 + random.IntN(8000)
				est := estimate(t, e, tokens.Messages, fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[]}`, most))
				output := int64(law(random) * float64(most))
				if output > est.Output {
					over++
				}
				reserved += float64(est.Output) / float64(most)
				used += float64(output) / float64(most)
				e.Learn(est, tokens.Usage{Input: 1, Output: output})
			}
			rate := float64(over) / rounds
			t.Logf("%-11s stated %.2f: overran %.4f, reserved %.2f of the maximum, used %.2f", name, chance, rate, reserved/rounds, used/rounds)
			// Answers share the last 512 ratios, so the rate varies a little more than a
			// binomial's.
			if slack := 4 * math.Sqrt(chance/rounds); rate > chance+slack {
				t.Errorf("%s: overran %v of %d, stated %v", name, rate, rounds, chance)
			}
			if rate < chance/3 && name != "two kinds" {
				t.Errorf("%s: overran %v of %d, stated %v: that wastes quota", name, rate, rounds, chance)
			}
		}
	}
}

// sample is texts of one kind, of 1.2 kB each, overlapping.
func sample(t testing.TB, patterns ...string) (texts []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1200 <= len(b); i += 200 {
				texts = append(texts, strings.ToValidUTF8(string(b[i:i+1200]), ""))
			}
		}
	}
	if len(texts) == 0 {
		t.Fatalf("no text in %v", patterns)
	}
	return texts
}

// chinese is testdata/zh.txt in n orders of its sentences.
func chinese(t testing.TB, n int) (texts []string) {
	b, err := os.ReadFile("testdata/zh.txt")
	if err != nil {
		t.Fatal(err)
	}
	sentences := strings.SplitAfter(strings.ReplaceAll(string(b), "\n", ""), "。")
	random := rand.New(rand.NewPCG(3, 4))
	for range n {
		random.Shuffle(len(sentences), func(i, k int) { sentences[i], sentences[k] = sentences[k], sentences[i] })
		texts = append(texts, strings.Join(sentences[:len(sentences)*2/5], ""))
	}
	return texts
}

// records is JSON as services send it.
func records(n int) (texts []string) {
	random := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("alpha north river market copper open pending shipped refund window delta amber seven harbor")
	word := func() string { return words[random.IntN(len(words))] }
	for range n {
		var list []map[string]any
		for range 7 {
			list = append(list, map[string]any{"id": random.IntN(1e6), "status": word(), "title": word() + " " + word() + " " + word(),
				"createdAt": fmt.Sprintf("2025-%02d-%02dT%02d:15:30Z", 1+random.IntN(12), 1+random.IntN(28), random.IntN(24)),
				"price":     math.Round(random.Float64()*1e5) / 100, "tags": []string{word(), word()}, "active": random.IntN(2) == 0, "parent": nil})
		}
		b, _ := json.Marshal(list)
		texts = append(texts, string(b))
	}
	return texts
}

// The guess for an unknown model, whose answers are counted with a known vocabulary. The test
// measures its error before any answer, and after half of the texts have been answered. Before,
// hardly any count is more than 5 % above the estimate. After, hardly any count is above it.
func TestGuessAgainstVocabulary(t *testing.T) {
	race.Without(t)
	kinds := []struct {
		name  string
		texts []string
	}{
		{"English", sample(t, "../*.md", "../docs/*.md", "../docs/decisions/*.md")},
		{"Go", sample(t, "../limit/*.go", "../*.go")},
		{"Chinese", chinese(t, 120)},
		{"JSON", records(120)},
	}
	const most = 600 // of fewer, a few unusual ones would be more than 5 %
	var all []string
	for i, kind := range kinds {
		rand.New(rand.NewPCG(7, 8)).Shuffle(len(kind.texts), func(i, k int) { kind.texts[i], kind.texts[k] = kind.texts[k], kind.texts[i] })
		kinds[i].texts = kind.texts[:min(most, len(kind.texts))]
		all = append(all, kinds[i].texts[:len(kinds[i].texts)/2]...)
	}
	rand.New(rand.NewPCG(9, 10)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	kinds = append(kinds, struct {
		name  string
		texts []string
	}{"all four", all})

	for _, vocabulary := range []string{"gpt-4", "gpt-4o"} {
		truth := newEstimator(t, tokens.Config{})
		counts := map[string]int64{}
		for _, kind := range kinds[:4] {
			for _, text := range kind.texts {
				est, err := truth.Estimate(tokens.Chat, chatBody(vocabulary, text, ""))
				if err != nil || !est.Counted {
					t.Fatalf("%+v, %v", est, err)
				}
				counts[text] = est.Input
			}
		}
		for _, kind := range kinds {
			e := newEstimator(t, tokens.Config{InputOverrun: 0.02}) // 49 answers
			// judge compares the estimates of texts with their counts. With learn, the answers
			// teach the estimator.
			judge := func(texts []string, learn bool) (mean, most float64, low int) {
				for _, text := range texts {
					est, err := e.Estimate(tokens.Chat, chatBody("brand-new", text, ""))
					if err != nil || est.Counted {
						t.Fatalf("%+v, %v", est, err)
					}
					r := float64(est.Input) / float64(counts[text])
					mean += r / float64(len(texts))
					most = max(most, r)
					if r < 0.95 {
						low++ // by more than 5 %
					}
					if learn {
						e.Learn(est, tokens.Usage{Input: counts[text], Output: 1})
					}
				}
				return mean, most, low
			}
			naive := 0.0
			for _, text := range kind.texts {
				naive += float64(len(text)) / 4 / float64(counts[text]) / float64(len(kind.texts))
			}
			half := len(kind.texts) / 2
			mean, most, low := judge(kind.texts, false)
			judge(kind.texts[:half], true)
			after, afterMost, afterLow := judge(kind.texts[half:], false)
			t.Logf("%-6s %-8s of the actual, bytes/4 are %.2f and reserved before any answer %.2f, at most %.2f, too low %d of %d; after %d answers %.2f, at most %.2f, too low %d of %d",
				vocabulary, kind.name, naive, mean, most, low, len(kind.texts), half, after, afterMost, afterLow, len(kind.texts)-half)
			if low > len(kind.texts)*5/100 {
				t.Errorf("%s, %s: %d of %d exceed the estimate before any answer by more than 5 %%", vocabulary, kind.name, low, len(kind.texts))
			}
			if half < 49 {
				continue
			}
			if n := len(kind.texts) - half; afterLow > 2+n*4/100 {
				t.Errorf("%s, %s: %d of %d exceed the calibrated estimate", vocabulary, kind.name, afterLow, n)
			}
			if after > 1.3 {
				t.Errorf("%s, %s: %.2f times the actual reserved after calibration", vocabulary, kind.name, after)
			}
		}
	}
}

// Texts in no language are guessed as well.
func TestGuessOfOddTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	noise := make([]byte, 600)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var numbers []string
	for range 80 {
		numbers = append(numbers, fmt.Sprint(random.Float64()))
	}
	truth, e := newEstimator(t, tokens.Config{}), newEstimator(t, tokens.Config{})
	for name, text := range map[string]string{
		"base64":      base64.StdEncoding.EncodeToString(noise),
		"hex":         hex.EncodeToString(noise),
		"numbers":     strings.Join(numbers, ", "),
		"emoji":       strings.Repeat("😀🚀🧪🇩🇪", 20),
		"blank lines": strings.Repeat("\n        ", 50),
		"capitals":    strings.Repeat("SELECT CUSTOMER_ID FROM ORDERS WHERE ", 20),
		"one letter":  strings.Repeat("x", 1000),
		"identifiers": strings.Repeat("utf8DecodeRuneInString_v2(HTTPServerURL, sha256sum) ", 20),
		"escapes":     strings.Repeat("\x00\x1b[31m", 50),
		"nothing":     "",
	} {
		guessed, _ := e.Estimate(tokens.Chat, chatBody("brand-new", text, ""))
		for _, vocabulary := range []string{"gpt-4", "gpt-4o"} {
			counted, err := truth.Estimate(tokens.Chat, chatBody(vocabulary, text, ""))
			if err != nil || guessed.Input < counted.Input*95/100 || guessed.Input > 5*counted.Input {
				t.Errorf("%s: %d estimated, %d counted for %s (%v)", name, guessed.Input, counted.Input, vocabulary, err)
			}
		}
	}
}

// A model with twice the tokens of any known model is learned. Before the promised number of
// answers the worst answer counts, then the quantile. Other kinds of request have lessons of their
// own.
func TestNewModelNeedsNoRelease(t *testing.T) {
	e := newEstimator(t, tokens.Config{InputOverrun: 0.05})
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	first, _ := e.Estimate(tokens.Chat, chatBody("brand-new", text, ""))
	if first.Calibrated || first.Counted {
		t.Fatalf("%+v before any answer", first)
	}
	actual := first.Input * 2
	for n := range 30 {
		est, _ := e.Estimate(tokens.Chat, chatBody("brand-new", text, ""))
		if n > 0 && (est.Input != actual) {
			t.Fatalf("after %d answers of %d tokens: %d", n, actual, est.Input)
		}
		if est.Calibrated != (n >= 19) {
			t.Fatalf("after %d answers: %+v", n, est)
		}
		e.Learn(est, tokens.Usage{Input: actual, Output: 5})
	}
	for name, body := range map[string]string{
		"another model": string(chatBody("newer", text, "")),
		"with tools":    string(chatBody("brand-new", text, `,"tools":[{"type":"function","function":{"name":"f"}}]`)),
		"hidden":        string(chatBody("brand-new", text, `,"web_search_options":{}`)),
	} {
		if est := estimate(t, e, tokens.Chat, body); est.Calibrated || est.Input >= actual {
			t.Errorf("%s: %+v has learned from requests of another kind", name, est)
		}
	}
	// A counted model whose answers confirm the count stays at the count.
	for range 120 {
		est, _ := e.Estimate(tokens.Chat, chatBody("gpt-4o", text, ""))
		e.Learn(est, tokens.Usage{Input: est.Input, Output: 5})
	}
	est, _ := e.Estimate(tokens.Chat, chatBody("gpt-4o", text, ""))
	small, _ := e.Estimate(tokens.Chat, chatBody("gpt-4o", strings.Repeat(text, 40), ""))
	if !est.Counted || !est.Calibrated || est.Input != 7+201 {
		t.Errorf("%+v, want 208 counted and calibrated", est)
	}
	// Its counted answers have also taught the guess, which serves larger bodies.
	if small.Counted || !small.Calibrated || math.Abs(float64(small.Input)/(40*201)-1) > 0.05 {
		t.Errorf("%+v, want about %d guessed", small, 40*201)
	}
	// Two cases teach nothing: an estimate of none, and an answer without its input.
	e = newEstimator(t, tokens.Config{InputOverrun: 0.5})
	first, _ = e.Estimate(tokens.Chat, chatBody("brand-new", text, ""))
	e.Learn(tokens.Estimate{}, tokens.Usage{Input: 1 << 40, Output: 1 << 40})
	e.Learn(first, tokens.Usage{Output: 5})
	if again, _ := e.Estimate(tokens.Chat, chatBody("brand-new", text, "")); again != first {
		t.Errorf("%+v, want %+v as before", again, first)
	}
}

// The estimate equals the lesson to the token: dividing and multiplying adds none.
func TestLearnedExactly(t *testing.T) {
	for most := int64(1); most < 400; most += 7 {
		for output := range most + 1 {
			e := newEstimator(t, tokens.Config{Overrun: 0.5})
			body := fmt.Sprintf(`{"model":"m","messages":[],"max_tokens":%d}`, most)
			e.Learn(estimate(t, e, tokens.Messages, body), tokens.Usage{Input: 1, Output: output})
			if got := estimate(t, e, tokens.Messages, body).Output; got != output {
				t.Fatalf("%d of %d answered, %d estimated", output, most, got)
			}
		}
	}
}

func TestModelsAreForgotten(t *testing.T) {
	race.Without(t) // one call after another
	const some = 20
	e := newEstimator(t, tokens.Config{Overrun: 0.5, Models: some})
	body := func(i int) string { return fmt.Sprintf(`{"model":"m%d","messages":[],"max_tokens":1000}`, i) }
	learn := func(i int) {
		e.Learn(estimate(t, e, tokens.Chat, body(i)), tokens.Usage{Input: 1, Output: 1})
	}
	for i := range some {
		learn(i)
	}
	estimate(t, e, tokens.Chat, body(0)) // used again: 1 is now the oldest
	learn(some)
	for i, known := range map[int]bool{0: true, 1: false, 2: true, some: true, 99: false} {
		if got := estimate(t, e, tokens.Chat, body(i)).Output; (got < 1000) != known {
			t.Errorf("model %d: %d of 1000, known %v", i, got, known)
		}
	}
	// Names that no server answers, and very long names, cost no memory.
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 200 {
		est := estimate(t, e, tokens.Chat, fmt.Sprintf(`{"model":"%d%s","messages":[]}`, i, strings.Repeat("x", 50000)))
		if i%2 == 0 {
			e.Learn(est, tokens.Usage{Input: 1, Output: 1})
		}
	}
	if after := heap(); after > before+some*10<<10 {
		t.Errorf("%d bytes held after 200 models, %d before", after, before)
	}
	runtime.KeepAlive(e)
}

func TestConcurrentUse(t *testing.T) {
	e := newEstimator(t, tokens.Config{Overrun: 0.1, Models: 2})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 50 {
				model := []string{"gpt-4o", "gpt-4", "claude-x"}[(i+n)%3]
				est, err := e.Estimate(tokens.Chat, chatBody(model, "A text that is counted or guessed.", `,"max_tokens":50`))
				if err != nil || est.Input < 15 || est.Input > 30 || est.Output > 50 {
					t.Errorf("%+v, %v", est, err)
					return
				}
				e.Learn(est, tokens.Usage{Input: 15, Output: int64(n)})
			}
		})
	}
	group.Wait()
}

// Chances hold for guessed and for counted texts. The estimator learns from odd answers too.
func FuzzLearn(f *testing.F) {
	f.Add([]byte("Hello"), int64(10), int64(20), int64(100), 0.1)
	f.Add([]byte(""), int64(0), int64(-5), int64(0), 0.5)
	f.Add([]byte("x"), int64(1)<<44, int64(1)<<44, int64(1)<<44, 0.01)
	f.Fuzz(func(t *testing.T, text []byte, input, output, most int64, chance float64) {
		if !(chance > 0.002 && chance < 1) {
			return // New refuses it
		}
		most = min(max(most, 0), 1<<44)
		e := newEstimator(t, tokens.Config{Overrun: chance, InputOverrun: chance})
		body := chatBody("m", string(text), fmt.Sprintf(`,"max_tokens":%d`, most))
		for n := range 600 {
			est, err := e.Estimate(tokens.Chat, body)
			if err != nil || est.Input < 0 || est.Output < 0 || est.Output > most || est.MaxOutput != most {
				t.Fatalf("%+v, %v", est, err)
			}
			if enough := float64(n) >= 1/chance; enough && output <= most && est.Output < output {
				t.Fatalf("after %d answers of %d tokens: %+v", n, output, est)
			} else if enough && n >= 20 && input > 0 && input <= 1<<44 && est.Input < input {
				// After 20 answers the vocabulary of the model has been found out.
				t.Fatalf("after %d prompts of %d tokens: %+v", n, input, est)
			}
			e.Learn(est, tokens.Usage{Input: input, Output: output})
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	english := strings.Join(sample(b, "../README.md", "../docs/*.md", "../ARCHITECTURE.md"), "")
	for _, kb := range []int{1, 10, 100} {
		for _, model := range []string{"gpt-4o", "brand-new"} {
			text := strings.Repeat(english, 1+kb<<10/len(english))[:kb<<10]
			body := chatBody(model, strings.ToValidUTF8(text, ""), "")
			name := map[string]string{"gpt-4o": "counted", "brand-new": "guessed"}[model]
			b.Run(fmt.Sprintf("%s/%dkB", name, kb), func(b *testing.B) {
				e := newEstimator(b, tokens.Config{CountMax: 1 << 30})
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.Estimate(tokens.Chat, body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func ExampleEstimator() {
	estimator, err := tokens.New(tokens.Config{Overrun: 0.05, Vocabulary: tiktoken.Vocabulary})
	if err != nil {
		panic(err)
	}
	body := []byte(`{"model":"gpt-4o","messages":[{"role":"user","content":"tiktoken is great!"}],"max_tokens":1000}`)
	est, err := estimator.Estimate(tokens.Chat, body)
	if err != nil {
		panic(err)
	}
	fmt.Println("reserve", est.Input, "in and", est.Output, "out")

	// Send it; read the answer.
	answer := []byte(`{"choices":[],"usage":{"prompt_tokens":13,"completion_tokens":40,"total_tokens":53}}`)
	for range 19 {
		usage, err := tokens.ParseUsage(tokens.Chat, answer)
		if err != nil {
			panic(err)
		}
		estimator.Learn(est, usage)
	}
	est, _ = estimator.Estimate(tokens.Chat, body)
	fmt.Println("reserve", est.Input, "in and", est.Output, "out")
	// Output:
	// reserve 13 in and 1000 out
	// reserve 13 in and 40 out
}

// prompts are those of testdata/prompts.txt: two of each kind. The guess was fitted to the first of
// the two.
func prompts(t *testing.T) (fitted, judged []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/prompts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range strings.Split("\n"+strings.TrimSpace(string(raw)), "\n=== ")[1:] {
		_, text, _ := strings.Cut(p, "\n")
		if i%2 == 0 {
			fitted = append(fitted, text)
		} else {
			judged = append(judged, text)
		}
	}
	if len(fitted) != 25 || len(judged) != 25 {
		t.Fatal(len(fitted), len(judged))
	}
	return fitted, judged
}

// The guess without a vocabulary, for an unknown model. The test measures the error of the first
// estimate, and the error after twenty answers of the model. It does so for the prompts outside of
// the fit, and for all. Half of them are within 25 % and 10 %. At most one of fifty has over 5 %
// more tokens than estimated, on average over the choice of answers.
func TestGuess(t *testing.T) {
	fitted, judged := prompts(t)
	truth := newEstimator(t, tokens.Config{})
	for _, vocabulary := range []string{"gpt-4", "gpt-4o"} {
		counts := map[string]int64{}
		for _, text := range append(append([]string(nil), judged...), fitted...) {
			counts[text] = estimate(t, truth, tokens.Chat, string(chatBody(vocabulary, text, ""))).Input
		}
		for _, set := range []struct {
			name  string
			texts []string
		}{{"not fitted to", judged}, {"all", append(append([]string(nil), judged...), fitted...)}} {
			for _, answers := range []int{0, 20} {
				p50s, p95s, unders := []float64{}, []float64{}, 0
				rounds := 1
				if answers > 0 {
					rounds = 8 // each learns from other answers
				}
				for round := range rounds {
					e := newEstimator(t, tokens.Config{})
					random := rand.New(rand.NewPCG(13, uint64(round)))
					for _, i := range random.Perm(len(fitted))[:answers] {
						e.Learn(estimate(t, e, tokens.Chat, string(chatBody("brand-new", fitted[i], ""))), tokens.Usage{Input: counts[fitted[i]], Output: 1})
					}
					var off []float64
					for _, text := range set.texts {
						r := float64(estimate(t, e, tokens.Chat, string(chatBody("brand-new", text, ""))).Input) / float64(counts[text])
						off = append(off, math.Abs(r-1))
						if r < 0.95 {
							unders++
						}
					}
					slices.Sort(off)
					p50s, p95s = append(p50s, off[len(off)/2]), append(p95s, off[len(off)*95/100])
				}
				slices.Sort(p50s)
				p50, under := p50s[len(p50s)-1], float64(unders)/float64(rounds)
				t.Logf("%-6s, %-13s, after %2d answers: p50 %.1f %% (the worst of %d rounds), p95 %.0f %%, under by more than 5 %%: %.2f of %d", vocabulary, set.name, answers, 100*p50, rounds, 100*slices.Max(p95s), under, len(set.texts))
				if most := map[int]float64{0: 0.25, 20: 0.10}[answers]; p50 > most || under > float64(len(set.texts))/50 {
					t.Errorf("%s, %s, after %d answers: p50 %.1f %%, %.2f under", vocabulary, set.name, answers, 100*p50, under)
				}
			}
		}
	}
}
