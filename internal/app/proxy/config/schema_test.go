package config

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
)

func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("proxy.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("proxy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allKeys are those of the schema, which is made of the tables that Read uses.
func allKeys() []string {
	all := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for key := range properties {
					all[key] = true
				}
			}
			for _, below := range v {
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		panic(err)
	}
	walk(doc)
	return slices.Sorted(maps.Keys(all))
}

func TestSchemaHasDescriptions(t *testing.T) {
	if n := len(allKeys()); n < 60 {
		t.Errorf("%d keys", n)
	}
	var walk func(at string, s *jsonschema.Schema)
	walk = func(at string, s *jsonschema.Schema) {
		for name, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", at, name)
			}
			walk(at+"."+name, p)
		}
		for _, other := range s.AnyOf {
			walk(at, other)
		}
		if s.Items2020 != nil {
			walk(at, s.Items2020)
		}
	}
	walk("", schemaOf(t))
}

// Every file that Read accepts is valid by the schema. Every error of form is an error for both.
func TestSchemaSaysWhatReadSays(t *testing.T) {
	race.Without(t) // one call after another
	s := schemaOf(t)
	value := func(text string) any {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return v
	}
	if err := s.Validate(value(everything)); err != nil {
		t.Errorf("the schema refuses what Read accepts: %v", err)
	}
	const one = head + "upstreams:\n  - to: https://api.example.com\n"
	values := []string{"1", "-1", "2.5", "true", "some words", `""`, "none", "auto", "off", "0", "30s", "0s", "500/m", "64KiB", "[]", "[500/m]", "[{limit: 5USD/d}]", "[1]", "{}", "{nothing: 1}"}
	for n, around := range []string{one + "KEY: VALUE\n", one + "    KEY: VALUE\n", one + "bounds: {KEY: VALUE}\n", one + "clients: {KEY: VALUE}\n", one + "clients: {default: {KEY: VALUE}}\n"} {
		for i, key := range allKeys() {
			for j, v := range values {
				if !need.Long() && (i+j+n)%4 != 0 {
					continue // each key meets a quarter of the values at each of five places
				}
				text := strings.Replace(strings.Replace(around, "KEY", key, 1), "VALUE", v, 1)
				if strings.Count(text, "version:") > 1 || strings.Count(text, "\nupstreams:") > 1 || strings.Count(text, " to:") > 1 {
					continue
				}
				if _, err := read(text); err == nil {
					if bad := s.Validate(value(text)); bad != nil {
						t.Errorf("the schema refuses what Read accepts: %v in\n%s", bad, text)
					}
				} else if strings.Contains(err.Error(), "is not known") && s.Validate(value(text)) == nil {
					t.Errorf("the schema accepts what Read refuses: %v in\n%s", err, text)
				}
			}
		}
	}
}

// The file of `paceline proxy --init` is right as it is, and with each line that is commented out. The schema accepts both.
func TestInitialFile(t *testing.T) {
	text, err := os.ReadFile("../../../../cmd/paceline/proxy_init.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	made := need.Certificate(t, ".")
	t.Setenv("OPENAI_KEY", "sk-1")
	t.Setenv("PEOPLE_KEY", "pl-1")
	for _, err := range []error{
		os.Rename(made.Cert, "proxy.pem"), os.Rename(made.Key, "proxy.key"), os.WriteFile("second.key", []byte("sk-2\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	optional := regexp.MustCompile(`(?m)^( *)# ( *- \{|[A-Za-z_]+:(?: |$))`)
	if n := len(optional.FindAll(text, -1)); n < 14 {
		t.Errorf("%d lines are commented out", n)
	}
	known := schemaOf(t)
	for _, text := range [][]byte{text, optional.ReplaceAll(text, []byte("$1$2"))} {
		if err := os.WriteFile("tried.yaml", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load("tried.yaml", os.LookupEnv); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := known.Validate(v); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

// A file has a name for each scope in which a request counts.
func TestNamesOfScopes(t *testing.T) {
	named := map[provider.Scope]bool{provider.All: true} // a limit is of one upstream
	for _, name := range scopeNames {
		named[scopes[name]] = true
	}
	for _, s := range provider.Scopes() {
		if !named[s.Scope] {
			t.Errorf("no name for %s", s.Scope)
		}
	}
}
