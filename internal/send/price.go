package send

import (
	"bytes"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// The price of writing input to a cache, as a multiple of the price of input. The cache keeps it
// for five minutes, or for an hour. These are the prices of Anthropic's models, on any host.
const (
	writing     = 1.25
	writingHour = 2
)

// charges reports whether writing to a cache costs extra. The providers that charge for it have
// these APIs.
func charges(api tokens.API) bool {
	return api == tokens.Messages || api == tokens.Converse || api == tokens.Invoke
}

// InputTimes returns the highest multiple of the price of input for the input of a request, by its
// body's use of a cache.
func InputTimes(api tokens.API, body []byte) float64 {
	switch {
	case !charges(api) || !bytes.Contains(body, []byte("cache_control")) && !bytes.Contains(body, []byte("cachePoint")):
		return 1
	case bytes.Contains(body, []byte(`"1h"`)):
		return writingHour
	}
	return writing
}

// PriceAtMost returns the highest price of so many tokens, in USD. times is the result of
// InputTimes; input read from a cache never costs more.
func PriceAtMost(p provider.ModelInfo, times float64, input, output int64) float64 {
	return p.USD(input, output) + (times-1)*p.USD(input, 0)
}

// Price returns the price of an answer, in USD. If the price of input from a cache is unknown, it
// is that of other input.
func Price(p provider.ModelInfo, api tokens.API, u tokens.Usage) float64 {
	cached := min(u.CachedInput, u.Input)
	usd := p.USD(u.Input-cached, u.Output)
	if p.Cached > 0 {
		usd += p.Cached * float64(cached) / 1e6
	} else {
		usd += p.USD(cached, 0)
	}
	if charges(api) {
		hour := min(u.CacheWriteHour, u.CacheWrite)
		usd += (writing-1)*p.USD(u.CacheWrite-hour, 0) + (writingHour-1)*p.USD(hour, 0)
	}
	return usd
}
