//go:build !helm

package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

const chartFolder = "../helm/paceline/"

// functions are those of Helm that the chart calls. Another one fails as unknown.
var functions = template.FuncMap{
	"fail":      func(text string) (string, error) { return "", errors.New(text) },
	"regexFind": func(pattern, text string) string { return regexp.MustCompile(pattern).FindString(text) },
	"int":       func(n float64) int { return int(n) },
	"add":       func(a, b float64) int { return int(a + b) },
	"trim":      strings.TrimSpace,
	"quote":     strconv.Quote,
	"indent": func(n int, text string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	},
	"toJson": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	},
}

// rendered is the chart with some values, by Go's templates and by the validator of schemas that is in Helm, too. With the
// tag helm it is what Helm's library makes of it: that takes a minute to compile.
func rendered(t *testing.T, values string) ([]byte, error) {
	t.Helper()
	var all, given map[string]any
	read := func(text []byte, to any) {
		if err := yaml.Unmarshal(text, to); err != nil {
			t.Fatal(err)
		}
	}
	read(file(t, chartFolder+"values.yaml"), &all)
	read([]byte(values), &given)
	merge(all, given)
	if err := schema(t).Validate(all); err != nil {
		return nil, err
	}
	chart, err := template.New("").Funcs(functions).Option("missingkey=error").
		Parse(string(file(t, chartFolder+"templates/proxy.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	err = chart.Execute(&text, map[string]any{
		"Values": all, "Release": map[string]any{"Name": "paceline", "Namespace": "paceline-system"},
	})
	return bytes.TrimSpace(text.Bytes()), err
}

// merge gives into what given has, key by key.
func merge(into, given map[string]any) {
	for key, v := range given {
		if below, is := v.(map[string]any); is {
			if to, is := into[key].(map[string]any); is {
				merge(to, below)
				continue
			}
		}
		into[key] = v
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(file(t, chartFolder+"values.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("values.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("values.schema.json")
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
