package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/fairshare"
)

// The clients of a live run that is killed end, too.
func TestLiveRunThatIsKilled(t *testing.T) {
	t.Parallel()
	c := another(t, "sim", "--live", "--strategy", "aimd,exponential-backoff", "--start", "1h", "--level", "100", "--scale", "10", "--duration", "10h")
	clients, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	c.ExtraFiles = []*os.File{held}
	told, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	late := time.AfterFunc(patient, func() { _ = c.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(told)
	for lines.Scan() && !strings.Contains(lines.Text(), "status=") {
	}
	if !strings.Contains(lines.Text(), "status=") {
		t.Errorf("no request of it is answered: %q", lines.Text())
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
