package run

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// plan notes the plan of a run for an input.
func (s *story) plan(what, input string) {
	s.Helper()
	s.note("plan: %s", what)
	c := s.config
	c.Notice = func(text string) { s.note("  notice: %s", text) }
	r, err := New(c)
	if err == nil {
		err = r.Peek()
	}
	if err == nil {
		err = r.Check("in", strings.NewReader(input))
	}
	if err != nil {
		s.note("  refused: %v", err)
		return
	}
	p := r.Plan(time.Now())
	p.ReadingSeconds, p.Finish = 0, p.Finish.UTC()
	text, _ := json.MarshalIndent(p, "  ", " ")
	s.note("  %s", unescaped(text))
}

// Plans of prompts before and after some answers, with limits of tokens, of each model and of all.
// Their prices are given, published or not known. Also plans of requests with a cost above one.
func TestStoryOfPlans(t *testing.T) {
	const every = time.Minute
	of := func(n int64, unit limit.Unit, model string) format.Rate {
		return format.Rate{N: n, Per: every, Unit: unit, Model: model, Text: fmt.Sprintf("%d/m %v %s", n, unit, model)}
	}
	each := func(l format.Rate) format.Rate { l.EachModel = true; return l }
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		models := map[format.Provider][]string{format.OpenAI: {"gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06"}, format.Anthropic: {"claude-3-haiku-20240307", "claude-3-opus-20240229", "claude-3-haiku"}}[p]
		var lines []string
		for i := range 12 {
			body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, models[i*i%3], 100+i, strings.Repeat("rain falls ", i+1))
			if p == format.OpenAI {
				lines = append(lines, fmt.Sprintf(`{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":%s}`, i, body))
			} else {
				lines = append(lines, fmt.Sprintf(`{"custom_id":"p%d","params":%s}`, i, body))
			}
		}
		input := strings.Join(lines, "\n")
		tell(t, "plans-"+p.String(), func(s *story) {
			s.page = func(w http.ResponseWriter, q *http.Request) {
				fmt.Fprint(w, `{"usage":{"prompt_tokens":20,"completion_tokens":30,"input_tokens":20,"output_tokens":30}}`)
			}
			s.keys("A", "B")
			s.header(p.KeyHeader())
			s.config.Prices = Prices{Input: -1, Output: -1} // those that are published
			asBatch := func(base string) {
				c := format.LLMConfig{Provider: p, BaseURL: base, Limits: s.config.Limits, Count: tokens.Used}
				var err error
				if s.config.Format, err = format.NewLLM(c); err != nil {
					s.Fatal(err)
				}
			}
			asBatch("")
			s.plan("by published prices, without a limit", input)
			s.config.Limits = []format.Rate{of(2, limit.Requests, ""), of(1000, limit.Tokens, "")}
			asBatch("http://api/v1")
			s.plan("at somebody's, in limits of all", input)
			s.config.Prices = Prices{Input: 2, Output: 8, Cached: 1}
			s.run("the first five", strings.Join(lines[:5], "\n"))
			s.plan("at somebody's, after the first five", input)
			s.config.Until = time.Now().Add(time.Hour)
			s.config.Limits = []format.Rate{each(of(2, limit.Requests, "")), each(of(1000, limit.Tokens, "")), each(of(400, limit.Output, ""))}
			asBatch("")
			s.plan("in limits of each model", input)
			s.config.Limits = []format.Rate{of(3, limit.Requests, ""), of(1, limit.Requests, models[1])}
			asBatch("")
			s.plan("one model has a limit of its own", input)
			s.config.Out = filepath.Join(s.folder, "none.jsonl")
			s.plan("none is left", "")
		})
	}
	tell(t, "plans-jsonl", func(s *story) {
		s.config.Limits = []format.Rate{{N: 10, Per: time.Second, Text: "10/s"}, {N: 12, Per: time.Minute, Bucket: true, Burst: 6, Text: "12/m"}}
		s.plan("costs", `{"id":"a","url":"http://api/","cost":5}`+"\n"+`{"id":"b","url":"http://api/"}`+"\n"+`{"id":"c","url":"http://api/","cost":2}`)
		s.plan("one that never fits", `{"id":"a","url":"http://api/","cost":7}`)
	})
}

// The progress of a run at intervals, in limits that bind. It has one key, and then two, one of
// which is banned on the way.
func TestStoryOfProgress(t *testing.T) {
	for _, keys := range []string{"A", "A B"} {
		tell(t, "progress-"+fmt.Sprint(len(strings.Fields(keys))), func(s *story) {
			s.keys(strings.Fields(keys)...)
			s.header("Authorization: Bearer {key}")
			s.config.Limits = []format.Rate{{N: 3, Per: time.Second, Text: "3/s"}, {N: 20, Per: 10 * time.Second, Bucket: true, Burst: 8, Text: "20/10s"}}
			s.config.Arrivals = limit.Arrivals{OneWayMax: time.Millisecond}
			asked := 0
			s.page = func(w http.ResponseWriter, q *http.Request) {
				if asked++; asked > 12 && q.Header.Get("Authorization") == "Bearer s3cret-Of-B-9a7Kq" {
					w.WriteHeader(http.StatusUnauthorized)
				} else if asked%9 == 0 {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}
			var input strings.Builder
			for i := range 30 {
				fmt.Fprintf(&input, `{"id":"r%d","url":"http://api/%d","cost":%d}`+"\n", i, i, 1+i%2)
			}
			s.watched = func(p *Progress) {
				p.Latency = nil
				s.note("  after %.1f s: %d of %d to go, %d wait, %d sent, %d done, %.4g cost/s of %.4g (%.4g sustained, %.4g %%), for %v more, as %s, %.1f s left; %v", p.Seconds, p.ToGo, p.Total, p.Waiting, p.Sends, p.Done, float64(p.Cost)/p.Seconds, p.Ceiling, p.Sustained, p.Percent, p.ETA.Round(time.Millisecond), p.Why, p.WaitLeft.Seconds(), p.Lately)
			}
			s.run("thirty", input.String())
		})
	}
}

// TestClassOfEachStatus: the class of a dead letter, by the status of its answer.
func TestClassOfEachStatus(t *testing.T) {
	var b strings.Builder
	for status := range 1000 {
		if c := format.DeadClassOfStatus(status); status == 0 || c != format.DeadClassOfStatus(status-1) {
			fmt.Fprintf(&b, "from %d: %v\n", status, c)
		}
	}
	golden.Compare(t, "classes.golden", b.String())
}
