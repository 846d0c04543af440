package provider_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// Which limits does OpenAI publish, what do its models cost, and in which fields are its limits?
func ExampleLookupProvider() {
	openai, ok := provider.LookupProvider("openai")
	if !ok {
		fmt.Println("the table has no such row")
		return
	}
	fmt.Println(openai.Title, openai.Hosts[0], openai.Tokens)
	for _, p := range openai.Published {
		who, _ := provider.Publisher(p.Name)
		fmt.Println(p.Name, len(p.Policies) > 0, who.Name)
	}
	model, _ := provider.LookupModel("openai", "gpt-4o-mini")
	price, _ := provider.PriceOf("openai", "gpt-4o-mini")
	fmt.Println(model.Context, price.Input > 0, price.USD(1_000_000, 0) == price.Input)
	// A dated model counts in the limits of its name.
	fmt.Println(provider.SharedModel("openai", "gpt-4o-mini-2024-07-18"))
	fmt.Println(provider.Fields("openai")[1:])
	var batch *provider.BatchAPI = openai.Batch
	fmt.Println(batch.Discount, batch.Within)
	// Output:
	// OpenAI api.openai.com reserved
	// openai:tier1 true openai
	// openai:tier2 true openai
	// 128000 true true
	// gpt-4o-mini
	// [X-RateLimit-Limit-* X-RateLimit-Remaining-* X-RateLimit-Reset-*]
	// 0.5 24h0m0s
}

// All providers and presets of the table, and the kinds of refusals.
func ExampleProviders() {
	silent, refusers := 0, 0
	for _, p := range provider.Providers() {
		if p.Silent {
			silent++
		}
		refusers += len(p.Refusers)
	}
	fmt.Println(silent > 0, refusers > 0, len(provider.Names()) > 30, len(provider.Presets()) > 30)
	fmt.Println(provider.Refusals()[0], len(provider.Signs("generic")) > 0)
	limited, banned, names := provider.Whom("binance")
	fmt.Println(limited, banned, len(names))
	// Output:
	// true true true true
	// rate limited true
	// ip ip 0
}

// The scopes of limits, from the narrowest to the widest, and how texts name them.
func ExampleScopes() {
	for _, s := range provider.Scopes() {
		fmt.Println(s.Scope, s.Key, s.Model, s.Resource, s.Route, s.One)
	}
	var row provider.ScopeInfo = provider.Model.Info()
	fmt.Println(row.Whose, row.Per)
	// Output:
	// route true false false true a key and route
	// model true true false false a key and model
	// resource true false true false a key and resource
	// key true false false false a key
	// ip false false false false an address
	// all false false false false all
	// the model per model
}

// A person asks what an answer says: Explain also names the fields that were not read.
func ExampleExplain() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	body := `{"error": {"code": "rate_limit_exceeded", "message": "Slow down, please."}}`
	answer := provider.Response{Status: http.StatusOK, Header: http.Header{
		"Content-Type":          {"application/json"},
		"X-Ratelimit-Limit":     {"100"},
		"X-Ratelimit-Remaining": {"0"},
		"X-Ratelimit-Colour":    {"red"},
	}, Body: []byte(body)}
	fmt.Println(provider.Speaks(answer.Header), provider.MayRefuse(answer.Body), provider.Message(answer.Body))

	dialect := provider.Detect(answer)
	o := provider.Explain(dialect, now, answer)
	fmt.Println(o.Dialect, o.Unread, provider.InBody(dialect))
	for _, p := range o.Policies {
		fmt.Println(p.Limit, p.Unit, p.Source == provider.Stated)
	}
	refusal := provider.Refuses(answer)
	fmt.Println(refusal, provider.Unusual(answer.Status) != "")
	fmt.Println(provider.IsStream("text/event-stream"), provider.IsStream("application/x-ndjson"))

	// A request that only reads may be sent again.
	kind := http.Header{"Content-Type": {"application/json"}}
	fmt.Println(provider.Reads(kind, []byte(`{"query": "{ viewer { login } }"}`)))
	// Output:
	// true true Slow down, please.
	// generic [X-Ratelimit-Colour: red] false
	// 100 requests true
	// true true
	// true true
	// true
}
