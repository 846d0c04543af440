//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Each flag that takes the name of a variable is given a key in its place: the error has the flag and says what was
// expected, and never the key.
func TestKeyForNameIsNotShown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	file := write(t, "urls.txt", server.URL+"\n")
	token := "--limit 5/s --header A:{token} --oauth-token-url " + server.URL
	proxied := "--limit 5/s --to " + server.URL
	lines := map[string]string{ // KEY is where the key stands
		"run --key-env":                 "--limit 5/s --header A:{key} --key-env KEY " + file,
		"run --oauth-client-id-env":     token + " --oauth-client-id-env KEY --oauth-client-secret-env HOME " + file,
		"run --oauth-client-secret-env": token + " --oauth-client-id-env HOME --oauth-client-secret-env KEY " + file,
		"proxy --key-env":               proxied + " --header A:{key} --key-env KEY",
		"proxy --client-key-env":        proxied + " --client-key-env KEY",
		"proxy --metrics-token-env":     proxied + " --metrics-token-env KEY",
		"exec --key-env":                proxied + " --header A:{key} --key-env KEY -- true",
		"daemon --key-env":              "--limit orders=5/s --state off --listen 127.0.0.1:0 --key-env KEY",
		"permit --credential-env":       "orders --credential-env KEY -- true",
		"work --key-env":                "--backlog sqlite:" + t.TempDir() + "/j.db --limit 5/s --header A:{key} --key-env KEY",
	}
	cli.Each(newProgramRoot(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimPrefix(c.CommandPath(), "paceline ") + " --" + f.Name
			if strings.HasSuffix(f.Name, "-env") && !f.Hidden && lines[name] == "" {
				t.Errorf("%s has no line here", name)
			}
		})
	})
	for name, line := range lines {
		verb, flag, _ := strings.Cut(name, " ")
		for _, key := range []string{"sk-abc", "sk-proj-h8Zl2Vq0TnXw5KbYcR7m", "AKIAIOSFODNN7EXAMPLE"} {
			args := append([]string{verb}, strings.Fields(strings.Replace(line, "KEY", key, 1))...)
			code, out, errs := paceline("", args...)
			if code == 0 || strings.Contains(out+errs, key) || !strings.Contains(errs, flag+": ") ||
				!strings.Contains(errs, "export NAME=…; "+flag+" NAME") {
				t.Errorf("%s: %d\n%s%s", strings.Join(args, " "), code, out, errs)
			}
		}
	}
}
