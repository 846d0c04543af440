package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/shareflags/storetest"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/limit"
)

// Processes of sim --live that share the server's quota by a store are refused nothing, and all of them are served.
func TestLiveShare(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	storetest.Ripe(t, address, "sim", func() limit.Limiter {
		l, err := limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 20})
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
	c := another(t, "sim", "--live", "--share", address, "--share-name", "sim", "--processes", "3", "--threads", "2", "--scale", "2", "--limit", "20", "--window", "2s",
		"--duration", "20s", "--quiet", "--output", "json")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r loadgen.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.Limited > 0 || r.Served < 20 || r.Strategy != loadgen.SharedStrategy {
		t.Errorf("%d served, %d limited, by %s", r.Served, r.Limited, r.Strategy)
	}
	for process := range 3 {
		if r.RequestCount[2*process]+r.RequestCount[2*process+1] == 0 {
			t.Errorf("process %d sent nothing: %v", process, r.RequestCount)
		}
	}
	seen := storetest.Book(t, address, "sim")
	if !strings.HasPrefix(seen.Configuration, "Bucket: 20 requests per 1s") {
		t.Errorf("the store has %q", seen.Configuration)
	}
}

// What does not go with a store, and a store that is not there, is said before anything is started.
func TestLiveShareRefusals(t *testing.T) {
	for _, c := range []struct {
		flags, says string
		code        int
	}{
		{"--share sqlite:x.db --strategy fair", "follows no strategy", cli.ExitUsage},
		{"--share sqlite:x.db --share-fallback split", "--share-fallback with --live", cli.ExitUsage},
		{"--share-name x", "--share-name without --share", cli.ExitUsage},
		{"--share nowhere", "expected sqlite:FILE", cli.ExitConfig},
		{"--share redis://127.0.0.1:1", "cannot be reached", cli.ExitConfig},
	} {
		var errs strings.Builder
		code := execute(t.Context(), append([]string{"sim", "--live", "--quiet", "--duration", "1s"}, strings.Fields(c.flags)...), strings.NewReader(""), &errs, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit %d\n%s", c.flags, code, errs.String())
		}
	}
}
