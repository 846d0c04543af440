package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// aSecret has what every kind of escape changes.
const aSecret = `s3cr/et+v4lue&"X9`

// forms are the ways in which software may write it.
var forms = []string{
	aSecret, url.QueryEscape(aSecret), url.PathEscape(aSecret), html.EscapeString(aSecret), strings.ReplaceAll(aSecret, "/", `\/`), "s3cr", "v4lue",
	base64.StdEncoding.EncodeToString([]byte(aSecret))[:16], base64.StdEncoding.EncodeToString([]byte("me:" + aSecret))[4:20],
}

func isShown(t *testing.T, where, text string) {
	t.Helper()
	for _, f := range forms {
		if i := strings.Index(text, f); i >= 0 {
			t.Errorf("%s has the key's value as %s: %s", where, f, text[max(0, i-80):min(len(text), i+80)])
		}
	}
}

// host is a server that keeps every request as it came.
type host struct {
	*httptest.Server
	url string

	mu   sync.Mutex
	seen map[string]string // by path
}

// newHost serves on an address of this machine, which may be called by another name.
func newHost(t *testing.T, address, name string, serve http.HandlerFunc) *host {
	t.Helper()
	h := &host{seen: map[string]string{}}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, _ := httputil.DumpRequest(q, true)
		h.mu.Lock()
		h.seen[q.URL.Path] += string(text)
		h.mu.Unlock()
		serve(w, q)
	}))
	if address != "" {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Skip(err)
		}
		h.Listener.Close()
		h.Listener = ln
	}
	h.Start()
	t.Cleanup(h.Close)
	_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
	h.url = "http://" + net.JoinHostPort(name, port)
	return h
}

func (h *host) saw(path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[path]
}

