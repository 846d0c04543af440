package provider

import (
	_ "embed"
	"strconv"
	"strings"
	"time"
)

// ModelInfo is what a provider publishes about a model. A number that is 0 is unknown.
type ModelInfo struct {
	// Name is the name in requests, without the date of a snapshot.
	Name string
	// Input, Output and Cached are prices in USD per million tokens: of input, of output, and of
	// input that was read from the provider's cache.
	Input, Output, Cached float64
	// Context is the most tokens of input and output together, and MaxOutput the most tokens of
	// output.
	Context, MaxOutput int64
	// Note has further facts, such as a price that changes with the length of the prompt, or on a
	// day.
	Note string
}

// BatchAPI is a provider's own API for many requests, later and for less.
type BatchAPI struct {
	// Discount is the part of the price that it saves, at best.
	Discount float64
	// Within is the longest that a batch takes, according to the provider's aim.
	Within time.Duration
	// Requests and Bytes are the most in one batch; 0: unknown.
	Requests, Bytes int64
	Docs            string
}

// LookupModel returns what a provider publishes about a model. The name may be any that requests
// use: with the date of a snapshot, with a router's prefix (openai/gpt-4o), or of a tuned model
// (ft:gpt-4o-2024-08-06:org::id).
func LookupModel(provider, model string) (ModelInfo, bool) {
	var models []ModelInfo
	if d := rowOf(provider); d != nil {
		models = d.Models
	}
	model = model[strings.LastIndexByte(model, '/')+1:]
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok {
		model, _, _ = strings.Cut(tuned, ":")
	}
	for range 2 {
		for _, m := range models {
			if m.Name == model {
				return m, true
			}
		}
		model = sharedName(dated, model)
	}
	return ModelInfo{}, false
}

// PriceOf returns the published price of a model. A tuned model does not have the price of its
// base.
func PriceOf(provider, model string) (ModelInfo, bool) {
	if strings.HasPrefix(model, "ft:") {
		return ModelInfo{}, false
	}
	m, known := LookupModel(provider, model)
	return m, known && (m.Input > 0 || m.Output > 0)
}

// USD returns the price of so many tokens. Input that is read from a cache, or written to one,
// counts as other input does.
func (m ModelInfo) USD(input, output int64) float64 {
	return (m.Input*float64(input) + m.Output*float64(output)) / 1e6
}

// modelsAsOf is when the prices were looked up, on the pages of the providers or of others that
// read those daily.
const modelsAsOf = "2026-11"

//go:embed models.csv
var modelsCSV string

// modelsOf returns the models of models.csv of a provider.
func modelsOf(provider string) (all []ModelInfo) {
	for line := range strings.Lines(modelsCSV) {
		row, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), provider+",")
		if !ours {
			continue
		}
		cells := strings.SplitN(row, ",", 7)
		number := func(i int) float64 {
			n, err := strconv.ParseFloat(cells[i], 64)
			if err != nil {
				panic("provider: models.csv: " + line) // a test makes all rows
			}
			return n
		}
		all = append(all, ModelInfo{cells[0], number(1), number(2), number(3), int64(number(4)), int64(number(5)), cells[6]})
	}
	return all
}
