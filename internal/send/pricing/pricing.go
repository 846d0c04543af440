// Package pricing says what a request to a language model costs in money: the most beforehand, and how much once it is answered. run and
// transport reckon by it.
package pricing

import (
	"bytes"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// How many times the price of input it costs to write that to a cache, which keeps it for five minutes or for an hour: of Anthropic's models,
// wherever they run.
const (
	writing     = 1.25
	writingHour = 2
)

// charges tells whether writing to a cache is charged for. Those who charge for it have these APIs.
func charges(api tokens.API) bool {
	return api == tokens.Messages || api == tokens.Converse || api == tokens.Invoke
}

// Times returns how many times the price of input the input of a request costs at most, by what its body asks of a cache.
func Times(api tokens.API, body []byte) float64 {
	switch {
	case !charges(api) || !bytes.Contains(body, []byte("cache_control")) && !bytes.Contains(body, []byte("cachePoint")):
		return 1
	case bytes.Contains(body, []byte(`"1h"`)):
		return writingHour
	}
	return writing
}

// Most is what so many tokens cost at most, in USD. times is what Times has said; what was read from a cache never costs more.
func Most(p provider.ModelInfo, times float64, input, output int64) float64 {
	return p.USD(input, output) + (times-1)*p.USD(input, 0)
}

// Spent is what an answer has cost, in USD. Where no price is known of input from a cache, it costs as much as any other.
func Spent(p provider.ModelInfo, api tokens.API, u tokens.Usage) float64 {
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
