package check

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// objects are the objects of a manifest, by their kinds. The configuration within a ConfigMap is read, too.
func objects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var o map[string]any
		if err := yaml.Unmarshal(part, &o); err != nil {
			t.Fatal(err)
		}
		if data, is := o["data"].(map[string]any); is {
			var within map[string]any
			if err := yaml.Unmarshal([]byte(data["proxy.yaml"].(string)), &within); err != nil {
				t.Fatal(err)
			}
			data["proxy.yaml"] = within
		}
		all[o["kind"].(string)] = o
	}
	return all
}

// With the values as they are, the chart is gateway.yaml, without the Namespace.
func TestChartIsTheGateway(t *testing.T) {
	text, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := os.ReadFile("../kubernetes/gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, text), objects(t, gateway)
	delete(want, "Namespace")
	if len(got) != len(want) {
		t.Errorf("%d kinds, expected %d", len(got), len(want))
	}
	for kind := range want {
		if !reflect.DeepEqual(got[kind], want[kind]) {
			t.Errorf("%s\n got %v\nwant %v", kind, got[kind], want[kind])
		}
	}
}

// The chart is right with other values, too.
func TestChartWithValues(t *testing.T) {
	for _, c := range []struct {
		values string
		has    []string // in the manifest
		hasNot []string
		kinds  int
	}{
		{"", []string{"state: /var/lib/paceline/proxy.state", "type: Recreate"},
			[]string{"share:", "storageClassName"}, 5},
		{"{replicas: 3, store: {env: STORE}, networkPolicy: " +
			"{egress: [{to: [{podSelector: {matchLabels: {app: db}}}], ports: [{port: 5432}]}]}}",
			[]string{"replicas: 3", "share: {env: STORE}", `"port":5432`}, []string{"state", "Recreate"}, 4},
		{"{networkPolicy: {enabled: false}, storage: {class: fast}, grace: 0, port: 80, " +
			"metrics: {port: 81, names: false}, probes: {live: 3}}",
			[]string{"storageClassName: fast", "grace: 0s", "terminationGracePeriodSeconds: 10",
				"containerPort: 80", "0.0.0.0:81, names: false", "periodSeconds: 3"},
			[]string{"NetworkPolicy", "7878", "9090"}, 4},
		{"{image: 'registry.example/paceline@sha256:ab', secret: keys, resources: {limits: {memory: 2Gi}}, " +
			"config: \"upstreams:\\n- {to: 'https://b.example', limits: [1/s]}\\n\"}",
			[]string{"registry.example/paceline@sha256:ab", "secretRef: {name: keys}", "2Gi", "b.example"},
			[]string{"api.example.com", "TEAM_KEY"}, 5},
	} {
		text, err := rendered(t, c.values)
		if err != nil {
			t.Errorf("%s: %v", c.values, err)
			continue
		}
		manifest(t, "chart with "+c.values, text)
		if n := len(objects(t, text)); n != c.kinds {
			t.Errorf("%s: %d kinds, expected %d", c.values, n, c.kinds)
		}
		in := func(part string) bool { return strings.Contains(string(text), part) }
		if slices.ContainsFunc(c.hasNot, in) || slices.ContainsFunc(c.has, func(part string) bool { return !in(part) }) {
			t.Errorf("%s: expected %q and not %q in\n%s", c.values, c.has, c.hasNot, text)
		}
	}
}

// A wrong value is refused by its name.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"replica: 2":                         "'replica' not allowed",
		"replicas: two":                      "'/replicas'",
		"replicas: 0":                        "'/replicas'",
		"replicas: 2":                        "replicas 2 without store.env",
		"store: {url: 'postgres://db/a'}":    "'/store'",
		"metrics: {port: 90900}":             "'/metrics/port'",
		"probes: {live: 10s}":                "'/probes/live'",
		"networkPolicy: {clients: [a]}":      "'/networkPolicy/clients'",
		"image: ''":                          "'/image'",
		"config: 'clients: {}'":              "'/config'",
		"config: \"listen: a\\nupstreams:\"": "config has listen:, which the chart writes",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", values, err, want)
		}
	}
}
