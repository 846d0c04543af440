package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

func TestSuccess(t *testing.T) {
	t.Parallel()
	cases := []struct{ expression, body, want string }{
		{`.status == "OK"`, `{"status":"OK"}`, ""},
		{`.status == "OK"`, `{"status":"BUSY"}`, `is false`},
		{`.status == "OK"`, `{"status":"OK"`, "no JSON"},
		{`.status == "OK"`, `{} {"status":"OK"}`, "no JSON"},
		{`.status == "OK"`, ``, "no JSON"},
		{`.status == "OK"`, `[1]`, "fails: expected an object"},
		{`.error == []`, `{"error":[]}`, ""},
		{`(.error | length) == 0 and .result`, `{"result":{}}`, ""},
		{`.ok`, `{"ok":"yes"}`, `is "yes"`},
		{`.ok`, `{"ok":1}`, `is 1`},
		{`.ok`, `{}`, `is null`},
		{`empty`, `{}`, "is nothing"},
		{`.id == 9007199254740993`, `{"id":9007199254740993}`, ""},
		{`env.SECRET == "1"`, `{}`, "is false"},
		{`$ENV.SECRET == "1"`, `{}`, "is false"},
		{`def f: f; f`, `{}`, "longer than 1s"},
		{`[range(1e9)] | length > 0`, `{}`, "longer than 1s"},
	}
	for _, c := range cases[:need.Fewer(len(cases)-1, len(cases))] { // the last takes a second, and memory
		is, err := success(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		if err = is([]byte(c.body)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.expression, c.body, err, c.want)
		}
	}
	for expression, want := range map[string]string{
		`.status = = "OK"`:   "character 11: unexpected token",
		`.status == "OK`:     "character 1",
		``:                   "missing query",
		`foo(1)`:             "function not defined: foo/1",
		`input == 1`:         "input",
		`import "a" as a; .`: "expected a jq expression",
		`$x`:                 "variable not defined: $x",
	} {
		if _, err := success(expression); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "expected a jq expression") {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
