package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Three saved responses, and all that is said of them.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ name, in, args, want string }{
		{"served", `HTTP/2 200
date: Thu, 15 Jan 2026 12:00:00 GMT
x-ratelimit-limit-requests: 500
x-ratelimit-limit-tokens: 30000
x-ratelimit-remaining-requests: 499
x-ratelimit-remaining-tokens: 29996
x-ratelimit-reset-requests: 120ms
x-ratelimit-reset-tokens: 8ms

{"id": 1}
`, "", `200 OK, read as openai at 2026-01-15 12:00:00 UTC

  500 requests per minute (bucket, per model, window inferred), 499 left, full again in 120 ms
  30,000 tokens per minute (bucket, per model, window inferred), 29,996 left, full again in 8 ms

Come back at once.
`},
		{"refused", `HTTP/1.1 429 Too Many Requests
Retry-After: Thu, 15 Jan 2026 12:01:40 GMT
RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400
RateLimit: "burst";r=0;t=25, "daily";r=900;t=36400
X-Unread: 1

`, "--at 2026-01-15T12:00:00.25Z", `429 Too Many Requests, read as ietf at 2026-01-15 12:00:00 UTC
Refused: rate limited

  burst: 100 requests per minute, 0 left, more in 25 s
  daily: 1,000 requests per day, 900 left, more in 10 h 7 min

Come back in 1 min 39.8 s (2026-01-15 12:01:40 UTC).

This server is not in the table, and is read as any server is.
If it is one that paceline explain --providers lists: --provider NAME.
To add it: a row in package provider, in the file of its kind, and an answer of its in
  provider/testdata; or a provider.Dialect of your own, as transport.Config.Provider.
`},
		{"a ban in words", "HTTP/1.1 403 Forbidden\nContent-Type: application/json\n\n{\"error_msg\":\"api_key is banned\"}\n", "--at 2026-01-15T12:00:00Z", `403 Forbidden, read as generic at 2026-01-15 12:00:00 UTC
It says: api_key is banned

  The response says nothing of limits.

It is a ban, by its words: stop using this key or address, since more requests may make it longer.
  paceline run takes such a key of --key-env out of use.
`},
		{"nothing said", "HTTP/1.0 200 OK\n\n", "--at 2026-01-15T12:00:00Z --provider stripe", `200 OK, read as stripe at 2026-01-15 12:00:00 UTC

  The response says nothing of limits.
  Stripe documents its limits, and does not send them: https://docs.stripe.com/rate-limits (as of
    2026)
  From the table, and not from the response (an account may have others):
    stripe (live mode, per account; published 2026): 100 requests per second (per key)
    stripe:sandbox (per account; published 2026): 25 requests per second (per key)

Come back at once.
`},
		{"odd", "HTTP/1.1 429\nRetry-After: -5\nX-RateLimit-Limit: 0\nX-RateLimit-Reset: 1768478430\nX-Foo-Limit: 12\nX-Foo-Rate: a\x1bb\n", "--at 2026-01-15T12:00:00Z --provider generic", `429 Too Many Requests, read as generic at 2026-01-15 12:00:00 UTC
Refused: rate limited

  requests: more in 30 s

Come back in 30 s (2026-01-15 12:00:30 UTC).
Odd: Retry-After: "-5" is negative; ignored.
Odd: X-RateLimit-Limit: 0 is no limit; ignored.
Not read: X-Foo-Limit: 12
Not read: X-Foo-Rate: a
`},
	} {
		code, stdout, stderr := paceline(c.in, append([]string{"explain"}, strings.Fields(c.args)...)...)
		if code != cli.ExitOK || stdout != c.want || stderr != "" {
			t.Errorf("%s: exit %d, stderr %q\ngot\n%s\nwant\n%s", c.name, code, stderr, stdout, c.want)
		}
	}
}

