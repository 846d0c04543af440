package provider_test

import (
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// Only what surely reads is sent again whole.
func TestReads(t *testing.T) {
	dynamo := func(operation string) string { return "X-Amz-Target: DynamoDB_20120810." + operation }
	for _, c := range []struct {
		field, body string
		want        bool
	}{
		{"", `{"query":"{ a }"}`, true},
		{"", `{"query":"query Q($a: Int) { a(b: \"mutation {\") { c } } # mutation\nfragment F on T { mutation }"}`, true},
		{"", `{"query":"fragment F on T { a } query { ...F }","variables":{"method":"POST"}}`, true},
		{"", `{"query":"\"\"\"mutation { a }\"\"\" query { a }"}`, true},
		{"", `[{"query":"{ a }"},{"query":"{ b }"}]`, true},
		{"Content-Type: application/graphql", `query { a }`, true},
		{"", `{"requests":[{"method":"GET"},{"method":"GET"}]}`, true},
		{"", `{"compositeRequest":[{"method":"GET"}]}`, true},
		{"", `{"batchRequests":[{"method":"GET"}]}`, true},
		{"", `[{"method":"GET","relative_url":"me"}]`, true},
		{dynamo("BatchGetItem"), `{}`, true},
		{dynamo("TransactGetItems"), `{}`, true},

		{"", `{"query":"mutation { a }"}`, false},
		{"", `{"query":"query A { a } mutation B { b }"}`, false},
		{"", `{"query":"{ a } subscription { b }"}`, false},
		{"", `{"query":"query { a"}`, false},
		{"", `{"query":"\"mutation { a }"}`, false},
		{"", `{"query":"\"\"\"query { a }"}`, false},
		{"", `{"query":"mutation{a}","variables":{}}`, false},
		{"", `[{"query":"{ a }"},{"query":"mutation { b }"}]`, false},
		{"", `{"requests":[{"method":"GET"},{"method":"POST"}]}`, false},
		{"", `{"requests":[]}`, false},
		{"", `{"requests":[{"url":"/a"}]}`, false},
		{"", `[{"jsonrpc":"2.0","method":"GET"}]`, false},
		{"", `{"query":{"match_all":{}}}`, false},
		{"", `{"id":"persisted"}`, false},
		{"", `[]`, false},
		{"", ``, false},
		{dynamo("BatchWriteItem"), `{"query":"{ a }"}`, false},
		{"Content-Type: application/graphql", `mutation { a }`, false},
	} {
		h := respond(200, "", c.field).Header
		if c.field == "" {
			h = http.Header{"Content-Type": {"application/json"}}
		}
		if got := provider.Reads(h, []byte(c.body)); got != c.want {
			t.Errorf("%s %s: %v", c.field, c.body, got)
		}
	}
}

// No document, however odd, that has a mutation outside of strings counts as one that reads.
func FuzzReads(f *testing.F) {
	for _, document := range []string{"{ a }", "query { a }", "fragment F on T { a }", `query { a(b: "x") }`, "# x\n{ a }", `"""d""" { a }`, `"\`, "}{"} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		h := http.Header{"Content-Type": {"application/graphql"}}
		if provider.Reads(h, []byte(document)) && provider.Reads(h, []byte(document+"\nmutation { a }")) {
			t.Errorf("%q, and a mutation after it, only read", document)
		}
	})
}
