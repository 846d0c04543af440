package run

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// question is a prompt, whatever the form of its file.
type question struct{ id, model, text string }

// forms are the forms of a file of the same prompts: a batch, lines of JSON, a table, an array of rows.
var forms = []string{"batch", "lines", "table", "rows"}

// promptForms writes prompts in a form. bodyOf is the body of their requests, and path where they go.
type promptForms struct {
	provider format.Provider
	path     string
	body     string // with %s for the model and the text, both as JSON
	all      []question
}

func (f *promptForms) bodyOf(q question) string {
	model, _ := json.Marshal(q.model)
	text, _ := json.Marshal(q.text)
	return fmt.Sprintf(f.body, model, text)
}

// in returns the file in a form, and the format that reads it; nil: a batch.
func (f *promptForms) in(t *testing.T, form string) (text string, reads format.Format) {
	t.Helper()
	var b strings.Builder
	items := func(read input.Config) format.Format {
		items, err := format.NewItems(format.ItemsConfig{Read: read, URL: "http://server" + f.path, HasBody: true, ID: "{row.id}",
			Body: fmt.Sprintf(f.body, `"{row.model}"`, `"{row.text}"`)})
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	switch form {
	case "batch":
		for _, q := range f.all {
			if f.provider == format.Anthropic {
				fmt.Fprintf(&b, `{"custom_id":%q,"params":%s}`+"\n", q.id, f.bodyOf(q))
			} else {
				fmt.Fprintf(&b, `{"custom_id":%q,"method":"POST","url":%q,"body":%s}`+"\n", q.id, f.path, f.bodyOf(q))
			}
		}
		return b.String(), nil
	case "lines":
		for _, q := range f.all {
			fmt.Fprintf(&b, `{"id":%q,"method":"POST","url":%q,"body":%s}`+"\n", q.id, "http://server"+f.path, f.bodyOf(q))
		}
		return b.String(), format.Plain{}
	case "table":
		w := csv.NewWriter(&b)
		_ = w.Write([]string{"id", "text", "model"})
		for _, q := range f.all {
			_ = w.Write([]string{q.id, q.text, q.model})
		}
		w.Flush()
		return b.String(), items(input.Config{Form: input.CSV, Comma: ','})
	default:
		var rows []map[string]string
		for _, q := range f.all {
			rows = append(rows, map[string]string{"id": q.id, "model": q.model, "text": q.text})
		}
		text, _ := json.Marshal(rows)
		return string(text), items(input.Config{Form: input.JSON})
	}
}

// ranForm is what a run of one form planned, sent and spent.
type ranForm struct {
	Plan   Plan
	Totals tally.Totals
	Took   time.Duration
	Asked  []llm.Account
}

func written(v reflect.Value) []byte {
	b, _ := json.Marshal(v.Interface())
	return b
}

// comparable leaves out what a form has of its own: its name, and the size and the lines of its file.
func (r *ranForm) comparable() {
	p := &r.Plan
	p.Format, p.Lines, p.Bytes, p.ReadingSeconds, p.First, p.Largest.Line = "", 0, 0, 0, nil, 0
	for i := range r.Plan.Models {
		r.Plan.Models[i].bytes = 0
	}
	for i := range r.Asked {
		r.Asked[i].Limits = nil
	}
	slices.SortFunc(r.Asked, func(a, b llm.Account) int { return strings.Compare(a.Model, b.Model) })
}

// The same prompts as a batch, as lines of JSON and as rows have equal plans, costs and sends, however the
// server counts.
func TestPromptsOfAllFormsAreEqual(t *testing.T) {
	race.Without(t) // TestLLMWithinTheLimits has these goroutines
	t.Parallel()
	need.NotShort(t, "TestLLMWithinTheLimits has one form")
	chat := promptForms{path: "/v1/chat/completions", body: `{"model":%s,"max_tokens":60,"messages":[{"role":"user","content":%s}]}`}
	open := promptForms{path: "/v1/responses", body: `{"model":%s,"input":%s}`}
	claude := promptForms{provider: format.Anthropic, path: "/v1/messages", body: `{"model":%s,"max_tokens":60,"messages":[{"role":"user","content":%s}]}`}
	for i := range 160 {
		text := fmt.Sprintf("Why, %q,\nis %d \u00fc%s?", "Ann", i, strings.Repeat(" so", i%40))
		id, both := fmt.Sprint("q", i), i%3/2
		chat.all = append(chat.all, question{id, [...]string{"gpt-4o", "gpt-4.1"}[both], text})
		claude.all = append(claude.all, question{id, [...]string{"claude-sonnet-5", "claude-haiku-5-5"}[both], text})
	}
	open.all = chat.all[:40]
	minute := func(n int64, unit limit.Unit) format.Rate {
		l := minutely(n, unit, true)
		l.EachModel = true
		return l
	}
	own := minutely(50, limit.Requests, true)
	own.Model = "gpt-4.1"
	for _, c := range []struct {
		name   string
		forms  promptForms
		llm    format.LLMConfig
		server llm.Config
		limits []format.Rate
		each   bool // each model has the limits for itself
	}{
		{"as OpenAI counts", chat, format.LLMConfig{LimitsOf: "openai"}, llm.Config{}, []format.Rate{minute(100, limit.Requests), minute(9000, limit.Tokens)}, true},
		{"sums", chat, format.LLMConfig{}, llm.Config{}, []format.Rate{minute(100, limit.Requests), minute(20_000, limit.Tokens)}, false},
		{"a model with its own limits", chat, format.LLMConfig{Count: tokens.Used}, llm.Config{Count: "corrected"}, []format.Rate{minute(9000, limit.Tokens), own}, true},
		{"without a bound", open, format.LLMConfig{Count: tokens.Used, MaxOutput: 200}, llm.Config{Count: "corrected"}, []format.Rate{minute(9000, limit.Tokens)}, false},
		{"as Anthropic counts", claude, format.LLMConfig{Provider: format.Anthropic}, llm.Config{Provider: llm.Anthropic}, []format.Rate{minute(100, limit.Requests), minute(9000, limit.Input), minute(5000, limit.Output)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.forms.provider = c.llm.Provider
			var first ranForm
			for n, form := range forms {
				all, reads := c.forms.in(t, form)
				got := c.forms.send(t, all, reads, c.llm, c.server, c.limits)
				if n := &got.Totals; n.Done != len(c.forms.all) || n.Rejected != 0 || n.USD == 0 || got.Plan.USDMax == nil || got.Plan.EachModel != c.each {
					t.Errorf("%s: %d done, %d rejected, %v USD, each model: %v", form, n.Done, n.Rejected, n.USD, got.Plan.EachModel)
				}
				got.comparable()
				if n == 0 {
					first = got
				}
				was, is := reflect.ValueOf(first), reflect.ValueOf(got)
				for i := range is.NumField() {
					if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
						t.Errorf("%s differs from a batch:\n%.2000s\n%.2000s", form, written(is.Field(i)), written(was.Field(i)))
					}
				}
			}
		})
	}
}

