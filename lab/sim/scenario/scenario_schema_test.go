package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// schemaOf compiles what Schema returns, as an editor does.
func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("scenario.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 2020 {
		t.Errorf("the schema is of draft %d", s.DraftVersion)
	}
	return s
}

func asValue(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

func TestSchemaAcceptsScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	s := schemaOf(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asValue(t, string(text))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// place is a field of a scenario: its mapping with the field's value in place of VALUE.
type place struct{ key, text string }

// places are all fields, by what Read knows of them.
func places() (all []place) {
	add := func(around string, keys []string) {
		for _, key := range keys {
			all = append(all, place{key, strings.ReplaceAll(around, "KEY: VALUE", key+": VALUE")})
		}
	}
	const begin = "version: 1\nduration: 1h\ngroups: [{strategy: fair}]\n"
	add("KEY: VALUE\nversion: 1\nduration: 1h\ngroups: [{strategy: fair}]\n", yamlfile.Keys(scenarioFields))
	add(begin+"server: {KEY: VALUE}\n", yamlfile.Keys(serverFields))
	add(begin+"server: {headers: {KEY: VALUE}}\n", yamlfile.Keys(headerFields))
	add(begin+"server: {changes: [{KEY: VALUE}]}\n", yamlfile.Keys(changeFields))
	add(begin+"store: {KEY: VALUE}\n", yamlfile.Keys(storeFields))
	add(begin+"store: {outages: [{KEY: VALUE}]}\n", yamlfile.Keys(outageFields))
	const group = "version: 1\nduration: 1h\ngroups: [{strategy: fair, "
	add(group+"KEY: VALUE}]\n", yamlfile.Keys(groupFields))
	add("version: 1\nduration: 1h\ngroups: [{strategy: {on_limited: 1, on_ok: 0, KEY: VALUE}}]\n", yamlfile.Keys(lawFields))
	add(group+"params: {KEY: VALUE}}]\n", yamlfile.Keys(paramFields))
	add(group+"demand: {KEY: VALUE}}]\n", yamlfile.Keys(demandFields))
	add(group+"costs: {KEY: VALUE}}]\n", yamlfile.Keys(costFields))
	return all
}

// without takes the lines or fields away that place the same key a second time.
func without(text, key string) string {
	for _, again := range []string{"\nversion: 1", "\nduration: 1h", "\ngroups: [{strategy: fair}]", "strategy: fair, ", "on_limited: 1, ", "on_ok: 0, "} {
		if strings.HasPrefix(strings.Trim(again, "\n"), key+":") {
			text = strings.Replace(text, again, "", 1)
		}
	}
	return text
}

// TestSchemaSaysWhatReadSays: in each field, each of many values is right for both or wrong for both. The schema may be milder
// where it only looks at how a value begins.
func TestSchemaSaysWhatReadSays(t *testing.T) {
	values := []string{
		"1", "0", "-1", "7", "2.5", "true", "false", "null", "some words", `""`, "full", "always", "on-off", "light", "fair", "aimd", "bucket", "rolling", "weighted",
		"requests", "input", "racing", "share", "wait", "split", "exact", "whole-seconds", "none", "token bucket", "30s", "1h30m", "2d", "1.5d", ".5s", "-3s", "1x", "5s4", "4500/h", "20 per second", "constant:10ms", "uniform:20ms-40ms",
		`"constant:"`, "constant", "[]", "[1]", "{}", "[{at: 1h, factor: 0.5}]", "{kind: light, rate: 1/s}", "{nothing: 1}", "[{strategy: fair}]", "[{}]", "{mean: 2}", "{weight: 2}",
		"[limited < 3 %]", "[limited 3]",
	}
	mild := []string{"quota", "rate", "min_rate", "link", "service", "work", "on_limited", "on_ok"} // of which the schema looks at the beginning
	s := schemaOf(t)
	accepted := map[string]int{}
	for _, p := range places() {
		for _, v := range values {
			if v == `""` && p.key == "strategy" { // is not read, and then missing
				continue
			}
			text := strings.Replace(without(p.text, p.key), "VALUE", v, 1)
			d := &decoder{Reader: yamlfile.New("x")}
			if root, _ := d.Root(strings.NewReader(text), "scenario", nil); root != nil {
				d.scenario(root, new(fleet.Scenario))
			}
			// Not d.check: whether fields go together is no matter of their form.
			read, schema := d.Err(), s.Validate(asValue(t, text))
			if read == nil {
				accepted[p.text]++
			}
			isMild := slices.Contains(mild, p.key)
			switch {
			case read == nil && schema != nil:
				t.Errorf("the schema refuses what Read accepts: %v in\n%s", schema, text)
			case read != nil && schema == nil && !isMild && !readOnly(read):
				t.Errorf("the schema accepts what Read refuses: %v in\n%s", read, text)
			}
		}
	}
	for _, p := range places() {
		if accepted[p.text] == 0 {
			t.Errorf("no value is right in\n%s", p.text)
		}
	}
}

// readOnly is what Read refuses by more than a value's form.
func readOnly(err error) bool {
	return strings.Contains(err.Error(), "nobody leaves at 0") || strings.Contains(err.Error(), "of a ") && strings.Contains(err.Error(), "server: want 1 or more")
}

// TestSchemaHasEveryField: by walking the schema alone.
func TestSchemaHasEveryField(t *testing.T) {
	s := schemaOf(t)
	var paths []string
	var walk func(prefix string, s *jsonschema.Schema)
	walk = func(prefix string, s *jsonschema.Schema) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if p.Description == "" {
				t.Errorf("%s%s has no description", prefix, name)
			}
			paths = append(paths, prefix+name)
			walk(prefix+name+".", p)
			for _, other := range p.AnyOf {
				walk(prefix+name+".", other)
			}
			if items := p.Items2020; items != nil {
				walk(prefix+name+".", items)
			}
		}
	}
	walk("", s)
	if n := len(places()); len(paths) != n {
		t.Errorf("%d fields in the schema, %d in Read: %s", len(paths), n, fmt.Sprint(paths))
	}
}
