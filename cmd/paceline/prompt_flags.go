package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// promptFlags make a prompt of each row: the short form of --url and --body for language models.
type promptFlags struct {
	column, model, system string
	schema                string // file
	maxTokens             int64

	api tokens.API // of the prompts; NoAPI: the short form is not used
}

func (f *promptFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.column, "prompt-column", "",
		"column with the prompt of each row, for a language model: in place of --body. The address is --url, or that "+
			"of --preset")
	p.StringVar(&f.model, "model", "", "with --prompt-column: the model, or {row.COLUMN}")
	p.StringVar(&f.system, "system", "",
		"with --prompt-column: text before each prompt, or @FILE; nothing in it is filled in")
	p.StringVar(&f.schema, "json-schema", "",
		"with --prompt-column: FILE with the JSON schema of each answer, which the API then keeps to")
	p.Var((*countValue)(&f.maxTokens), "max-tokens",
		"most tokens of each answer, set in each request in place of its own bound. Another number does not make "+
			"another request of it: with --retry-dead=length, those that were cut are sent again")
}

// answers are the expressions that select the text of an answer.
var answers = map[tokens.API]string{
	tokens.Chat:      ".body.choices[0].message.content",
	tokens.Responses: `([.body.output[]?.content[]?.text? // empty] | join(""))`,
	tokens.Messages:  `([.body.content[]?.text? // empty] | join(""))`,
}

// prompts sets --url and --body as the short form says. A table as --out gets the ids and the texts of the
// answers, unless --select names other fields.
func (f *runFlags) prompts(cmd *cobra.Command) error {
	p := &f.prompt
	if cmd.Flag("max-tokens").Changed && (p.maxTokens < 1 || p.maxTokens > limit.MaxCost) {
		return fmt.Errorf("--max-tokens %d, expected 1 to %d", p.maxTokens, int64(limit.MaxCost))
	}
	if !cmd.Flag("prompt-column").Changed {
		for _, name := range []string{"model", "system", "json-schema"} {
			if cmd.Flag(name).Changed {
				return fmt.Errorf("--%s is for prompts, a row each: expected --prompt-column with the column that has them",
					name)
			}
		}
		return nil
	}
	if given := givenOf(cmd, "body method curl format next"); len(given) > 0 {
		return fmt.Errorf("--prompt-column with %s, expected one of them", given[0])
	}
	switch {
	case p.column == "" || strings.ContainsAny(p.column, "{}"):
		return fmt.Errorf("--prompt-column %q, expected the name of a column, or its number", p.column)
	case p.model == "":
		return errors.New("--prompt-column without --model, expected such as --model gpt-4o, or --model '{row.model}'")
	}
	if err := p.place(f); err != nil {
		return err
	}
	if p.api == tokens.Messages && p.maxTokens == 0 {
		return errors.New("--prompt-column without --max-tokens, expected such as --max-tokens 500: Anthropic's API needs " +
			"a bound of each answer")
	}
	system, err := textOf("--system", p.system, int64(f.maxBody))
	if err != nil {
		return err
	}
	schema, err := p.readSchema(int64(f.maxBody))
	if err != nil {
		return err
	}
	f.given.body, f.given.hasBody = p.body(system, schema), true
	tables := []string{".csv", ".tsv"}
	isTable := slices.Contains(tables, strings.ToLower(filepath.Ext(f.out))) || slices.Contains(tables, "."+f.results.format)
	if f.results.selection == "" && isTable {
		f.results.selection = "id=.id, answer=" + answers[p.api]
	}
	return nil
}

// place finds out where the prompts go, and by which API.
func (p *promptFlags) place(f *runFlags) error {
	if _, is := provider.LookupPreset(f.llm.preset); !is && f.llm.preset != "" {
		return unknownPreset(f.llm.preset)
	}
	who, known := provider.Publisher(f.llm.preset)
	if f.given.url == "" {
		base, path := f.llm.baseURL, "/v1/chat/completions"
		of := format.OpenAI
		if known && who.Name == "anthropic" {
			of, path = format.Anthropic, "/v1/messages"
		}
		if base == "" && (!known || who.Name != "openai" && who.Name != "anthropic") {
			return fmt.Errorf("--prompt-column without --url: expected the address of the API, such as --url "+
				"%s/v1/chat/completions, or a --preset of openai or anthropic", format.OpenAI.BaseURL())
		}
		if base == "" {
			base = of.BaseURL()
		}
		f.given.url = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") + path
	}
	path, _, _ := strings.Cut(f.given.url, "?")
	switch p.api = tokens.APIOf(path); p.api {
	case tokens.Chat, tokens.Responses, tokens.Messages:
		return nil
	}
	return errors.New("--prompt-column with this --url: expected one that ends in /chat/completions, /responses or " +
		"/messages; for other APIs, --body says how a request looks")
}

