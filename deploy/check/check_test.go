package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// Each manifest has only fields that Kubernetes knows, and what it names is there.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifest(t, file, text)
	}
}

// manifest finds what is wrong with the objects of a manifest.
func manifest(t *testing.T, file string, text []byte) {
	t.Helper()
	kinds := map[string]bool{}
	var pods []corev1.PodSpec
	labels := map[string]string{}
	var ports []corev1.ContainerPort
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ Kind string }
		if err := yaml.Unmarshal(part, &head); err != nil {
			t.Fatal(err)
		}
		kinds[head.Kind] = true
		var to any
		switch head.Kind {
		case "ConfigMap":
			to = &corev1.ConfigMap{}
		case "Namespace":
			to = &corev1.Namespace{}
		case "PersistentVolumeClaim":
			to = &corev1.PersistentVolumeClaim{}
		case "Deployment":
			to = &appsv1.Deployment{}
		case "Service":
			to = &corev1.Service{}
		case "NetworkPolicy":
			to = &networkingv1.NetworkPolicy{}
		}
		if err := yaml.UnmarshalStrict(part, to, yaml.DisallowUnknownFields); err != nil {
			t.Errorf("%s: %s: %v", file, head.Kind, err)
			continue
		}
		switch x := to.(type) {
		case *appsv1.Deployment:
			pods, labels = append(pods, x.Spec.Template.Spec), x.Spec.Template.Labels
			for k, v := range x.Spec.Selector.MatchLabels {
				if labels[k] != v {
					t.Errorf("%s: the selector %s=%s does not match the Pods", file, k, v)
				}
			}
		case *corev1.Service:
			for _, p := range x.Spec.Ports {
				if !named(portsOf(pods), p.TargetPort.StrVal) {
					t.Errorf("%s: no container has the port %s of the Service", file, p.TargetPort.StrVal)
				}
			}
		case *networkingv1.NetworkPolicy:
			for k, v := range x.Spec.PodSelector.MatchLabels {
				if labels[k] != v {
					t.Errorf("%s: the policy of %s=%s is of no Pod", file, k, v)
				}
			}
			for _, rule := range x.Spec.Ingress {
				for _, p := range rule.Ports {
					if !named(portsOf(pods), p.Port.StrVal) {
						t.Errorf("%s: no container has the port %s of the policy", file, p.Port.StrVal)
					}
				}
			}
		}
	}
	if ports = portsOf(pods); len(ports) == 0 || !kinds["ConfigMap"] {
		t.Errorf("%s has %v", file, kinds)
	}
	for _, pod := range pods {
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			probed(t, file, &c)
			controlled(t, file, &pod, &c)
		}
	}
}

func portsOf(pods []corev1.PodSpec) (all []corev1.ContainerPort) {
	for _, pod := range pods {
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			all = append(all, c.Ports...)
		}
	}
	return all
}

func named(ports []corev1.ContainerPort, name string) bool {
	for _, p := range ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

// probed finds that the proxy's container has probes at the port of its numbers, and few rights.
func probed(t *testing.T, file string, c *corev1.Container) {
	if !strings.HasPrefix(c.Image, "paceline:") {
		return
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil && (p.HTTPGet == nil || p.HTTPGet.Port.StrVal != "metrics" || p.HTTPGet.Path != "/livez" && p.HTTPGet.Path != "/readyz") {
			t.Errorf("%s: a probe asks %+v", file, p.HTTPGet)
		}
	}
	s := c.SecurityContext
	if c.LivenessProbe == nil || s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 {
		t.Errorf("%s: the container %s has %+v", file, c.Name, s)
	}
}

// controlled finds that paceline ctl works in the proxy's container: its socket is in a volume that can be written.
func controlled(t *testing.T, file string, pod *corev1.PodSpec, c *corev1.Container) {
	if !strings.HasPrefix(c.Image, "paceline:") {
		return
	}
	for _, e := range c.Env {
		for _, m := range c.VolumeMounts {
			for _, v := range pod.Volumes {
				if e.Name == "PACELINE_RUNTIME_DIR" && m.MountPath == e.Value && !m.ReadOnly && v.Name == m.Name &&
					v.EmptyDir != nil {
					return
				}
			}
		}
	}
	t.Errorf("%s: the container %s has no PACELINE_RUNTIME_DIR at an emptyDir: %v, %v", file, c.Name, c.Env, c.VolumeMounts)
}

// Compose reads its file, and each file that it mounts is there.
func TestCompose(t *testing.T) {
	o, err := cli.NewProjectOptions([]string{"../container/compose.yaml"}, cli.WithEnv([]string{"TEAM_KEY=a", "EXAMPLE_KEY=b"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 3 {
		t.Errorf("%d services, expected 3", len(p.Services))
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type != "bind" {
				continue
			}
			if about, err := os.Stat(v.Source); err != nil || about.IsDir() {
				t.Errorf("%s mounts %s: %v", name, v.Source, err)
			}
		}
	}
	o, err = cli.NewProjectOptions([]string{"../container/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "the key") {
		t.Errorf("without keys: %v", err)
	}
}

// Grafana's own types know each field of the dashboard.
func TestDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile("../container/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(text); said(err) {
		t.Fatal(err)
	}
	if err := d.Validate(); said(err) {
		t.Error(err)
	}
	if len(d.Panels) < 8 {
		t.Errorf("%d panels", len(d.Panels))
	}
	wrong := bytes.Replace(text, []byte(`"legendFormat"`), []byte(`"legendForm"`), 1)
	if !json.Valid(wrong) || !said(d.UnmarshalJSONStrict(wrong)) {
		t.Error("a field that is not known is taken")
	}
}

// said reports whether there is an error. Grafana's library returns empty lists of errors, too.
func said(err error) bool { return err != nil && err.Error() != "" }
