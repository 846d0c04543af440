package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "d2b52a6ec7f0aa11223344556677889900aabbcc"}
	dirty, clean := debug.BuildSetting{Key: "vcs.modified", Value: "true"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	for _, c := range []struct {
		name    string
		info    *debug.BuildInfo
		stamped string
		want    string
	}{
		{"a release", info("(devel)", commit, clean), "v0.1.0", "v0.1.0"},
		{"go install module@version", info("v0.2.0"), "", "v0.2.0"},
		{"go build where git knows the commit", info("v0.0.0-20261122211900-d2b52a6ec7f0+dirty", commit, dirty), "", "v0.0.0-20261122211900-d2b52a6ec7f0+dirty"},
		{"go build of old, clean", info("(devel)", commit, clean), "", "devel-d2b52a6ec7f0"},
		{"go build of old, changed", info("(devel)", commit, dirty), "", "devel-d2b52a6ec7f0+dirty"},
		{"outside a repository", info("(devel)"), "", "devel"},
		{"go test", info(""), "", "devel"},
		{"nothing known", nil, "", "devel"},
	} {
		if got := versionOf(c.info, c.stamped); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
