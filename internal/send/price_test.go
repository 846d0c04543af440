package send

import (
	"math"
	"testing"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// A million tokens of input cost 3 USD, of output 15, and read from a cache 0.30.
var price = provider.ModelInfo{Input: 3, Output: 15, Cached: 0.3}

func TestSpent(t *testing.T) {
	const million = 1_000_000
	unpublished := price
	unpublished.Cached = 0
	for _, c := range []struct {
		name  string
		price provider.ModelInfo
		api   tokens.API
		used  tokens.Usage
		want  float64
	}{
		{"no cache", price, tokens.Chat, tokens.Usage{Input: million, Output: million}, 18},
		{"half of it read", price, tokens.Chat, tokens.Usage{Input: million, CachedInput: million / 2, Output: million}, 16.65},
		{"all of it read", price, tokens.Responses, tokens.Usage{Input: million, CachedInput: million}, 0.3},
		{"read, and nobody knows for how much", unpublished, tokens.Chat, tokens.Usage{Input: million, CachedInput: million / 2}, 3},
		{"written, where that is free", price, tokens.Responses, tokens.Usage{Input: million, CacheWrite: million}, 3},
		{"written for five minutes", price, tokens.Messages, tokens.Usage{Input: million, CacheWrite: million}, 3.75},
		{"written for an hour", price, tokens.Messages, tokens.Usage{Input: million, CacheWrite: million, CacheWriteHour: million}, 6},
		{"all of that at Bedrock", price, tokens.Converse, tokens.Usage{Input: 4 * million, CachedInput: million, CacheWrite: 2 * million, CacheWriteHour: million, Output: million}, 0.3 + 3 + 3.75 + 6 + 15},
		{"what cannot be", price, tokens.Messages, tokens.Usage{Input: 10, CachedInput: million, CacheWriteHour: million}, 0.3e-6 * 10},
	} {
		if got := Price(c.price, c.api, c.used); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v USD, want %v", c.name, got, c.want)
		}
	}
}

// Whatever a cache does, an answer costs no more than was reserved for it.
func TestMost(t *testing.T) {
	for _, c := range []struct {
		api  tokens.API
		body string
		want float64
	}{
		{tokens.Messages, `{"messages":[]}`, 18},
		{tokens.Messages, `{"system":[{"cache_control":{"type":"ephemeral"}}]}`, 18.75},
		{tokens.Messages, `{"system":[{"cache_control":{"type":"ephemeral","ttl": "1h"}}]}`, 21},
		{tokens.Converse, `{"system":[{"cachePoint":{"type":"default"}}]}`, 18.75},
		{tokens.Chat, `{"messages":[{"cache_control":{}}]}`, 18},
	} {
		if got := PriceAtMost(price, InputTimes(c.api, []byte(c.body)), 1_000_000, 1_000_000); got != c.want {
			t.Errorf("%v %s: %v USD, want %v", c.api, c.body, got, c.want)
		}
	}
}
