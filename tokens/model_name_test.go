package tokens_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/paceline-go/paceline/tokens"
)

func TestRenamed(t *testing.T) {
	for _, c := range []struct{ body, model, want string }{
		{`{"model":"a","n":1}`, "a", `{"model":"b\"c","n":1}`},
		{"{ \"n\" : 1.50 ,\n \"model\" :  \"a\" }\n", "a", "{ \"n\" : 1.50 ,\n \"model\" :  \"b\\\"c\" }\n"},
		{`{"model":"x","in":{"model":"y"},"model":"a"}`, "a", `{"model":"b\"c","in":{"model":"y"},"model":"b\"c"}`},
		{`{"mod\u0065l":"a"}`, "a", `{"mod\u0065l":"b\"c"}`},
		{`{"in":{"model":"y"}}`, "", `{"in":{"model":"y"}}`},
		{`{"model":7}`, "", `{"model":7}`},
		{`["model"]`, "", `["model"]`},
		{`{"model":"a"`, "", `{"model":"a"`},
		{``, "", ``},
	} {
		if name, _ := tokens.ModelIn([]byte(c.body)); name != c.model {
			t.Errorf("%s names %q, want %q", c.body, name, c.model)
		}
		if got := tokens.Renamed([]byte(c.body), `b"c`); string(got) != c.want {
			t.Errorf("%s\nbecomes %s\nwant    %s", c.body, got, c.want)
		}
	}
}

// A renamed body names the new model, has all its other members, and is as before when renamed back.
func FuzzRenamed(f *testing.F) {
	f.Add([]byte(`{"model":"a","x":[1,{"model":2}]}`), "b")
	f.Add([]byte(`{"\u006dodel":"a"}`), "")
	f.Fuzz(func(t *testing.T, raw []byte, model string) {
		was := bytes.Clone(raw)
		name, _ := tokens.ModelIn(raw)
		got := tokens.Renamed(raw, model)
		if !bytes.Equal(raw, was) {
			t.Fatal("the body itself has changed")
		}
		if name == "" {
			if !bytes.Equal(got, raw) {
				t.Fatalf("%q names no model, and becomes %q", raw, got)
			}
			return
		}
		var before, after map[string]any
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(got, &after) != nil {
			t.Fatalf("%q becomes %q, which is no object", raw, got)
		}
		quoted, _ := json.Marshal(model)
		var want string
		_ = json.Unmarshal(quoted, &want) // without invalid UTF-8
		if after["model"] != want {
			t.Fatalf("%q names %q, want %q", got, after["model"], want)
		}
		delete(before, "model")
		delete(after, "model")
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q becomes %q", raw, got)
		}
	})
}

func TestBeginning(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"model":"a","messages":[{"role":"user"}],"system":"be brief"}`, `"be brief"[{"ro`},
		{`{"messages":[{"role":"user"}],"temperature":1,"system":"be brief"}`, `"be brief"[{"ro`},
		{`{"system":"be brief","messages":[]}`, ""},
		{`{"input":"0123456789abcdef"}`, `"0123456789abcd`},
		{`["messages"]`, ""}, {`{`, ""}, {``, ""},
	} {
		if got := tokens.Beginning([]byte(c.body), 15); string(got) != c.want {
			t.Errorf("%s begins with %q, want %q", c.body, got, c.want)
		}
	}
}
