package run

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// The reason of a failed attempt is a word or two, from the first fact that explains it. An attempt
// that did not fail has none.
func TestWhatAttemptsFailOf(t *testing.T) {
	broken := errors.New("unexpected EOF")
	for want, cases := range map[string][]job{
		"503":             {{res: sending.Response{Status: 503}}},
		"199":             {{res: sending.Response{Status: 199}}},
		"300":             {{res: sending.Response{Status: 300}, unlike: true}},
		"200, a refusal":  {{res: sending.Response{Status: 200}}},
		"299, a refusal":  {{res: sending.Response{Status: 299}}},
		"200, no success": {{res: sending.Response{Status: 200}, unlike: true}},
		"200, broken off": {{res: sending.Response{Status: 200, Err: broken}}, {res: sending.Response{Status: 200, Err: broken}, unlike: true}},
		"no answer":       {{res: sending.Response{Err: broken}}},
	} {
		for _, j := range cases {
			for _, result := range []limit.Result{limit.Failed, limit.Limited, limit.Unknown, limit.Accepted} {
				for _, returned := range []bool{false, true} {
					expect := want
					if result == limit.Accepted || returned && result != limit.Limited { // it was redirected, or not sent
						expect = ""
					}
					if got := failedOf(&j, &pool.Answer{Outcome: limit.Outcome{Result: result}, Returned: returned}); got != expect {
						t.Errorf("%d, %v, unlike %v, %v, returned %v: %q, want %q", j.res.Status, j.res.Err, j.unlike, result, returned, got, expect)
					}
				}
			}
		}
	}
}

// An expression reads a body as JSON, with numbers as they are written, if the whole body is JSON.
// Otherwise it reads text that can be shown.
func TestBodiesForExpressions(t *testing.T) {
	for body, want := range map[string]any{
		"":                     nil,
		"null":                 nil,
		` {"a":1.50} ` + "\n":  map[string]any{"a": json.Number("1.50")},
		"12345678901234567890": json.Number("12345678901234567890"),
		`"text"`:               "text",
		`{"a":1} {"b":2}`:      `{"a":1} {"b":2}`,
		`{"a":1}]`:             `{"a":1}]`,
		"{":                    "{",
		"plain":                "plain",
		"cut \xff here":        "cut \ufffd here",
	} {
		if got := format.Parsed([]byte(body)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", body, got, want)
		}
	}
}

// Cost and files of the provider's own batches: half of the price, and as many files as requests
// and bytes need. At OpenAI each model has its own.
func TestOwnBatches(t *testing.T) {
	models := func(all ...PlanModel) *Plan {
		most, expected := 10., 5.
		p := &Plan{Models: all, USDMax: &most, USDExpected: &expected}
		for _, m := range all {
			p.Requests += m.Requests
		}
		return p
	}
	at := func(p format.Provider, base string) *format.LLM {
		l, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	openAI, anthropic := at(format.OpenAI, ""), at(format.Anthropic, "")
	for _, tc := range []struct {
		name  string
		l     *format.LLM
		plan  *Plan
		files int
	}{
		{"one", openAI, models(PlanModel{Requests: 1, bytes: 1}), 1},
		{"as many requests as fit", openAI, models(PlanModel{Requests: 50_000, bytes: 1}), 1},
		{"one more", openAI, models(PlanModel{Requests: 50_001, bytes: 1}), 2},
		{"as many bytes as fit", openAI, models(PlanModel{Requests: 1, bytes: 200 << 20}), 1},
		{"a byte more", openAI, models(PlanModel{Requests: 1, bytes: 200<<20 + 1}), 2},
		{"more bytes than requests take", openAI, models(PlanModel{Requests: 60_000, bytes: 500 << 20}), 3},
		{"two models", openAI, models(PlanModel{Requests: 10, bytes: 10}, PlanModel{Requests: 60_000, bytes: 10}), 3},
		{"as many as fit at Anthropic", anthropic, models(PlanModel{Requests: 60_000, bytes: 128 << 20}, PlanModel{Requests: 40_000, bytes: 128 << 20}), 1},
		{"one more at Anthropic", anthropic, models(PlanModel{Requests: 60_000, bytes: 10}, PlanModel{Requests: 40_001, bytes: 10}), 2},
		{"a byte more at Anthropic", anthropic, models(PlanModel{Requests: 6, bytes: 256 << 20}, PlanModel{Requests: 4, bytes: 1}), 2},
		{"a bound of requests alone", at(format.OpenAI, "https://api.mistral.ai"), models(PlanModel{Requests: 1_000_001, bytes: 1 << 40}), 2},
		{"a bound of bytes alone", at(format.OpenAI, "https://api.fireworks.ai"), models(PlanModel{Requests: 1e9, bytes: 1<<30 + 1}), 2},
		{"bounds that nobody states", at(format.OpenAI, "https://aiplatform.googleapis.com"), models(PlanModel{Requests: 1e6, bytes: 1 << 40}), 0},
	} {
		b := ownBatch(tc.l.Meter, tc.plan)
		if b == nil {
			t.Errorf("%s: none", tc.name)
		} else if b.Files != tc.files || b.Discount != 0.5 || b.WithinHours != 24 || *b.USDMax != 5 || *b.USDExpected != 2.5 || b.Provider == "" || b.Docs == "" {
			t.Errorf("%s: %+v for %v and %v USD, want %d files", tc.name, b, *b.USDMax, *b.USDExpected, tc.files)
		}
	}
	noPrice := models(PlanModel{Requests: 1})
	noPrice.USDMax, noPrice.USDExpected = nil, nil
	if b := ownBatch(openAI.Meter, noPrice); b == nil || b.USDMax != nil || b.USDExpected != nil {
		t.Errorf("without a price: %+v", b)
	}
	for name, l := range map[string]*format.LLM{"of another host": at(format.OpenAI, "http://127.0.0.1"), "of one without batches": at(format.OpenAI, "https://api.deepseek.com")} {
		if b := ownBatch(l.Meter, models(PlanModel{Requests: 1})); b != nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if b := ownBatch(openAI.Meter, models()); b != nil {
		t.Errorf("of nothing: %+v", b)
	}
}
