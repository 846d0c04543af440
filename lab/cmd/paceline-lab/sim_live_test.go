package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/fairshare"
)

// Who kills a live run finds what it had, where it said that it is: nothing has to end for its figures to be there.
func TestLiveRunThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "sim", "--live", "--strategy", "aimd,exponential-backoff", "--start", "1h", "--level", "100", "--scale", "10", "--duration", "10h", "--quiet")
	c.Env = append(os.Environ(), asProgram+"=1", "PACELINE_RUNS="+dir)
	clients, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	c.ExtraFiles = []*os.File{held}
	told, err := os.Create(filepath.Join(t.TempDir(), "told"))
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	c.Stderr = told
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	var files []string
	var run storedRun
	said := false
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if files, _ = filepath.Glob(filepath.Join(dir, "*.json")); len(files) == 0 {
			continue
		}
		line, _ := os.ReadFile(told.Name())
		said = strings.Contains(string(line), "kept: paceline-lab chart "+strings.TrimSuffix(filepath.Base(files[0]), ".json")+"\n")
		text, _ := os.ReadFile(files[0])
		if said && json.Unmarshal(text, &run) == nil && run.Live != nil && run.Live.Requests > 0 { // on a slow machine the first has none yet
			break
		}
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	// Its clients hold the other end of this pipe as long as they run, and those of aimd sleep for an hour of theirs.
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, clients)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patient):
		t.Error("its clients go on without it")
	}
	if len(files) != 1 || !said {
		t.Fatalf("after %v there are %d files, said where: %t", patient, len(files), said)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	run = storedRun{}
	if err := json.Unmarshal(text, &run); err != nil || run.Live == nil {
		t.Fatalf("%v: %s", err, text)
	}
	r := run.Live
	if r.Complete || r.Requests == 0 || r.Served+r.Limited != r.Requests || r.Seconds < 10 || len(r.Strategies) != 2 || r.Server == nil {
		t.Errorf("%+v", r)
	}
}

// How the server of --url counts is told to the clients; the one that is started here is a bucket.
func TestLiveKind(t *testing.T) {
	for _, c := range []struct {
		kind, url string
		want      fairshare.Kind
		says      string
	}{
		{"", "", fairshare.TokenBucket, ""},
		{"", "http://127.0.0.1:9999/", fairshare.UnknownKind, ""},
		{"rolling", "http://127.0.0.1:9999/", fairshare.RollingWindow, ""},
		{"fixed", "http://127.0.0.1:9999/", fairshare.FixedWindow, ""},
		{"fixed", "", 0, "--kind is of a server of --url"},
		{"hourly", "http://127.0.0.1:9999/", 0, "--kind hourly, expected auto, bucket, fixed, rolling"},
	} {
		var l simLive
		l.flags(pflag.NewFlagSet("", pflag.ContinueOnError))
		l.kind, l.url = c.kind, c.url
		fleet, err := l.fleet("fair", 1)
		switch {
		case c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("--kind %q --url %q: %v, want %q", c.kind, c.url, err, c.says)
			}
		case err != nil || fleet.Client.Params.Kind != c.want:
			t.Errorf("--kind %q --url %q: %v, %v", c.kind, c.url, fleet, err)
		}
	}
}

// A quota may be full at the start, as in a scenario.
func TestLiveLevel(t *testing.T) {
	for args, want := range map[string]int64{"--level full": 4500, "--level=full --limit 20": 20, "--level 7": 7, "": 0, "--level 4501": -1, "--level 21 --limit 20": -1} {
		var l simLive
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		l.flags(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		fleet, err := l.fleet("", 1)
		if (err != nil) != (want < 0) || err == nil && fleet.Server.Level != want {
			t.Errorf("%q: %v, want %d", args, err, want)
		}
	}
	for _, wrong := range []string{"half", "-1", "1.5", "", "FULL"} {
		var l simLive
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		l.flags(f)
		if err := f.Parse([]string{"--level", wrong}); err == nil || !strings.Contains(err.Error(), "expected a whole number, or full") {
			t.Errorf("--level %q: %v", wrong, err)
		}
	}
}