// The forms in which curl prints the same response.
func TestExplainForms(t *testing.T) {
	const fields = "Retry-After: 7\nX-GitHub-Media-Type: github.v3"
	const body = `{"message": "You have exceeded a secondary rate limit."}`
	for name, in := range map[string]string{
		"LF":            "HTTP/1.1 403 Forbidden\n" + fields + "\n\n" + body,
		"CRLF":          strings.ReplaceAll("HTTP/1.1 403 Forbidden\n"+fields+"\n\n", "\n", "\r\n") + body,
		"HTTP/2":        "HTTP/2 403 \n" + strings.ToLower(fields) + "\n\n" + body,
		"-D -":          "HTTP/1.1 403 Forbidden\n" + fields + "\n\n",
		"cut off":       "HTTP/1.1 403 Forbidden\n" + fields,
		"-v":            "< HTTP/1.1 403 Forbidden\n< " + strings.ReplaceAll(fields, "\n", "\n< ") + "\n< \n" + body,
		"-v, all of it": "* Connected to h\n> GET / HTTP/1.1\n> \n{ [5 bytes data]\n< HTTP/1.1 403 Forbidden\n< " + strings.ReplaceAll(fields, "\n", "\n< ") + "\n< \n" + body,
		"redirect":      "HTTP/1.1 301 Moved\nRetry-After: 99\n\nHTTP/1.1 403 Forbidden\n" + fields + "\n\n" + body,
		"100 Continue":  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 Forbidden\r\n" + fields + "\n\n" + body,
		"comments":      "\n# saved by hand\nHTTP/1.1 403 Forbidden\n" + fields + "\n\n" + body,
		"folded":        "HTTP/1.1 403 Forbidden\n" + fields + ";\n format=json\n\n" + body,
		"HTTP in body":  "HTTP/1.1 403 Forbidden\n" + fields + "\n\n{}\n\nHTTP/1.1 200 OK\nRetry-After: 1\n",
		"no reason":     "HTTP/1.1 403\n" + fields + "\n\n",
		"spaced status": "HTTP/1.1  403  Forbidden\n" + fields + "\n\n",
	} {
		code, stdout, stderr := paceline(in, "explain")
		if code != cli.ExitOK || !strings.HasPrefix(stdout, "403 Forbidden, read as github") || !strings.Contains(stdout, "Come back in 7 s") {
			t.Errorf("%s: exit %d %s\n%s", name, code, stderr, stdout)
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	file := write(t, "saved.txt", "HTTP/1.1 200 OK\nX: y\nno field\n")
	headers := write(t, "headers.txt", "Authorization: Bearer s3cret\n\nthis is s3cret\n")
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		{"", nil, cli.ExitConfig, "stdin, line 1: nothing there"},
		{"\n\n# only this\n", nil, cli.ExitConfig, "nothing there"},
		{"hello\n", nil, cli.ExitConfig, `stdin, line 1: "hello" is no header field`},
		{"Traceback (most recent call last):\n", nil, cli.ExitConfig, "is of an error's trace, which is not read; want the answer behind it: as curl -i prints it"},
		{"{'status': 429}\n", nil, cli.ExitConfig, "is of an object as a program prints it, which is not read; want it as JSON (JSON.stringify, json.dumps"},
		{"HTTP/1.1 OK\n", nil, cli.ExitConfig, "has no status code"},
		{"HTTP/1.1 99\n", nil, cli.ExitConfig, "has no status code"},
		{"", []string{file}, cli.ExitConfig, "saved.txt, line 3: \"no field\" is no header field"},
		{"", []string{filepath.Join(t.TempDir(), "gone")}, cli.ExitConfig, "gone"},
		{"", []string{"a", "b"}, cli.ExitUsage, "accepts at most 1 arg"},
		{"", []string{"ftp://h/"}, cli.ExitUsage, "no http or https URL"},
		{"", []string{"http://"}, cli.ExitUsage, "no http or https URL"},
		{"", []string{"-H", "A: b"}, cli.ExitUsage, "-H is for a URL"},
		{"", []string{"http://127.0.0.1:1/", "-H", "A b: s3cret"}, cli.ExitUsage, "-H, line 1: want 'Name: value'"},
		{"", []string{"http://127.0.0.1:1/", "-H", "@" + headers}, cli.ExitUsage, "headers.txt, line 3: want 'Name: value'"},
		{"", []string{"http://127.0.0.1:1/", "-H", "@" + headers + ".gone"}, cli.ExitUsage, "headers.txt.gone"},
		{"", []string{"http://127.0.0.1:1/"}, cli.ExitFailure, "connect"},
		{"", []string{"--provider", "nix"}, cli.ExitUsage, `--provider "nix" is not in the table. paceline explain --providers lists it`},
		{"", []string{"--provider", "Gihtub"}, cli.ExitUsage, "did you mean github? paceline explain --providers lists it; whoever is not in it is read without --provider"},
		{"", []string{"--provider", "a"}, cli.ExitUsage, `--provider "a" is not in the table. paceline`},
		{"HTTP/1.1 200\n", []string{"--provider", "cme"}, cli.ExitUsage, "what it answers is no HTTP"},
		{"", []string{"--provider", "cme", "-"}, cli.ExitUsage, "what it answers is no HTTP"},
		{"", []string{"--provider", "github", "-"}, cli.ExitConfig, "stdin, line 1: nothing there"},
		{"", []string{"--preset", "nix"}, cli.ExitUsage, `--preset "nix": no limits are published by that name; paceline explain --providers lists them`},
		{"", []string{"--preset", "openai:tier9"}, cli.ExitUsage, "did you mean openai:tier1 or openai:tier2? paceline"},
		{"", []string{"--providers", "x"}, cli.ExitUsage, "--providers lists the table"},
		{"", []string{"--preset", "heroku", "x"}, cli.ExitUsage, "--preset needs no response"},
		{"", []string{"--at", "noon"}, cli.ExitUsage, "want an instant like"},
		{"", []string{"--timeout", "0s"}, cli.ExitUsage, "must be positive"},
		{"", []string{"-o", "xml"}, cli.ExitUsage, `--output "xml"`},
	} {
		code, stdout, stderr := paceline(c.stdin, append([]string{"explain"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" || strings.Contains(stderr, "s3cret") {
			t.Errorf("%v: exit %d, want %d with %q:\n%s%s", c.args, code, c.code, c.says, stderr, stdout)
		}
	}
}

func TestExplainURL(t *testing.T) {
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.Header().Set("RateLimit", `"default";r=0;t=30`)
		w.Header().Set("RateLimit-Policy", `"default";q=1200;w=300`)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}))
	defer server.Close()
	file := write(t, "auth.txt", "Authorization: Bearer s3cret\n")
	code, stdout, stderr := paceline("", "explain", server.URL+"/x", "-H", "@"+file, "-H", "X-One: 1", "-o", "json")
	if code != cli.ExitOK || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if got.Get("Authorization") != "Bearer s3cret" || got.Get("X-One") != "1" {
		t.Errorf("sent %v", got)
	}
	var v struct {
		From            string
		Status          int
		At              time.Time
		ComeBack        time.Time `json:"come_back"`
		ComeBackSeconds float64   `json:"come_back_seconds"`
		Advice          string
		Observation     struct {
			Dialect  string
			Refusal  string
			Policies []struct {
				Limit  int64
				Window float64 `json:"window_seconds"`
			}
			Limits []struct {
				Remaining *int64
				Reset     time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	o := v.Observation
	if v.From != server.URL+"/x" || v.Status != 429 || o.Dialect != "ietf" || o.Refusal != "rate limited" || v.ComeBackSeconds != 30 || v.ComeBack.Sub(v.At) != 30*time.Second ||
		len(o.Policies) != 1 || o.Policies[0].Limit != 1200 || o.Policies[0].Window != 300 || len(o.Limits) != 1 || *o.Limits[0].Remaining != 0 || !o.Limits[0].Reset.Equal(v.ComeBack) {
		t.Errorf("%+v", v)
	}
	if strings.Contains(stdout, "s3cret") {
		t.Error("a secret is printed")
	}
	code, stdout, _ = paceline("", "explain", server.URL+"/moved")
	if code != cli.ExitOK || !strings.HasPrefix(stdout, "302 Found") {
		t.Errorf("exit %d, a redirect was followed:\n%s", code, stdout)
	}
}

func TestExplainPreset(t *testing.T) {
	code, stdout, _ := paceline("", "explain", "--preset", "heroku")
	const want = "heroku: Platform API, per account, as published in 2026\nhttps://devcenter.heroku.com/articles/platform-api-reference#rate-limits\n\n  4,500 requests per hour (bucket, per key)\n"
	if code != cli.ExitOK || stdout != want {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	code, stdout, _ = paceline("", "explain", "--preset", "kraken:pro", "-o", "json")
	if code != cli.ExitOK || !strings.Contains(stdout, `"as_of": "2026-11"`) || !strings.Contains(stdout, `"burst": 20`) {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}
