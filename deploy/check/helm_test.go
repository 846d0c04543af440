//go:build helm

package check

import (
	"bytes"
	"path"
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