// A redirect to another host takes no secret of the user along: no template, no field or parameter
// with a key or a possible key, no body with one. The answer of that host says nothing about the
// key.
func TestRunRedirectedAbroad(t *testing.T) {
	t.Parallel()
	var abroad *host
	home := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		var status int
		if n, _ := fmt.Sscanf(q.URL.Path, "/%d", &status); n == 0 {
			return
		}
		query, _, _ := strings.Cut(q.URL.RawQuery, "&nonce=")
		to := abroad.url + strings.Replace(q.URL.Path, "/", "/to/", 1) + "?" + query + "&basic=" + base64.StdEncoding.EncodeToString([]byte("me:"+aSecret))
		if strings.HasSuffix(q.URL.Path, "/path") {
			to = abroad.url + "/to/" + url.PathEscape(aSecret)
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	abroad = newHost(t, "", "localhost", func(w http.ResponseWriter, q *http.Request) {
		switch {
		case strings.HasSuffix(q.URL.Path, "/unknown"):
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(q.URL.Path, "/forbidden"):
			w.WriteHeader(http.StatusForbidden)
		case strings.HasSuffix(q.URL.Path, "/slowly"):
			w.Header().Set("Retry-After", "3600")
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.HasSuffix(q.URL.Path, "/home"):
			http.Redirect(w, q, home.url+"/end", http.StatusFound)
		}
	})
	headers := `{"Authorization":"Bearer mine-a","Proxy-Authorization":"mine-b","Cookie":"mine-c","X-Api-Key":"mine-d","Private-Token":"mine-e","X-Basic":"Basic ` +
		base64.StdEncoding.EncodeToString([]byte("me:"+aSecret)) + `","X-Plain":"` + strings.ReplaceAll(aSecret, `"`, `\"`) + `","X-Harmless":"yes","Accept":"text/plain"}`
	var in strings.Builder
	for _, path := range []string{"301/a", "302/b", "303/c", "307/d", "308/e", "302/unknown", "302/forbidden", "302/slowly", "302/home", "302/path"} {
		fmt.Fprintf(&in, `{"id":%q,"method":"PUT","url":"%s/%s?x=1&k=%s","headers":%s,"body":"harmless"}`+"\n", path, home.url, path, url.QueryEscape(aSecret), headers)
	}
	for _, path := range []string{"307/body", "302/body"} {
		fmt.Fprintf(&in, `{"id":%q,"method":"POST","url":"%s/%s","body":{"key":%q}}`+"\n", path, home.url, path, aSecret)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	code, _, stderr := paceline(in.String(), "run", "--limit", "none", "--key-env", "PL_SECRET", "--header", "X-Key: {key}", "--header", "X-Id: mine-f {id}", "--query", "api_key={key}",
		"--query", "nonce={nonce}", "--redirects", "3", "--attempts", "2", "--backoff-base", "1ms", "--out", out, "-")
	if code != cli.ExitSomeFailed {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	all := map[string]format.Result{}
	for _, r := range append(results(t, out), results(t, output.DeadBeside(out))...) {
		all[r.ID] = r
	}
	for id, want := range map[string]string{
		"301/a": "done", "302/b": "done", "303/c": "done", "307/d": "done", "308/e": "done", "302/home": "done", "302/body": "done",
		"302/unknown": "dead", "302/forbidden": "dead", "302/slowly": "dead", "307/body": "dead", "302/path": "dead",
	} {
		if all[id].State != want {
			t.Errorf("%s is %s, want %s: %s", id, all[id].State, want, all[id].Error)
		}
	}
	if n := all["302/unknown"].Attempts; n != 1 {
		t.Errorf("what another host refuses for good was tried %d times", n)
	}
	for id, want := range map[string]string{
		"307/body": "answered 307 Temporary Redirect: not followed to " + strings.TrimPrefix(abroad.url, "http://") + ": the body has the value of PL_SECRET (--key-host)",
		"302/path": "answered 302 Found: not followed to " + strings.TrimPrefix(abroad.url, "http://") + ": its URL has the value of PL_SECRET (--key-host)",
	} {
		if all[id].Error != want {
			t.Errorf("%s: %s, want %s", id, all[id].Error, want)
		}
	}
	abroad.mu.Lock()
	for path, text := range abroad.seen {
		isShown(t, "the other host at "+path, text)
		if strings.Contains(text, "mine-") || strings.Contains(text, "nonce") || !strings.Contains(path, "body") && (!strings.Contains(text, "X-Harmless: yes") || !strings.Contains(text, "?x=1")) {
			t.Errorf("the other host got %s", text)
		}
	}
	abroad.mu.Unlock()
	if d, a := abroad.saw("/to/307/d"), abroad.saw("/to/303/c"); !strings.Contains(d, "PUT ") || !strings.Contains(d, "harmless") || !strings.Contains(a, "GET ") {
		t.Errorf("the method and the body of what is harmless go along: %s%s", d, a)
	}
	if back := home.saw("/end"); back == "" || strings.Contains(back, "mine-") || strings.Contains(back, "s3cr") {
		t.Errorf("where another host led back to: %s", back)
	}
	if text := stderr; strings.Contains(text, "banned") || strings.Contains(text, "stay away") {
		t.Errorf("what another host answers is about the key: %s", text)
	}
	// The key is as good as before.
	code, _, stderr = paceline(fmt.Sprintf(`{"url":"%s/end"}`, home.url), "run", "--limit", "none", "--key-env", "PL_SECRET", "--header", "X-Key: {key}", "--out", out, "--progress", "off", "-")
	if code != cli.ExitOK || strings.Contains(stderr, "stay away") || !strings.Contains(stderr, "1 done") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A prompt that another host refuses is not given back for the key to wait: it would go there again
// at once, for ever.
func TestRunBatchRefusedAbroad(t *testing.T) {
	abroad := newHost(t, "", "localhost", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	home := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, abroad.url+q.URL.Path, http.StatusTemporaryRedirect)
	})
	in := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + llmBody + `}`
	code, _, stderr := paceline(in, "run", "--limit", "none", "--base-url", home.url, "--key-env", "PL_SECRET", "--redirects", "1", "--attempts", "2", "--backoff-base", "1ms",
		"--out", filepath.Join(t.TempDir(), "out.jsonl"), "-")
	if got := abroad.saw("/v1/chat/completions"); code != cli.ExitSomeFailed || strings.Count(got, "POST ") != 2 || strings.Contains(stderr, "stay away") {
		t.Errorf("exit code %d: %s; the other host got %.1000s", code, stderr, got)
	}
	isShown(t, "the other host", abroad.saw("/v1/chat/completions"))
}

// A key goes to the hosts that --key-host names, else to that of the first line. A line that would
// take it elsewhere is an error.
func TestRunKeyHost(t *testing.T) {
	t.Parallel()
	var second *host
	first := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/go" {
			http.Redirect(w, q, second.url+"/there", http.StatusTemporaryRedirect)
		}
	})
	second = newHost(t, "", "localhost", func(http.ResponseWriter, *http.Request) {})
	lines := fmt.Sprintf(`{"id":"a","url":"%s/a"}
{"id":"b","url":"%s/b"}
`, first.url, second.url)
	in := write(t, "in.jsonl", lines)
	name := func(h *host) string { return strings.TrimPrefix(h.url, "http://") }
	want := fmt.Sprintf("%s:2:17: a key is not sent to %s, only to %s: --key-host names more", in, second.url, first.url)
	try := func(stdin string, args ...string) (int, string) {
		code, _, stderr := paceline(stdin, append([]string{"run", "--limit", "none", "--header", "X-Key: {key}", "--progress", "off"}, args...)...)
		isShown(t, "standard error", stderr)
		return code, stderr
	}
	for _, key := range []string{"PL_SECRET", "PL_PLACEHOLDER"} {
		if code, stderr := try("", "--key-env", key, in); code != cli.ExitConfig || !strings.Contains(stderr, want) || first.saw("/a") != "" {
			t.Errorf("%s: exit code %d: %s, want %s", key, code, stderr, want)
		}
	}
	if code, stderr := try(lines, "--key-env", "PL_SECRET", "-"); code != cli.ExitSomeFailed || !strings.Contains(stderr, "2:17: a key is not sent to") || first.saw("/a") == "" || second.saw("/b") != "" {
		t.Errorf("a stream: exit code %d: %s", code, stderr)
	}
	if code, stderr := try("", "--key-env", "PL_SECRET", "--key-host", name(first), "--key-host", second.url, in); code != cli.ExitOK || !strings.Contains(second.saw("/b"), "X-Key: "+aSecret) {
		t.Errorf("both named: exit code %d: %s", code, stderr)
	}
	// A redirect to a host that is named takes the key along.
	goes := write(t, "go.jsonl", fmt.Sprintf(`{"url":"%s/go"}`, first.url))
	if code, stderr := try("", "--key-env", "PL_SECRET", "--key-host", name(first)+","+name(second), "--redirects", "1", goes); code != cli.ExitOK || !strings.Contains(second.saw("/there"), "X-Key: "+aSecret) {
		t.Errorf("redirected to a host that is named: exit code %d: %s", code, stderr)
	}
	// Without a key in a template there is nothing to keep.
	if code, _, stderr := paceline("", "run", "--limit", "none", in); code != cli.ExitOK {
		t.Errorf("without keys: exit code %d: %s", code, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--key-host", "http://h/v1"}, cli.ExitUsage, `--key-host "http://h/v1", expected HOST, HOST:PORT, or https:// and one of them`},
		{[]string{"--key-host", "api.example.com"}, cli.ExitConfig, in + ":1:17: a key is not sent to " + first.url + ", only to api.example.com: --key-host names more"},
		{[]string{"--key-host", "api.example.com", "--format", "openai-batch"}, cli.ExitConfig, "a key is not sent to https://api.openai.com, only to api.example.com"},
	} {
		if code, stderr := try("", append(append([]string{"--key-env", "PL_SECRET"}, c.args...), in)...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d: %s, want %d: %s", c.args, code, stderr, c.code, c.want)
		}
	}
}

