// Package tokens says what a request to a language model will cost in tokens, before it is sent, and reads what it did
// cost, from the answer. It knows the bodies of OpenAI's APIs, Anthropic's messages, Gemini, Bedrock, Cohere and Ollama: see API.
//
//	est, err := estimator.Estimate(tokens.Chat, body)   // reserve est.Input and est.Output, then send
//	w := tokens.NewWatcher(tokens.Chat, stream, resp.Body)
//	...                                                 // pass the answer on, reading from w
//	usage, err := w.Usage()                             // settle with it
//	estimator.Learn(est, usage)                         // the next estimate is better
//
// It is not an accountant: it knows no prices, and an estimate is a number to reserve, not a bill. Which of the counts a
// provider's limit is about is the caller's to say: Usage.Uncached for Anthropic's input tokens, for example.
package tokens

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
)

// Estimator estimates requests and learns from their answers. A model that it has never heard of is first guessed by
// the bytes of its text, then calibrated by its answers.
//
// Safe for concurrent use. What is learned takes at most 64 kB per model, and 16 to 24 kB if its requests are all alike.
type Estimator struct {
	config Config

	mu     sync.Mutex // guards what follows
	models map[string]*model
	uses   uint64
}

// Config says how an Estimator estimates. The zero value is ready and never underestimates the output.
type Config struct {
	// Overrun is the chance, from 0 to 1, that a request outputs more than Estimate.Output, once enough of its model's
	// answers have been seen (1/Overrun − 1 of them: 19 for 0.05). It is the chance for one request drawn like the 512
	// before it; requests of different kinds that share a model share it. If zero, never: Output is what the body allows.
	Overrun float64
	// InputOverrun is the same for Estimate.Input. If zero, 0.01: 99 answers.
	InputOverrun float64
	// Vocabulary returns the vocabulary of a name, such as "o200k_base", with which the text of a known model is counted; nil:
	// there is none, and it is guessed. Package tokens/tiktoken has it. If nil, all are guessed: the first 99 requests
	// of a model are then estimated as its text looks, half of them within 15 %, and within 10 % after 20 answers.
	Vocabulary func(name string) Vocabulary
	// CountMax is how many bytes of text are counted with a vocabulary, at about 0.2 µs each; a larger body is guessed,
	// which is 30 times as fast. If zero, 16 KiB; negative: none.
	CountMax int
	// Models is how many models are remembered; the one not used for longest is forgotten. If zero, 100.
	Models int
	// MaxOutput is the most output of one choice, by model, for bodies that state none. If nil or without the model,
	// what is published for it, and for an unknown model DefaultMaxOutput.
	MaxOutput map[string]int64
	// DefaultMaxOutput is for models not known otherwise. If zero, 128,000, the largest that is common: a body that
	// states no maximum may use as much.
	DefaultMaxOutput int64
	// Alias gives the model behind a name that is not a model's, such as a deployment's on Azure, for what is known of
	// models beforehand. What is learned stays with the name. If nil, none.
	Alias map[string]string
}

// Vocabulary counts the tokens in a text. It must be safe for concurrent use.
type Vocabulary interface{ Count(text string) int64 }

func (c *Config) vocabulary(name string) Vocabulary {
	if c.Vocabulary == nil {
		return nil
	}
	return c.Vocabulary(name)
}

// Estimate is what one request is expected to cost.
type Estimate struct {
	API   API
	Model string
	// Input is the tokens of the prompt. Before enough answers have been seen it is counted where the vocabulary is known; where it is
	// not it is a little more than the guess, or 1.5 times that where there is more than text, or of a model of Anthropic's.
	Input int64
	// Output is what to reserve for the answer, over all choices.
	Output int64
	// MaxOutput is the most that the answer may have, over all choices; Output is at most this.
	MaxOutput int64
	// Assumed says that the body states no maximum and MaxOutput is the model's, or the configured.
	Assumed bool
	// Counted says that Input was counted with the model's vocabulary.
	Counted bool
	// Calibrated says that enough answers were seen to state the chance that Input is exceeded.
	Calibrated bool

	kind    kind
	counted float64 // what was counted, if Counted
	guessed float64
	guesses [2]float64 // by two vocabularies
	first   float64    // by how much they are raised before any answer
	base    float64    // what outputs are learned as fractions of
}

// Tokens is Input + Output, for limits that add them up.
func (e Estimate) Tokens() int64 { return e.Input + e.Output }

// kind is what a body's input estimate is good for. Each kind is calibrated on its own.
type kind uint8

const (
	plain     kind = iota // text alone
	withMedia             // with tools, images, sound, files
	hidden                // with what the body does not show
	inputKinds
)

// model is what was learned of one model, by kind and by whether it was counted.
type model struct {
	used     uint64
	input    [inputKinds][2]quantile
	output   [2]quantile // of the stated maximum; of the assumed
	likeness likeness    // of plain text
}

