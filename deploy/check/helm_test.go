package check

import (
	"bytes"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// rendered is what Helm makes of the chart with some values, as `helm install paceline` does.
func rendered(t *testing.T, values string) ([]byte, error) {
	t.Helper()
	chart, err := loader.Load("../helm/paceline")
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "paceline", Namespace: "paceline-system", IsInstall: true}
	to, err := util.ToRenderValues(chart, given, release, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, to)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for name, text := range files {
		if path.Ext(name) == ".yaml" {
			all.WriteString(strings.TrimSpace(text))
		}
	}
	return all.Bytes(), nil
}

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
