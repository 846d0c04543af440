package tokens

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
)

// Estimator estimates requests and learns from their answers. For an unknown model it first guesses
// by the bytes of the text. Answers then calibrate the guess.
//
// Safe for concurrent use. A model takes at most 64 kB of memory, and 16 to 24 kB if its requests
// are all alike.
type Estimator struct {
	config Config

	mu     sync.Mutex // guards the fields below
	models map[string]*model
	uses   uint64
}

// Config says how an Estimator estimates. The zero value is ready and never underestimates the
// output.
type Config struct {
	// Overrun is the chance, from 0 to 1, that a request outputs more than Estimate.Output. It
	// holds after 1/Overrun − 1 answers of the model: 19 for 0.05. It holds for a request that is
	// drawn like the 512 before it. Requests of different kinds that share a model share the
	// chance. If zero, there is no overrun: Output is the maximum that the body allows.
	Overrun float64
	// InputOverrun is the same for Estimate.Input. If zero, 0.01: 99 answers.
	InputOverrun float64
	// Vocabulary returns the vocabulary of a name, such as "o200k_base". The text of a known model
	// is counted by its vocabulary. If the result is nil, the count is guessed. Package
	// tokens/tiktoken has such a function. If Vocabulary is nil, all counts are guessed. The first
	// 99 requests of a model are then estimated by the look of their text: half of them within
	// 15 %, and within 10 % after 20 answers.
	Vocabulary func(name string) Vocabulary
	// CountMax is the most bytes of text in a body that are counted with a vocabulary, at about 0.2
	// µs per byte. The tokens of a larger body are guessed, which is 30 times as fast. If zero, 16
	// KiB. If negative, none is counted.
	CountMax int
	// Models is the most models to remember. Beyond it, the least recently used model is forgotten.
	// If zero, 100.
	Models int
	// MaxOutput is the most output of one choice, by model, for bodies that state no maximum. Other
	// models have their published maximum; unknown models have DefaultMaxOutput.
	MaxOutput map[string]int64
	// DefaultMaxOutput is the most output of one choice, for models that are not otherwise known.
	// If zero, 128,000: the largest common maximum. A body that states no maximum may use as much.
	DefaultMaxOutput int64
	// Alias gives the model behind another name, such as the name of a deployment on Azure. It
	// selects the published facts about the model. Lessons stay with the name itself. If nil, none.
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
	Model string
	// Input is the tokens of the prompt. Until there are enough answers, it is counted if the
	// vocabulary is known. Otherwise it is a little more than the guess. It is 1.5 times the guess
	// if there is more than text, or if the model is Anthropic's.
	Input int64
	// Output is what to reserve for the answer, over all choices.
	Output int64
	// MaxOutput is the most that the answer may have, over all choices; Output is at most this.
	MaxOutput int64
	API       API
	// Assumed reports that the body states no maximum. MaxOutput is then that of the model or of
	// the configuration.
	Assumed bool
	// Counted reports that Input was counted with the model's vocabulary.
	Counted bool
	// Calibrated reports that there were enough answers to state the chance of exceeding Input.
	Calibrated bool

	kind    kind
	counted float64 // how many tokens were counted, if Counted
	guessed float64
	guesses [2]float64 // from the two vocabularies
	first   float64    // the factor on the guesses before any answer
	base    float64    // outputs are learned as fractions of this number
}

// Tokens is Input + Output, for limits on the sum.
func (e Estimate) Tokens() int64 { return e.Input + e.Output }

// kind is the basis of an input estimate. Each kind is calibrated on its own.
type kind uint8

const (
	plain     kind = iota // text alone
	withMedia             // with tools, images, sound, files
	guessed               // with files whose tokens are guessed by their bytes
	hidden                // with parts that the body does not show
	inputKinds
)

// model has the lessons about one model, by kind and by whether the text was counted.
type model struct {
	used     uint64
	input    [inputKinds][2]quantile
	output   [2]quantile // fractions of the stated maximum, and of the assumed one
	likeness likeness    // learned from plain text
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
	c.InputOverrun = cmp.Or(c.InputOverrun, defaultInputOverrun)
	for _, f := range []struct {
		name  string
		value float64
	}{{"Overrun", c.Overrun}, {"InputOverrun", c.InputOverrun}} {
		if f.value > 0 && f.value < 1.0/(memory+1) {
			return nil, fmt.Errorf("tokens: %s %v cannot be stated from %d answers; the least is 1/%d", f.name, f.value,
				memory, memory+1)
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
	c.CountMax = cmp.Or(c.CountMax, defaultCountMax)
	c.Models = cmp.Or(c.Models, defaultModels)
	c.DefaultMaxOutput = cmp.Or(c.DefaultMaxOutput, defaultMaxOutput)
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

// Of estimates a body that came from Parse.
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

// priors are the factors on an estimate before there are answers. Counted text is exact. Counted
// tools were exact in the published examples. For guessed plain text, the factor is that of
// likeness.
var priors = [inputKinds][2]float64{plain: {0, 1}, withMedia: {1.5, 1.1}, guessed: {1.5, 1.1}, hidden: {1.5, 1.5}}

// guessMargin is the factor on the largest ratio so far for files that are guessed by their bytes,
// while there are too few answers to state a chance.
const guessMargin = 2

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
		} else if most := q.largest(); est.kind == guessed && most > 0 && guessMargin*most < factor {
			factor = guessMargin * most // a guess by bytes may be a hundred times too much
		} else {
			factor = max(factor, most)
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
	if est.Assumed { // answers may prove the assumption wrong
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

// Learn calibrates by the answer to a request. est is the estimate before the request was sent, u
// the usage in the answer. Pass only complete answers. The usage of an aborted answer is unknown.
// Long answers are aborted most, so their lower bounds would make Overrun untrue. Overrun is
// therefore a chance among answered requests.
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

// newModelLocked makes room by forgetting the least recently used model. Only answers lead here, so
// invented names that no server answers cost nothing.
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
	e.models[strings.Clone(name)] = m // a copy, so that no larger text stays in memory
	return m
}

// key bounds the memory that an invented name costs.
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
	case b.Guessed:
		return guessed
	case b.Attachments > 0 || b.schemas || b.calls > 0:
		return withMedia
	}
	return plain
}

// fixed returns the cost of a body beyond its text. OpenAI's cookbook states 3 tokens per message,
// 1 for its role, 1 for a name, and 3 that begin the answer. Anthropic publishes no such figures;
// its messages cost about the same. The cost of a tool call's frame is a guess.
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
		case m.pages > 0:
			last = m.pages * b.page(look)
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

// count counts the tokens of the body's texts.
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

// ceil rounds up. It ignores the error of 2^−52 from dividing and multiplying floats.
func ceil(x float64) int64 { return int64(min(math.Ceil(x*(1-0x1p-50)), maxTokens)) }