const (
	defaultInputOverrun = 0.01
	defaultCountMax     = 16 << 10
	defaultModels       = 100
	defaultMaxOutput    = 128000
	maxModelName        = 128
)

// New checks the configuration and returns an Estimator that has learned nothing.
func New(c Config) (*Estimator, error) {
	if !(c.Overrun >= 0 && c.Overrun < 1) {
		return nil, fmt.Errorf("tokens: Overrun %v is not from 0 to 1", c.Overrun)
	}
	if !(c.InputOverrun >= 0 && c.InputOverrun < 1) {
		return nil, fmt.Errorf("tokens: InputOverrun %v is not from 0 to 1", c.InputOverrun)
	}
	if c.InputOverrun == 0 {
		c.InputOverrun = defaultInputOverrun
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"Overrun", c.Overrun}, {"InputOverrun", c.InputOverrun}} {
		if f.value > 0 && f.value < 1.0/(memory+1) {
			return nil, fmt.Errorf("tokens: %s %v cannot be stated from %d answers; the least is 1/%d", f.name, f.value, memory, memory+1)
		}
	}
	if c.Models < 0 {
		return nil, fmt.Errorf("tokens: Models %d is negative", c.Models)
	}
	if c.DefaultMaxOutput < 0 || c.DefaultMaxOutput > maxTokens {
		return nil, fmt.Errorf("tokens: DefaultMaxOutput %d is not from 0 to %d", c.DefaultMaxOutput, int64(maxTokens))
	}
	for name, n := range c.MaxOutput {
		if n < 1 || n > maxTokens {
			return nil, fmt.Errorf("tokens: MaxOutput of %q: %d is not from 1 to %d", name, n, int64(maxTokens))
		}
	}
	if c.CountMax == 0 {
		c.CountMax = defaultCountMax
	}
	if c.Models == 0 {
		c.Models = defaultModels
	}
	if c.DefaultMaxOutput == 0 {
		c.DefaultMaxOutput = defaultMaxOutput
	}
	c.MaxOutput = maps.Clone(c.MaxOutput)
	c.Alias = maps.Clone(c.Alias)
	return &Estimator{config: c, models: map[string]*model{}}, nil
}

// Estimate parses a request's body and estimates it. The error is that of Parse.
func (e *Estimator) Estimate(api API, body []byte) (Estimate, error) {
	b, err := Parse(api, body)
	if err != nil {
		return Estimate{}, err
	}
	return e.Of(b), nil
}

// Of estimates a body that Parse has read.
func (e *Estimator) Of(b Body) Estimate {
	known := e.family(b.Model)
	est := Estimate{API: b.API, Model: b.Model, kind: b.kind()}
	fixed := b.fixed(known)
	for v, n := range b.shape.tokens() {
		est.guesses[v] = fixed + n
	}
	est.first = firstFactor(&b)
	if known != nil && b.TextBytes <= int64(e.config.CountMax) && b.API != Messages {
		if v := e.config.vocabulary(known.encoding.name); v != nil {
			est.Counted = true
			est.counted = fixed + float64(b.count(v))
		}
	}
	most := b.MaxOutput
	switch {
	case b.API.inputOnly():
		most = 0
	case !b.Bounded:
		est.Assumed = true
		most = e.maxOutput(b.Model, known)
	}
	est.base = min(float64(most)*float64(b.Choices), maxTokens)
	est.MaxOutput = int64(est.base)

	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.models[key(b.Model)]
	if m != nil {
		e.touch(m)
	}
	est.Input, est.Calibrated = e.inputLocked(m, known, &est)
	e.outputLocked(m, &est)
	return est
}

// priors are by how much an estimate is raised before answers tell: counted text is exact, tools were found to be so in
// the published examples. What plain text that is guessed is raised by, its likeness says.
var priors = [inputKinds][2]float64{plain: {0, 1}, withMedia: {1.5, 1.1}, hidden: {1.5, 1.5}}

func (e *Estimator) inputLocked(m *model, known *family, est *Estimate) (n int64, calibrated bool) {
	mix := mixes - 1
	switch {
	case known != nil && known.encoding == o200k:
		mix = 0
	case known == nil && m != nil:
		mix = m.likeness.mix()
	}
	est.guessed = mixed(est.guesses, mix)
	raw, by := est.guessed, 0
	if est.Counted {
		raw, by = est.counted, 1
	}
	factor := priors[est.kind][by]
	if factor == 0 {
		factor = est.first
	}
	if m != nil {
		q := &m.input[est.kind][by]
		if learned, ok := q.above(e.config.InputOverrun); ok {
			factor, calibrated = learned, true
		} else if est.kind == plain && by == 0 {
			factor = m.likeness.factor(mix, est.first)
		} else {
			factor = max(factor, q.largest())
		}
	}
	return ceil(raw * factor), calibrated
}

