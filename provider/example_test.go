package provider_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// The statements of an answer of a known host.
func ExampleForHost() {
	now := time.Date(2024, 12, 1, 12, 0, 0, 0, time.UTC)
	answer := provider.Response{Status: http.StatusOK, Header: http.Header{}}
	answer.Header.Set("X-Ratelimit-Limit-Requests", "500")
	answer.Header.Set("X-Ratelimit-Remaining-Requests", "499")
	answer.Header.Set("X-Ratelimit-Reset-Requests", "120ms")

	dialect, ok := provider.ForHost("api.openai.com")
	if !ok {
		dialect = provider.Detect(answer)
	}
	said := dialect.Read(now, answer)
	for _, l := range said.Limits {
		p, _ := said.Policy(l.Policy)
		fmt.Printf("%d of %d %s per %v, full again in %v\n", l.Remaining.N, p.Limit, p.Unit, p.Window, l.Reset.Sub(now))
	}
	// Output: 499 of 500 requests per 1m0s, full again in 120ms
}

// A refusal of an unknown server, and when to come back.
func ExampleDetect() {
	now := time.Date(2024, 12, 1, 12, 0, 0, 0, time.UTC)
	answer := provider.Response{Status: http.StatusTooManyRequests, Header: http.Header{}}
	answer.Header.Set("RateLimit", `"minute";r=0;t=20, "day";r=812;t=40000`)

	said := provider.Detect(answer).Read(now, answer)
	at, ok := said.ComeBack(now)
	fmt.Println(said.Refusal, ok, at.Sub(now))
	// Output: rate limited true 20s
}

func ExampleLookupPreset() {
	p, _ := provider.LookupPreset("heroku")
	for _, v := range p.Policies {
		fmt.Println(v.Limit, v.Unit, "per", v.Window, v.Rule)
	}
	// Output: 4500 requests per 1h0m0s bucket
}
