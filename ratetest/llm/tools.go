package llm

import (
	"encoding/json"
	"slices"
)

// A tool is one that the answer has to call: a request that leaves it to the model is answered in words.
type tool struct {
	name      string
	arguments map[string]any // the fewest that its schema asks for
}

// schema is as much of a JSON schema as is filled in.
type schema struct {
	Type       any // one, or several
	Properties map[string]json.RawMessage
	Required   []string
	Enum       []any
	Const      any
}

// offered is a tool as any of the APIs describes it.
type offered struct {
	Name       string
	Parameters json.RawMessage
	Input      json.RawMessage `json:"input_schema"`
	Function   *offered
}

// chosen reads which tool the request wants to see called, nil if it does not say.
func (f *form) chosen() (*tool, *problem) {
	var list []offered
	f.read("tools", &list)
	for i, o := range list {
		if o.Function != nil {
			list[i] = *o.Function
		}
	}
	var choice struct {
		Type, Name string
		Function   struct{ Name string }
	}
	raw := f.fields["tool_choice"]
	if json.Unmarshal(raw, &choice.Type) != nil && json.Unmarshal(raw, &choice) != nil {
		return nil, nil // "auto" of lists, and what is not known yet
	}
	name := choice.Name + choice.Function.Name
	switch {
	case name != "":
	case choice.Type != "required" && choice.Type != "any":
		return nil, nil
	}
	i := slices.IndexFunc(list, func(o offered) bool { return o.Name != "" && (name == "" || o.Name == name) })
	if i < 0 {
		return nil, badField("tool_choice", "tool_choice: there is no such tool in tools")
	}
	shape := list[i].Parameters
	if shape == nil {
		shape = list[i].Input
	}
	arguments, _ := example(shape, 0).(map[string]any)
	if arguments == nil {
		arguments = map[string]any{}
	}
	return &tool{list[i].Name, arguments}, nil
}

// example is the least value of a schema. Deeper than 20 there is none.
func example(raw json.RawMessage, depth int) any {
	var s schema
	if json.Unmarshal(raw, &s) != nil || depth > 20 {
		return nil
	}
	kind, _ := s.Type.(string)
	if several, ok := s.Type.([]any); ok && len(several) > 0 {
		kind, _ = several[0].(string)
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case kind == "object" || kind == "" && s.Properties != nil:
		all := map[string]any{}
		for _, name := range s.Required {
			all[name] = example(s.Properties[name], depth+1)
		}
		return all
	case kind == "array":
		return []any{}
	case kind == "string":
		return "fig"
	case kind == "number" || kind == "integer":
		return 1
	case kind == "boolean":
		return true
	}
	return nil
}

func (c *call) arguments() string { return string(encode(c.tool.arguments)) }

// chatCall is a call of the tool in a chat.
func (openAI) chatCall(c *call, arguments string) m {
	return m{"id": "call_" + c.id, "type": "function", "function": m{"name": c.tool.name, "arguments": arguments}}
}

func (o openAI) responseCall(c *call, status, arguments string) any {
	return m{"id": "fc_" + c.id, "type": "function_call", "status": status, "call_id": "call_" + c.id, "name": c.tool.name, "arguments": arguments}
}

// opening is the first delta of a choice.
func (o openAI) opening(c *call) m {
	if c.tool == nil {
		return m{"role": "assistant", "content": "", "refusal": nil}
	}
	begun := o.chatCall(c, "")
	begun["index"] = 0
	return m{"role": "assistant", "content": nil, "refusal": nil, "tool_calls": []any{begun}}
}

// more is the delta with the arguments.
func (openAI) more(c *call) m {
	return m{"tool_calls": []any{m{"index": 0, "function": m{"arguments": c.arguments()}}}}
}

// finish is why a choice of a chat ends.
func (openAI) finish(c *call) string {
	_, cut := c.length()
	switch {
	case c.tool != nil:
		return "tool_calls"
	case cut:
		return "length"
	}
	return "stop"
}

// responseCallEvents are the events between the beginning and the end of a response that calls the tool.
func (o openAI) responseCallEvents(c *call, put func(kind string, done int64, last bool, data m) bool) bool {
	id, end, arguments := "fc_"+c.id, c.used.Output, c.arguments()
	return put("response.output_item.added", 0, false, m{"output_index": 0, "item": o.responseCall(c, "in_progress", "")}) &&
		put("response.function_call_arguments.delta", end, false, m{"item_id": id, "output_index": 0, "delta": arguments}) &&
		put("response.function_call_arguments.done", end, false, m{"item_id": id, "output_index": 0, "name": c.tool.name, "arguments": arguments}) &&
		put("response.output_item.done", end, false, m{"output_index": 0, "item": o.responseCall(c, "completed", arguments)}) &&
		put("response.completed", end, true, m{"response": o.response(c, "completed", []any{o.responseCall(c, "completed", arguments)})})
}

// use is the block of a message that calls the tool.
func (anthropic) use(c *call, input any) m {
	return m{"type": "tool_use", "id": "toolu_" + c.id, "name": c.tool.name, "input": input}
}
