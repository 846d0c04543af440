package model

import (
	"encoding/json"
	"slices"
)

// Tool is a tool that the answer has to call. If the request leaves the choice to the model, the
// answer is in words.
type Tool struct {
	Name      string
	Arguments map[string]any // the minimum that the schema asks for
}

// offered is the description of a tool, in the form of any of the APIs.
type offered struct {
	Name       string
	Parameters json.RawMessage
	Input      json.RawMessage `json:"input_schema"`
	Schema     json.RawMessage `json:"parametersJsonSchema"`
	Function   *offered
}

// chosen returns the tool that the request forces the answer to call, nil if it forces none.
func (f *form) chosen() (*Tool, *Problem) {
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
		return nil, nil // an unknown form of tool_choice
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
	return list[i].called(), nil
}

// called returns a call of the tool with the fewest arguments.
func (o *offered) called() *Tool {
	shape := o.Parameters
	for _, other := range []json.RawMessage{o.Input, o.Schema} {
		if shape == nil {
			shape = other
		}
	}
	arguments, _ := example(shape, false, 0).(map[string]any)
	if arguments == nil {
		arguments = map[string]any{}
	}
	return &Tool{o.Name, arguments}
}

func (c *Answer) arguments() string { return string(Encode(c.Tool.Arguments)) }

// chatCall returns a call of the tool in a chat.
func (OpenAI) chatCall(c *Answer, arguments string) m {
	return m{"id": "call_" + c.ID, "type": "function", "function": m{"name": c.Tool.Name, "arguments": arguments}}
}

func (o OpenAI) responseCall(c *Answer, status, arguments string) any {
	return m{"id": "fc_" + c.ID, "type": "function_call", "status": status, "call_id": "call_" + c.ID,
		"name": c.Tool.Name, "arguments": arguments}
}

// opening returns the first delta of a choice.
func (o OpenAI) opening(c *Answer) m {
	if c.Tool == nil {
		return m{"role": "assistant", "content": "", "refusal": nil}
	}
	begun := o.chatCall(c, "")
	begun["index"] = 0
	return m{"role": "assistant", "content": nil, "refusal": nil, "tool_calls": []any{begun}}
}

// more returns the delta with the arguments.
func (OpenAI) more(c *Answer) m {
	return m{"tool_calls": []any{m{"index": 0, "function": m{"arguments": c.arguments()}}}}
}

// finish returns the finish reason of a choice of a chat.
func (OpenAI) finish(c *Answer) string {
	_, cut := c.Length()
	switch {
	case c.Tool != nil:
		return "tool_calls"
	case cut:
		return "length"
	}
	return "stop"
}

// responseCallEvents yields the events between the beginning and the end of a response with a tool
// call.
func (o OpenAI) responseCallEvents(c *Answer, put func(kind string, done int64, last bool, data m) bool) bool {
	id, end, arguments := "fc_"+c.ID, c.Used.Output, c.arguments()
	return put("response.output_item.added", 0, false,
		m{"output_index": 0, "item": o.responseCall(c, "in_progress", "")}) &&
		put("response.function_call_arguments.delta", end, false, m{"item_id": id, "output_index": 0, "delta": arguments}) &&
		put("response.function_call_arguments.done", end, false,
			m{"item_id": id, "output_index": 0, "name": c.Tool.Name, "arguments": arguments}) &&
		put("response.output_item.done", end, false,
			m{"output_index": 0, "item": o.responseCall(c, "completed", arguments)}) &&
		put("response.completed", end, true,
			m{"response": o.response(c, "completed", []any{o.responseCall(c, "completed", arguments)})})
}

// use returns the block of a message that calls the tool.
func (Anthropic) use(c *Answer, input any) m {
	return m{"type": "tool_use", "id": "toolu_" + c.ID, "name": c.Tool.Name, "input": input}
}
