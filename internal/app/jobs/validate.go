package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// mostMistakes is how many mistakes a batch lists.
const mostMistakes = 100

// mistakes reads the whole input of a batch as the engine will. It returns how many requests there
// are, and what is wrong with them.
func mistakes(l *format.LLM, endpoint string, in io.Reader, wrongs func(*format.Request) string) (total int, all []Mistake, err error) {
	r := format.NewReader(l, "input", in, format.InputLimits{})
	r.Pass = format.Checking // fast: the costs are the engine's affair
	seen := map[format.Hash]int{}
	wrong := func(line int, code, message string, args ...any) {
		all = append(all, Mistake{code, fmt.Sprintf(message, args...), line})
	}
	for len(all) < mostMistakes {
		q, err := r.Next()
		if err == io.EOF {
			break
		}
		if e, is := errors.AsType[*format.InputError](err); is {
			code := "invalid_request"
			if !json.Valid(r.Raw()) {
				code = "invalid_json_line"
			}
			wrong(e.Line, code, "%s", e.Reason)
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if total++; total > mostLines && l.Form() == format.OpenAI {
			wrong(q.Line, "too_many_requests", "the batch has more than %d requests", mostLines)
			break
		}
		id := format.HashOf(q.ID)
		switch first, twice := seen[id]; {
		case twice:
			wrong(q.Line, "duplicate_custom_id", "custom_id %q is already on line %d, expected each once", q.ID, first)
		case endpoint != "" && q.URL.Path != endpoint:
			wrong(q.Line, "mismatched_url", "url %q is not the endpoint of the batch, %s", q.URL.Path, endpoint)
		}
		if why := wrongs(q); why != "" {
			wrong(q.Line, "model_not_allowed", "%s", why)
		}
		seen[id] = q.Line
	}
	if total == 0 && len(all) == 0 {
		wrong(0, "empty_file", "the input has no requests")
	}
	return total, all, nil
}