// send runs one form of the prompts against a server in virtual time.
func (f *promptForms) send(t *testing.T, text string, reads format.Format, of format.LLMConfig, server llm.Config, limits []format.Rate) (got ranForm) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		server.Limits, server.First = llm.Limits{Requests: 1e6, Tokens: 1e9, Input: 1e9, Output: 1e9}, latency.Constant(300*time.Millisecond)
		server.Truth = func(llm.Ask) llm.Usage { return llm.Usage{Input: 40, Output: 25} }
		v := &virtually{t: t, server: server, llm: of, lines: reads != nil,
			config: Config{Out: out, Limits: limits, Format: reads, Budget: 1000, Prices: Prices{Input: -1, Output: -1}, Attempts: 1}}
		if reads != nil {
			var err error
			if v.config.Meter, err = meter.New(meter.Config{Host: "server", API: tokens.APIOf(f.path), Count: of.Count, LimitsOf: of.LimitsOf,
				MaxOutput: of.MaxOutput, Limits: limits}); err != nil {
				t.Fatal(err)
			}
		}
		v.run(text)
		if v.err != nil || v.report.Wrong != 0 {
			t.Errorf("%v; %+v", v.err, v.report)
		}
		got = ranForm{v.plan, v.totals, v.took, v.report.Accounts}
	})
	return got
}
