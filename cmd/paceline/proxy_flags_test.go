package main

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func TestProxyFlagsThatAreWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	t.Setenv("PROXY_KEY", "sk-9f8Q7xZ2kLm4")
	for args, want := range map[string]string{
		"": "expected a server and what it allows", "--to https://a.test": "--limit, --preset or --rpm is required", "--limit 20/s": "--to is missing",
		"--to ftp://a.test --limit 20/s": "--to", "--to https://a.test --limit 20": "--limit \"20\"", "--to https://a.test --limit none --limit 20/s": "--limit none is beside",
		"--to https://a.test --limit auto --limit none":              "--limit none is beside",
		"--to https://a.test --limit auto --preset github --use 50%": "--use 0.5 with the limit auto, which finds its own part",
		"--to https://a.test --limit auto --preset github --ramp 1m": "--ramp 1m0s with the limit auto",
		"--to https://a.test --limit 20/s --strangers":               "--strangers a share is found out, expected the limit auto",
		"--to https://a.test --preset opnai:tier1":                   "did you mean",
		"--to https://a.test --limit 20/s --listen 0.0.0.0:1":        "--listen 0.0.0.0:1", "--to https://a.test --limit 20/s --admin 0.0.0.0:1": "--admin 0.0.0.0:1",
		"--to https://a.test --limit 20/s --key-env PROXY_KEY": "{key}", "--to https://a.test --limit 20/s --max-wait -1s": "--max-wait -1s", "--to https://a.test --limit 20/s --header sk-9f8Q7xZ2kLm4": "--header",
		"--to https://a.test --limit 20/s --admin off --listen " + taken.Addr().String(): "is in use", "--to https://a.test --limit 20/s --listen 127.0.0.1:0 --admin " + taken.Addr().String(): "is in use, maybe by another paceline proxy",
		"--to https://a.test --limit 20/s --tls-cert x":     "--tls-cert and --tls-key",
		"--to https://a.test --limit 20/s --nonce-gap 50ms": "50ms, and no header field or parameter has {nonce} in it",
	} {
		var out, errs strings.Builder
		code := execute(context.Background(), append([]string{"proxy"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
		if code == cli.ExitOK || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "sk-9f8Q7xZ2kLm4") {
			t.Errorf("paceline proxy %s: exit %d, %q, expected %q", args, code, errs.String(), want)
		}
	}
}

// --log off: no line per request, whether flags or a file say the rest; what goes wrong is still said.
func TestProxyLog(t *testing.T) {
	for form, lines := range map[string]bool{"text": true, "json": true, "off": false} {
		cmd := newProxy()
		var errs strings.Builder
		cmd.SetErr(&errs)
		f := proxyFlags{log: form, logLevel: "warn"}
		log, access, err := f.logs(cmd)
		if err != nil || !log.Enabled(t.Context(), slog.LevelWarn) || log.Enabled(t.Context(), slog.LevelInfo) || access.Enabled(t.Context(), slog.LevelInfo) != lines {
			t.Errorf("--log %s: %v, a line per request: %v", form, err, access.Enabled(t.Context(), slog.LevelInfo))
		}
		f.teller(cmd)("it begins\nnow")
		log.With("a", time.Minute).Warn("paused", "for", 1500*time.Millisecond, slog.Group("b", "c", time.Microsecond))
		want := "it begins\nnow\n|level=WARN msg=paused a_ms=60000 for_ms=1500 b.c_ms=0.001\n"
		if form == "json" {
			want = `"msg":"it begins\nnow"}` + "\n|" + `"msg":"paused","a_ms":60000,"for_ms":1500,"b":{"c_ms":0.001}}` + "\n"
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(errs.String(), part) {
				t.Errorf("--log %s writes\n%swant\n%s", form, errs.String(), part)
			}
		}
	}
}

// The flags of nonces are those of run, and hold for the upstream.
func TestProxyNonceFlags(t *testing.T) {
	t.Setenv("PROXY_KEY", "sk-9f8Q7xZ2kLm4")
	f := proxyFlags{}
	cmd := &cobra.Command{}
	f.add(cmd)
	err := cmd.ParseFlags(strings.Fields("--to https://a.test --limit 20/s --key-env PROXY_KEY --query k={key} --query n={nonce} --nonce-gap 50ms --nonce-unit 1us"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := f.upstream(cmd)
	if err != nil || u.NonceGap != 50*time.Millisecond || u.NonceUnit != time.Microsecond || !u.Numbers() {
		t.Errorf("%v: a gap of %v, a unit of %v", err, u.NonceGap, u.NonceUnit)
	}
}
