package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/browser"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// pageOf starts a run and returns the address of its page, the rest of what it says, and how it ends.
func pageOf(t *testing.T, args ...string) (url string, rest *bufio.Reader, wait func() error) {
	t.Helper()
	c := program(t, append([]string{"run", "--page"}, args...)...)
	pipe, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	rest = bufio.NewReader(pipe)
	for {
		line, err := rest.ReadString('\n')
		if err != nil {
			t.Fatalf("it ends without saying where its page is: %q", line)
		}
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "page: "); ok {
			return url, rest, c.Wait
		}
	}
}

// A run that is held up by a limit is looked at: the page has what the run knows, and goes when it is over.
func TestRunPage(t *testing.T) {
	t.Parallel()
	hold, released := make(chan struct{}), false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	release := func() {
		if !released {
			released = true
			close(hold)
		}
	}
	defer server.Close()
	defer release()
	url, rest, wait := pageOf(t, "0", "--limit", "20/h", "--key-env", "PAGE_KEY", "--header", "Authorization: Bearer {key}", write(t, "in.jsonl", numbered(15, server.URL)))
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("the page is at %s", url)
	}
	resp, err := http.Get(url + "snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	var f struct {
		Sources []struct {
			Waiting  int
			InFlight int `json:"in_flight"`
			Sent     int
			Limits   []struct{ Allowed int }
			Keys     []struct{ Key, State string }
		}
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Sources) != 1 || len(f.Sources[0].Limits) != 1 || f.Sources[0].Limits[0].Allowed != 20 || len(f.Sources[0].Keys) != 1 || f.Sources[0].Keys[0].Key != "PAGE_KEY" {
		t.Errorf("the page has %s", data)
	}
	if strings.Contains(string(data), "a-secret") {
		t.Errorf("the page has the key: %s", data)
	}
	t.Run("in a browser", func(t *testing.T) {
		need.NotShort(t, "package dashboard has the page")
		b := browser.Open(t, 1000, 1000)
		b.Go(url)
		b.Until(`document.getElementById("tile-flight").textContent === "15" && document.querySelector("#limits-table td").textContent.startsWith("15 of 20")`)
		var title string
		b.Eval(`document.getElementById("title").textContent`, &title)
		if !strings.HasPrefix(title, "paceline run ") || !strings.HasSuffix(title, "in.jsonl") {
			t.Errorf("the page is called %q", title)
		}
		for _, c := range b.Complaints() {
			t.Errorf("the browser says: %s", c)
		}
	})
	release()
	said, _ := io.ReadAll(rest)
	if err := wait(); err != nil || !strings.Contains(string(said), "15 done") {
		t.Errorf("the run ends with %v: %s", err, said)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the page is still there")
	}
}

// A page that cannot be served is known before anything is sent.
func TestRunPageRefuses(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	in := write(t, "in.jsonl", numbered(1, server.URL))
	for addr, want := range map[string]struct {
		code int
		text string
	}{
		"nonsense": {cli.ExitUsage, `--page "nonsense", expected HOST:PORT such as 127.0.0.1:7879, or a PORT`}, "99999": {cli.ExitUsage, "expected HOST:PORT"}, "1:2:3": {cli.ExitUsage, "expected HOST:PORT"},
		"localhost:": {cli.ExitUsage, "expected HOST:PORT"}, "-1": {cli.ExitUsage, "expected HOST:PORT"}, "http://localhost:80": {cli.ExitUsage, "expected HOST:PORT"},
		port: {cli.ExitConfig, "is in use"}, ":" + port: {cli.ExitConfig, "--page 0"}, "127.0.0.1:" + port: {cli.ExitConfig, "lsof -i :" + port}, "192.0.2.1:80": {cli.ExitConfig, "--page: "},
	} {
		code, _, stderr := paceline("", "run", "--limit", "none", "--page="+addr, in)
		if code != want.code || !strings.Contains(stderr, want.text) {
			t.Errorf("--page %s: exit %d, %s", addr, code, stderr)
		}
	}
	if asked {
		t.Error("something was sent")
	}
	if code, _, stderr := paceline("", "run", "--limit", "none", "--page", port, "--dry-run", in); code != 0 {
		t.Errorf("with --dry-run: exit %d, %s", code, stderr)
	}
}
