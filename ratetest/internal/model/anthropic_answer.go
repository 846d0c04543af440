package model

import "iter"

// Anthropic is the form of the answers of Anthropic's Messages API:
// https://docs.anthropic.com/en/api/messages and /messages-streaming.
type Anthropic struct{}

// usage returns the usage. Its input excludes tokens read from the cache, as the provider's totals
// do.
func (Anthropic) usage(c *Answer, output int64) m {
	u := c.Used
	return m{
		"input_tokens": u.Input - u.Cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": u.Cached,
		"cache_creation": m{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  output, "service_tier": "standard",
	}
}

func (Anthropic) stop(c *Answer) string {
	if c.Tool != nil {
		return "tool_use"
	}
	if _, cut := c.Length(); cut {
		return "max_tokens"
	}
	return "end_turn"
}

func (a Anthropic) message(c *Answer, content []any, stop any, output int64) m {
	answer := m{"id": "msg_" + c.ID, "type": "message", "role": "assistant", "model": c.Model, "content": content,
		"stop_reason":   stop,
		"stop_sequence": nil}
	if !c.NoUsage {
		answer["usage"] = a.usage(c, output)
	}
	return answer
}

func (a Anthropic) Whole(c *Answer) any {
	if c.Tool != nil {
		return a.message(c, []any{a.use(c, c.Tool.Arguments)}, a.stop(c), c.Used.Output)
	}
	return a.message(c, []any{m{"type": "text", "text": c.Text()}}, a.stop(c), c.Used.Output)
}

func (a Anthropic) Events(c *Answer) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		put := func(kind string, done int64, last bool, data m) bool {
			data["type"] = kind
			return yield(Event{Name: kind, Data: data, Done: done, Last: last})
		}
		block := m{"type": "text", "text": ""}
		if c.Tool != nil {
			block = a.use(c, m{})
		}
		if !put("message_start", 0, false, m{"message": a.message(c, []any{}, nil, min(1, c.Used.Output))}) ||
			!put("content_block_start", 0, false, m{"index": 0, "content_block": block}) ||
			!put("ping", 0, false, m{}) {
			return
		}
		if c.Tool != nil && !put("content_block_delta", c.Used.Output, false,
			m{"index": 0, "delta": m{"type": "input_json_delta", "partial_json": c.arguments()}}) {
			return
		}
		for p := range c.chunks {
			if !put("content_block_delta", p.done, false,
				m{"index": 0, "delta": m{"type": "text_delta", "text": p.text}}) {
				return
			}
		}
		end := c.Used.Output
		delta := m{"delta": m{"stop_reason": a.stop(c), "stop_sequence": nil}}
		if !c.NoUsage {
			delta["usage"] = m{"output_tokens": end}
		}
		_ = put("content_block_stop", end, false, m{"index": 0}) &&
			put("message_delta", end, true, delta) &&
			put("message_stop", end, false, m{})
	}
}