// readSchema reads the JSON schema of the answers. nil: there is none.
func (p *promptFlags) readSchema(most int64) (json.RawMessage, error) {
	if p.schema == "" {
		return nil, nil
	}
	text, err := textOf("--json-schema", "@"+strings.TrimPrefix(p.schema, "@"), most)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, fmt.Errorf("--json-schema %s: %w, expected an object with a JSON schema", p.schema, err)
	}
	if fields["schema"] != nil || fields["json_schema"] != nil {
		return nil, fmt.Errorf(`--json-schema %s: expected the schema alone, such as {"type":"object",…}, not a `+
			"response_format around it", p.schema)
	}
	if strings.Contains(text, "{row.") {
		return nil, fmt.Errorf("--json-schema %s: nothing in it is filled in, expected no {row.COLUMN}", p.schema)
	}
	return json.RawMessage(text), nil
}

// answerForm is the form of answers as OpenAI's APIs take it.
type answerForm struct {
	Type   string          `json:"type,omitempty"`
	Name   string          `json:"name,omitempty"`
	Strict bool            `json:"strict,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Nested *answerForm     `json:"json_schema,omitempty"`
}

// form is the member of a request that has the schema of the answer.
func (p *promptFlags) form(schema json.RawMessage) (name string, value any) {
	own := answerForm{Type: "json_schema", Schema: schema}
	if p.api == tokens.Messages {
		return "output_config", map[string]any{"format": own}
	}
	own.Name, own.Strict = "answer", true
	if p.api == tokens.Responses {
		return "text", map[string]any{"format": own}
	}
	nested := own
	nested.Type = ""
	return "response_format", answerForm{Type: "json_schema", Nested: &nested}
}

// body is the template of the body of each request.
func (p *promptFlags) body(system string, schema json.RawMessage) string {
	body := p.plain(system)
	if schema == nil {
		return body
	}
	name, value := p.form(schema)
	return fmt.Sprintf("%s,%q:%s}", strings.TrimSuffix(body, "}"), name, compactJSON(value))
}

// plain is the template of the body, for an answer of any form.
func (p *promptFlags) plain(system string) string {
	// What looks like {row.COLUMN} in the text before each prompt is text.
	before := json.RawMessage(strings.ReplaceAll(compactJSON(system), "{", `\u007b`))
	if system == "" {
		before = nil
	}
	type message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	prompt := "{row." + p.column + "}"
	own := []message{{"user", prompt}}
	switch {
	case p.api == tokens.Responses:
		return compactJSON(struct {
			Model        string          `json:"model"`
			Instructions json.RawMessage `json:"instructions,omitempty"`
			Input        string          `json:"input"`
		}{p.model, before, prompt})
	case p.api == tokens.Messages:
		return compactJSON(struct {
			Model    string          `json:"model"`
			System   json.RawMessage `json:"system,omitempty"`
			Messages []message       `json:"messages"`
		}{p.model, before, own})
	case before != nil:
		own = append([]message{{"system", before}}, own...)
	}
	return compactJSON(struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{p.model, own})
}

// compactJSON writes a value with < and > as they are.
func compactJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it cannot fail: v has only texts
	return strings.TrimSuffix(b.String(), "\n")
}

// note adds to a plan which models have no known vocabulary.
func (p *promptFlags) note(plan *run.Plan, c *run.Config) {
	if p.api == tokens.NoAPI || c.Meter == nil {
		return
	}
	var unknown []string
	for _, m := range plan.Models {
		if m.Model != tally.OtherModels && !c.Meter.CountsExactly(m.Model) {
			unknown = append(unknown, m.Model)
		}
	}
	if len(unknown) > 0 {
		plan.Notes = append(plan.Notes, fmt.Sprintf("no vocabulary is known of %s: its tokens in are estimated by the "+
			"text, and answers correct the estimate", text.Some(unknown, 5)))
	}
}

// format is the form of batches that the API of the prompts takes.
func (p *promptFlags) format() format.Provider {
	if p.api == tokens.Messages {
		return format.Anthropic
	}
	return format.OpenAI
}

// config completes a run of prompts: the field with the key, and the version that Anthropic's API asks for.
func (p *promptFlags) config(f *runFlags, c *run.Config) error {
	if p.api == tokens.NoAPI {
		return nil
	}
	of := p.format()
	if len(c.Keys) == 0 && len(c.Header) == 0 && strings.HasPrefix(f.given.url, of.BaseURL()) && !f.llm.dryRun &&
		!f.llm.stores && f.via.file == "" {
		return cli.Exit(cli.ExitConfig,
			fmt.Errorf("%s asks for a key: name its environment variable with --key-env", of.BaseURL()))
	}
	if of == format.Anthropic && !hasField(c.Header, "anthropic-version") {
		version, err := format.ParseHeaders([]string{"anthropic-version: 2023-06-01"})
		if err != nil {
			return err
		}
		c.Header = append(c.Header, version...)
	}
	return withKey(c, of)
}

func hasField(all []format.Template, name string) bool {
	for _, t := range all {
		if strings.EqualFold(t.Name(), name) {
			return true
		}
	}
	return false
}
