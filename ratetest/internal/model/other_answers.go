package model

import "iter"

// Groq is OpenAI's form with Groq's times: https://console.groq.com/docs/api-reference.
type Groq struct{ OpenAI }

// Whole implements Form.
func (g Groq) Whole(c *Answer) any { return changed(g.OpenAI.Whole(c), func(r m) { g.change(c, r) }) }

// Events implements Form. The last event has the usage even if nobody asked for it.
func (g Groq) Events(c *Answer) iter.Seq[Event] {
	return eachEvent(g.OpenAI.Events(c), func(r m, last bool) {
		if g.change(c, r); last && !c.NoUsage {
			r["x_groq"] = m{"id": "req_" + c.ID, "usage": g.times(c)}
		}
	})
}

func (g Groq) change(c *Answer, r m) {
	if r["object"] == "chat.completion" || r["object"] == "chat.completion.chunk" {
		r["x_groq"], r["service_tier"] = m{"id": "req_" + c.ID}, "on_demand"
	}
	if r["usage"] != nil && c.API == "chat" {
		r["usage"] = g.times(c)
	}
}

// times returns the usage, with made-up times.
func (g Groq) times(c *Answer) m {
	u, _ := g.usage(c).(m)
	prompt, completion := float64(c.Used.Input)/10_000, float64(c.Used.Output)/1000
	u["queue_time"], u["prompt_time"], u["completion_time"], u["total_time"] = 0.001, prompt, completion, prompt+completion
	return u
}

// Azure is OpenAI's form with the results of Azure's content filters:
// https://learn.microsoft.com/azure/ai-foundry/openai/reference.
type Azure struct{ OpenAI }

// passes is a filter's result.
func passes() m {
	all := m{}
	for _, name := range []string{"hate", "self_harm", "sexual", "violence"} {
		all[name] = m{"filtered": false, "severity": "safe"}
	}
	return all
}

func promptPasses() []any { return []any{m{"prompt_index": 0, "content_filter_results": passes()}} }

// Whole implements Form.
func (z Azure) Whole(c *Answer) any {
	return changed(z.OpenAI.Whole(c), func(r m) {
		if c.API == "chat" {
			r["prompt_filter_results"] = promptPasses()
			eachChoice(r, func(choice m) { choice["content_filter_results"] = passes() })
		}
	})
}

// Events implements Form. The first event has no choices, and the results for the prompt.
func (z Azure) Events(c *Answer) iter.Seq[Event] {
	if c.API != "chat" {
		return z.OpenAI.Events(c)
	}
	return func(yield func(Event) bool) {
		if !yield(Event{Data: m{"id": "", "object": "", "created": 0, "model": "", "choices": []any{},
			"prompt_filter_results": promptPasses()}}) {
			return
		}
		for e := range eachEvent(z.OpenAI.Events(c), func(r m, _ bool) {
			eachChoice(r, func(choice m) { choice["content_filter_results"] = m{} })
		}) {
			if !yield(e) {
				return
			}
		}
	}
}

// Mistral is OpenAI's form without OpenAI's newer fields: https://docs.mistral.ai/api.
type Mistral struct{ OpenAI }

// Whole implements Form.
func (v Mistral) Whole(c *Answer) any {
	return changed(v.OpenAI.Whole(c), func(r m) { v.change(c, r) })
}

// Events implements Form. The last event with a choice has the usage.
func (v Mistral) Events(c *Answer) iter.Seq[Event] {
	plain := *c
	plain.IncludeUsage = false // it is no event of its own
	return eachEvent(v.OpenAI.Events(&plain), func(r m, last bool) {
		if v.change(c, r); last && !c.NoUsage {
			r["usage"] = v.counts(c)
		}
	})
}

// counts returns the usage. It has no details.
func (Mistral) counts(c *Answer) m {
	return m{"prompt_tokens": c.Used.Input, "completion_tokens": c.Used.Output,
		"total_tokens": c.Used.Input + c.Used.Output}
}

func (v Mistral) change(c *Answer, r m) {
	delete(r, "service_tier")
	delete(r, "system_fingerprint")
	if r["usage"] != nil {
		r["usage"] = v.counts(c)
	}
	if r["object"] == "chat.completion" || r["object"] == "chat.completion.chunk" || c.API == "embeddings" {
		r["id"] = c.ID
	}
	eachChoice(r, func(choice m) {
		delete(choice, "logprobs")
		for _, name := range []string{"message", "delta"} {
			said, _ := choice[name].(m)
			delete(said, "refusal")
			delete(said, "annotations")
			if said["tool_calls"] != nil && said["content"] == nil {
				said["content"] = ""
			}
		}
	})
}

// changed returns an answer after f has changed it.
func changed(answer any, f func(m)) any {
	if r, ok := answer.(m); ok {
		f(r)
	}
	return answer
}

// eachEvent changes each event of a stream. last is the event with the end of the last choice.
func eachEvent(events iter.Seq[Event], f func(r m, last bool)) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range events {
			if r, ok := e.Data.(m); ok {
				f(r, e.Last)
			}
			if !yield(e) {
				return
			}
		}
	}
}

func eachChoice(r m, f func(m)) {
	choices, _ := r["choices"].([]any)
	for _, choice := range choices {
		if choice, ok := choice.(m); ok {
			f(choice)
		}
	}
}