func (e *Estimator) outputLocked(m *model, est *Estimate) {
	est.Output = est.MaxOutput
	if m == nil {
		return
	}
	q := &m.output[index(est.Assumed)]
	if est.Assumed { // then answers may prove the assumption wrong
		est.MaxOutput = max(est.MaxOutput, ceil(est.base*q.largest()))
		est.Output = est.MaxOutput
	}
	if e.config.Overrun == 0 {
		return
	}
	if learned, ok := q.above(e.config.Overrun); ok {
		est.Output = min(ceil(est.base*learned), est.MaxOutput)
	}
}

// Learn calibrates by the answer to a request: the estimate it was sent with and the usage that was reported. Only
// complete answers teach: an aborted one used an unknown amount, and since it is the long ones that are aborted, learning
// their lower bounds would make Overrun a lie. (So the chance that Overrun states is that of requests that are answered.)
func (e *Estimator) Learn(est Estimate, u Usage) {
	if est.API == NoAPI {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	name := key(est.Model)
	m := e.models[name]
	if m == nil {
		m = e.newModelLocked(name)
	}
	e.touch(m)
	if u.Input > 0 {
		m.input[est.kind][0].learn(u.Input, est.guessed)
		if est.kind == plain {
			m.likeness.learn(est.guesses, u.Input)
		}
		if est.Counted {
			m.input[est.kind][1].learn(u.Input, est.counted)
		}
	}
	m.output[index(est.Assumed)].learn(u.Output, est.base)
}

func (q *quantile) learn(actual int64, estimated float64) {
	if estimated > 0 && actual >= 0 {
		q.observe(float64(actual) / estimated)
	}
}

func (e *Estimator) touch(m *model) {
	e.uses++
	m.used = e.uses
}

// newModelLocked makes room by forgetting the model not used for longest. Only answers get here, so a flood of invented
// names that no server answers costs nothing.
func (e *Estimator) newModelLocked(name string) *model {
	if len(e.models) >= e.config.Models {
		oldest := ""
		first := uint64(math.MaxUint64)
		for name, m := range e.models {
			if m.used < first {
				oldest, first = name, m.used
			}
		}
		delete(e.models, oldest)
	}
	m := &model{}
	e.models[strings.Clone(name)] = m // not a piece of a name as long as a book
	return m
}

// key bounds what an invented name costs.
func key(name string) string { return name[:min(len(name), maxModelName)] }

func (e *Estimator) family(model string) *family {
	if name, ok := e.config.Alias[model]; ok {
		model = name
	}
	return familyOf(model)
}

func (e *Estimator) maxOutput(model string, known *family) int64 {
	if n, ok := e.config.MaxOutput[model]; ok {
		return n
	}
	if n, ok := e.config.MaxOutput[e.config.Alias[model]]; ok {
		return n
	}
	if known != nil && known.maxOutput > 0 {
		return known.maxOutput
	}
	return e.config.DefaultMaxOutput
}

func (b *Body) kind() kind {
	switch {
	case b.Hidden:
		return hidden
	case b.Attachments > 0 || b.schemas || b.calls > 0:
		return withMedia
	}
	return plain
}

// fixed is what a body costs beside its text: OpenAI's cookbook has 3 tokens per message, 1 for its role, 1 for a name
// and 3 that begin the answer. Anthropic publishes no such figures; its messages cost about the same. The frame of a
// tool call is a guess.
func (b *Body) fixed(known *family) float64 {
	n := b.ids + 4*b.messages + b.names + 8*b.calls + b.toolMark
	if b.messages > 0 {
		n += 3
	}
	perTool := cl100k.perTool
	look := defaultImage
	if known != nil {
		perTool, look = known.encoding.perTool, known.image
	}
	n += perTool * b.tools
	var last int64
	for _, m := range b.media {
		switch {
		case m.tokens > 0:
			last = m.tokens
		case b.API == Messages || strings.Contains(b.Model, "claude"):
			last = claudeImage(b.Model, m.width, m.height)
		case b.API == Gemini || b.API == GeminiEmbed:
			last = geminiImage(b.Model, m.width, m.height)
		default:
			last = look.tokens(m.width, m.height, m.low)
		}
		n += last
	}
	n += last * int64(b.Attachments-len(b.media))
	return float64(n)
}

// count counts the body's texts.
func (b *Body) count(v Vocabulary) int64 {
	w := walker{body: &Body{API: b.API, raw: b.raw}, count: v}
	w.request()
	return w.tokens
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// ceil rounds up, but not for what dividing and multiplying floats again adds to a whole number, 2^−52 of it.
func ceil(x float64) int64 { return int64(min(math.Ceil(x*(1-0x1p-50)), maxTokens)) }
