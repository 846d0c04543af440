package meter

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/tokens"
)

// bounds are the members of a body that bound the output, by API. The last one is for bodies without any.
var bounds = map[tokens.API][]string{
	tokens.Chat:        {"max_completion_tokens", "max_tokens"},
	tokens.Completions: {"max_tokens"},
	tokens.Responses:   {"max_output_tokens"},
	tokens.Messages:    {"max_tokens"},
	tokens.CohereChat:  {"max_tokens"},
}

// Bound returns the body of a request with the configured bound of its output, if there is one, in place of
// its own. A body that is no object of JSON stays as it is.
func (m *Meter) Bound(api tokens.API, body []byte) ([]byte, error) {
	if m.c.MaxTokens == 0 {
		return body, nil
	}
	names := bounds[api]
	if names == nil {
		return nil, fmt.Errorf("--max-tokens: %v has no bound of its output that is known here, expected requests to "+
			"/chat/completions, /responses or /messages", api)
	}
	if len(body) == 0 || body[0] != '{' || body[len(body)-1] != '}' {
		return body, nil
	}
	n := strconv.AppendInt(nil, m.c.MaxTokens, 10)
	var out []byte
	at, empty := 0, true
	err := input.ValueAt("", 1, 1, body).Object(func(name string, _, v input.Value) error {
		if empty = false; slices.Contains(names, name) {
			begins := v.Column - 1 // columns count bytes
			out = append(append(out, body[at:begins]...), n...)
			at = begins + len(v.Raw)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = append(out, body[at:]...)
	if at > 0 {
		return out, nil
	}
	name := names[len(names)-1]
	if api == tokens.Chat && m.own && m.dialect.Name() == "openai" {
		name = names[0] // newer models refuse the other
	}
	member := `,"` + name + `":` + string(n) + "}"
	if empty {
		member = member[1:]
	}
	return append(out[:len(out)-1], member...), nil
}