// Answers are stored as they came, but for a key's value, whatever form it is in; and then the
// result says so. A placeholder is no key.
func TestRunAnswersAsTheyCame(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("me:" + aSecret))
	answers := map[string]string{
		"json":  `{"error":"no such key: s3cr\/et\u002bv4lue\u0026\"X9"}`,
		"url":   "/?k=" + url.QueryEscape(aSecret) + "&l=" + url.PathEscape(aSecret),
		"html":  "<p>" + html.EscapeString(aSecret) + "</p>",
		"basic": "Authorization: Basic " + basic + "\r\n",
		"cut":   strings.Repeat("x", 190) + aSecret + strings.Repeat("y", 100),
		"plain": "Run `ollama pull`, it is \x00 not \xff UTF-8; no Basic bWU6 and no s3cr/et+v4lue",
	}
	srv := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-RateLimit-Key", q.Header.Get("X-Key"))
		io.WriteString(w, answers[q.URL.Path[1:]])
	})
	var in strings.Builder
	for name := range answers {
		fmt.Fprintf(&in, `{"id":%q,"url":"%s/%s"}`+"\n", name, srv.url, name)
	}
	try := func(env string) (map[string]format.Result, string, string) {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		code, _, stderr := paceline("", "run", "--limit", "none", "--key-env", env, "--header", "X-Key: {key}", "--max-response", "200", "--out", out, write(t, "in.jsonl", in.String()))
		if code != cli.ExitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		all := map[string]format.Result{}
		for _, r := range results(t, out) {
			all[r.ID] = r
		}
		text, _ := os.ReadFile(out)
		return all, string(text), stderr
	}
	all, text, stderr := try("PL_SECRET")
	isShown(t, "the results", strings.ReplaceAll(text, "no s3cr/et+v4lue", ""))
	if strings.Contains(stderr, "looked for") {
		t.Error(stderr)
	}
	for name, want := range map[string]struct {
		body   string
		hidden int
	}{
		"json":  {`{"error":"no such key: [PL_SECRET]"}`, 2},
		"url":   {"/?k=[PL_SECRET]&l=[PL_SECRET]", 3},
		"html":  {"<p>[PL_SECRET]</p>", 2},
		"basic": {"Authorization: Basic bWU6[PL_SECRET]=\r\n", 2},
		"cut":   {strings.Repeat("x", 190) + "[PL_SECRET]", 2},
		"plain": {answers["plain"], 1},
	} {
		r := all[name]
		body := string(r.BodyBase64)
		if r.Body != nil {
			body = *r.Body
		}
		if body != want.body || r.Hidden != want.hidden || r.Headers["x-ratelimit-key"] != "[PL_SECRET]" {
			t.Errorf("%s: %d hidden in %q and %v, want %d in %q", name, r.Hidden, body, r.Headers, want.hidden, want.body)
		}
	}
	all, _, stderr = try("PL_PLACEHOLDER")
	for name, r := range all {
		body := string(r.BodyBase64)
		if r.Body != nil {
			body = *r.Body
		}
		if want := answers[name][:min(len(answers[name]), 200)]; body != want || r.Hidden != 0 || r.Headers["x-ratelimit-key"] != "ollama" {
			t.Errorf("%s with a placeholder: %d hidden in %q and %v, want %q", name, r.Hidden, body, r.Headers, want)
		}
	}
	if strings.Contains(stderr, "if an answer repeats the value") { // it is plainly none, and the server is on this machine
		t.Errorf("said about the placeholder: %s", stderr)
	}
}

// Messages of net/http appear as the program's own: masked, harmless to a terminal, once for each
// kind.
func TestRunSpeaksForHTTP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokBy the way, %s is wrong \x1b[31m", aSecret)
					io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	was := log.Writer()
	code, _, stderr := paceline(numbered(5, "http://"+ln.Addr().String()+"/"), "run", "--limit", "none", "--concurrency", "1", "--key-env", "PL_SECRET", "--header", "X-Key: {key}", "-")
	if code != cli.ExitOK || strings.Count(stderr, "net/http: Unsolicited response received on idle HTTP channel") != 1 || strings.Contains(stderr, "2026/") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	isShown(t, "standard error", stderr)
	if log.Writer() != was {
		t.Error("the log is not given back")
	}
}

// Control characters from servers, inputs and file names are shown, not obeyed: on standard error,
// and in results on standard output. Files keep the text as it came.
func TestEscapesAreShown(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;mine\x07\u009b31m\u202etxt"
	obeyed := func(where, text string) {
		t.Helper()
		if strings.ContainsAny(text, "\x1b\x07\u009b\u202e") || !utf8.ValidString(text) {
			t.Errorf("%s obeys: %q", where, text)
		}
	}
	quoted, _ := json.Marshal(evil)
	srv := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		if status := map[string]int{"/ban": http.StatusUnauthorized, "/v1/chat/completions": http.StatusBadRequest}[q.URL.Path]; status != 0 {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"%s no such key"}}`, quoted[1:len(quoted)-1])
			return
		}
		io.WriteString(w, evil)
	})
	in := fmt.Sprintf(`{"id":%s,"url":"%s/"}`+"\n", quoted, srv.url)
	code, stdout, stderr := paceline(in, "run", "--limit", "none", "--log-level", "debug", "-")
	obeyed("standard error", stderr)
	obeyed("standard output", stdout)
	var r format.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != cli.ExitOK || err != nil || r.ID != evil || *r.Body != evil {
		t.Errorf("exit code %d, %v, %q", code, err, stdout)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	paceline(in, "run", "--limit", "none", "--out", out, "-")
	if text, _ := os.ReadFile(out); !strings.Contains(string(text), "\u009b31m\u202etxt") {
		t.Errorf("the file has %q", text)
	}
	saved := write(t, "a\u009b\u202e.txt", "HTTP/1.1 200 OK\n\n")
	for _, c := range []struct {
		in   string
		args []string
		want string
	}{
		{fmt.Sprintf(`{"url":"%s/ban"}`, srv.url), []string{"run", "--limit", "none", "--key-env", "PL_SECRET", "--header", "X-Key: {key}", "-"}, `answered 401 Unauthorized: \x1b]0;mine\x07\x9b31m\u202etxt no such key`},
		{`{"url":"` + "\u202e\u009b" + `"}`, []string{"run", "--limit", "none", "-"}, `url "\u202e\x9b"`},
		{"", []string{"run", "--limit", "none", "no" + evil}, `no\x1b]0;mine\x07\x9b31m\u202etxt: no such file`},
		{"", []string{"run", "--limit", evil, "-"}, `\x1b]0;mine`},
		{"", []string{"explain", "no" + evil}, `no\x1b]0;mine\x07\x9b31m\u202etxt: no such file`},
		{"HTTP/1.1 429 X\nRateLimit-Policy: \"" + evil + "\";q=5;w=10\nRateLimit: \"" + evil + "\";r=1\n\n", []string{"explain", "-"}, "429"},
		{`HTTP/1.1 429 X` + "\n\n" + `{"error":{"code":` + string(quoted) + `,"type":` + string(quoted) + `,"message":` + string(quoted) + `}}`, []string{"explain", "--provider", "openai", "-"}, "429"},
		{`HTTP/1.1 429 X` + "\n\n" + `{"error":{"code":` + string(quoted) + `,"type":` + string(quoted) + `,"message":` + string(quoted) + `}}`, []string{"explain", "--provider", "openai", "-o", "json", "-"}, "429"},
		{"", []string{"explain", saved, "-o", "json"}, `a\u009b\u202e.txt`},
		{`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + llmBody + `}`, []string{"run", "--limit", "none", "--base-url", srv.url, "-"},
			`because: answered 400 Bad Request: \x1b]0;mine\x07\x9b31m\u202etxt no such key`},
		{"", []string{"chart", "no" + evil}, `mine`},
		{"", []string{"serve", "no" + evil}, `mine`},
		{"", []string{"serve", "openai", "--addr", evil}, `mine`},
		{"", []string{"no" + evil}, `mine`},
	} {
		_, stdout, stderr := paceline(c.in, c.args...)
		obeyed(fmt.Sprintf("%q", c.args), stdout+stderr)
		if !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: %s%s, want %s", c.args, stdout, stderr, c.want)
		}
	}
	for _, output := range []string{"text", "json", "csv"} {
		_, stdout, _ := serveLLMVerb(t, "/v1/chat/completions", []string{strings.Replace(llmBody, `"m"`, string(quoted), 1)}, []int{200}, "openai", "--models", "any", "--rpm", "3", "-o", output)
		obeyed("serve -o "+output, stdout)
		if !strings.Contains(stdout, "31m") {
			t.Errorf("serve -o %s does not tell of the model: %s", output, stdout)
		}
	}
}
