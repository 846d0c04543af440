package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
)

// listener is a server that remembers what it was sent.
type listener struct {
	*httptest.Server
	mu  sync.Mutex
	all []string
}

// listenTo answers as answer says, or 200 with nothing in it.
func listenTo(t *testing.T, answer func(http.ResponseWriter, *http.Request, string)) *listener {
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var text strings.Builder
		text.WriteString(q.Method + " " + q.RequestURI)
		for _, name := range []string{"Authorization", "Content-Type", "X-Row", "Cookie"} {
			if v := q.Header.Get(name); v != "" {
				text.WriteString(" " + name + ": " + v)
			}
		}
		if len(body) > 0 {
			text.WriteString(" " + string(body))
		}
		l.mu.Lock()
		l.all = append(l.all, text.String())
		l.mu.Unlock()
		if answer != nil {
			answer(w, q, string(body))
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.all))
}

// Every form goes as it was handed over, from a file and from a pipe.
func TestRunGiven(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("email;full name\nann@x.org;Ann B\n"))
	_ = z.Close()
	wide := []byte{0xff, 0xfe}
	for _, r := range "email\tfull name\nann@x.org\tAnn B\n" {
		wide = append(wide, byte(r), 0)
	}
	people := "email,full name,key\nann@x.org,\"Ann \"\"A\"\", B\",{key}\nb/c@x.org,\"two\nlines\",{nonce}\n"
	const form = " Content-Type: application/x-www-form-urlencoded"
	for _, c := range []struct {
		name, text, args string
		want             []string
	}{
		{"urls.txt", "# mine\nURL/1?a=b%20c\n\nURL/2\n", "", []string{"GET /1?a=b%20c", "GET /2"}},
		{"people.csv", people, "--url|URL/p/{row.email}?n={row.full name}&k={row.key}",
			[]string{"GET /p/ann@x.org?n=Ann%20%22A%22%2C%20B&k=%7Bkey%7D", "GET /p/b%2Fc@x.org?n=two%0Alines&k=%7Bnonce%7D"}},
		{"body.csv", people, `--url|URL/|--method|PUT|--body|{"n":"{row.full name}","k":"{row.key}"}`,
			[]string{`PUT / Content-Type: application/json {"n":"Ann \"A\", B","k":"{key}"}`, `PUT / Content-Type: application/json {"n":"two\nlines","k":"{nonce}"}`}},
		// The value of a column is never read as a template, not even beside one.
		{"inject.csv", people, "--url|URL/|--key-env|PL_TEST_KEY|--header|X-Row: {row.key}|--header|Authorization: Bearer {key}|--query|q={row.key}-{id}|--id|{row.email}",
			[]string{"GET /?q=%7Bkey%7D-ann%40x.org Authorization: Bearer h1dden-Va7ueQ9 X-Row: {key}", "GET /?q=%7Bnonce%7D-b%2Fc%40x.org Authorization: Bearer h1dden-Va7ueQ9 X-Row: {nonce}"}},
		{"t.tsv", "a\tb\n1\t2\n", "--url|URL/{row.A}?x={row.2}", []string{"GET /1?x=2"}},
		{"zipped.csv.gz", zipped.String(), "--url|URL/{row.full name}", []string{"GET /Ann%20B"}},
		{"wide.txt", string(wide), "--url|URL/{row.full name}", []string{"GET /Ann%20B"}},
		{"ids.txt", "17\n18 a\n", "--url|URL/{row.line}", []string{"GET /17", "GET /18%20a"}},
		{"bare.csv", "17,x\n18,y\n", "--no-header|--url|URL/{row.1}/{row.2}", []string{"GET /17/x", "GET /18/y"}},
		{"rows.jsonl", `{"email":"ann@x.org","n":1.50,"tags":["a"]}` + "\n", `--url|URL/{row.email}|--body|{"n":{row.n},"t":{row.tags}}`,
			[]string{`POST /ann@x.org Content-Type: application/json {"n":1.50,"t":["a"]}`}},
		{"rows.json", "[{\"id\":1},\n {\"id\":2}]", "--url|URL/{row.id}", []string{"GET /1", "GET /2"}},
		{"rows.jsonl", "{\"id\":1,\"n\":3}\n{\"id\":2,\"nick\":\"y\"}\n", "--url|URL/{row.id}|--select|a=.row.nick,n=.row.n", []string{"GET /1", "GET /2"}},
		{"few.jsonl", "{\"id\":1}\n{\"id\":2,\"nick\":\"y\"}\n", "--url|URL/{row.id}|--first|1|--select|a=.row.nick", []string{"GET /1"}},
		{"bare2.csv", "17,x\n", "--no-header|--url|URL/{row.1}|--select|a=.row[\"2\"]", []string{"GET /17"}},
		{"whole.json", "[{\"url\":\"URL/1\"}, \"URL/2\", {\"url\":\"URL/3\",\n\"method\":\"POST\",\"body\":{\"a\":1}}]", "", []string{"GET /1", "GET /2", `POST /3 Content-Type: application/json {"a":1}`}},
		{"c.sh", "#!/bin/sh\ncurl 'URL/1' \\\n  -H 'authorization: Bearer abc' \\\n  --data-raw $'{key}=\\'\\u0021' --compressed\n\ncurl -b s=1 URL/2", "", []string{"GET /2 Cookie: s=1", "POST /1 Authorization: Bearer abc" + form + " {key}='!"}},
		{"c.har", `{"log": {"version": "1.2", "pages": [{"title": "]}, \"entries\": ["}], "entries": [
  {"request": {"method": "GET", "url": "URL/1?a=b%20c", "bodySize": 0, "headers": [{"name": ":authority", "value": "h"}, {"name": "Host", "value": "h"},
    {"name": "cookie", "value": "s=1"}, {"name": "Content-Length", "value": "3"}]}, "response": {"content": {"text": "]}"}}},
  {"request": {"method": "OPTIONS", "url": "URL/2", "headers": [{"name": "Access-Control-Request-Method", "value": "POST"}]}},
  {"request": {"method": "POST", "url": "URL/2", "headers": [{"name": "Content-Type", "value": "application/json"}], "postData": {"mimeType": "application/json", "text": "{\"a\":\"{key}\"}"}}},
  {"request": {"method": "POST", "url": "URL/3", "headers": [{"name": "Content-Type", "value": "application/x-www-form-urlencoded"}], "postData": {"params": [{"name": "a b", "value": "&"}, {"name": "c", "value": "d"}]}}},
  {"request": {"method": "GET", "url": "data:image/png;base64,AAAA", "headers": []}}], "comment": ""}}`, "",
			[]string{"GET /1?a=b%20c Cookie: s=1", `POST /2 Content-Type: application/json {"a":"{key}"}`, "POST /3" + form + " a+b=%26&c=d"}},
		// A template of the run's takes the place of what the commands have.
		{"d.sh", "curl URL/1 -H 'Authorization: Bearer old'\n", "--curl|--key-env|PL_TEST_KEY|--header|Authorization: Bearer {key}", []string{"GET /1 Authorization: Bearer h1dden-Va7ueQ9"}},
	} {
		for _, piped := range []bool{false, true} {
			l := listenTo(t, nil)
			text, args := strings.ReplaceAll(c.text, "URL", l.URL), []string{"run", "--limit", "none", "--progress", "off"}
			if c.args != "" {
				args = append(args, strings.Split(strings.ReplaceAll(c.args, "URL", l.URL), "|")...)
			}
			stdin := ""
			if piped {
				stdin, args = text, append(args, "-")
				if form := map[string]string{"ids.txt": "lines", "bare.csv": "csv", "bare2.csv": "csv"}[c.name]; form != "" {
					args = append(args, "--input-format", form)
				}
			} else {
				args = append(args, write(t, c.name, text))
			}
			code, stdout, stderr := paceline(stdin, args...)
			if got := l.heard(); code != 0 || !slices.Equal(got, c.want) {
				t.Errorf("%s, piped %v: %d\n got %s\nwant %s\n%s%s", c.name, piped, code, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "), stdout, stderr)
			}
		}
	}
}

// The error for an unusable input has a working command, and no request is sent.
func TestRunGivenRefuses(t *testing.T) {
	const table = "FILE is a table, with the columns id, Full Name, e-mail. Where each row goes is for --url:\n  paceline run FILE --limit 20/s --url 'https://api.example.com/v1/things/{row.id}'"
	people := "id,Full Name,e-mail\n1,Ann,a@x\n2,\"Bob\nB\",\n3,..,c@x\n4,x\n"
	for _, c := range []struct {
		name, text, args string
		code             int
		want             string
	}{
		{"people.csv", people, "", 2, table},
		{"links.csv", "n;Link\n", "", 2, "FILE is a table, separated by ';', with the columns n, Link. Where each row goes is for --url:\n  paceline run FILE --limit 20/s --url '{row.Link}'"},
		{"rows.jsonl", `{"id":1,"name":"x"}`, "", 2, "FILE has lines of JSON without a url: id, name. Where each goes is for --url:\n  paceline run FILE --limit 20/s --url 'https://api.example.com/v1/things/{row.id}'"},
		{"rows.json", "[\n {\"name\": \"x\",\n  \"link\": \"https://h\"}\n]", "", 2, "FILE has objects without a url: name, link. Where each goes is for --url:\n  paceline run FILE --limit 20/s --url '{row.link}'"},
		{"rows.json", `[{"id":"x"}]`, "", 4, "FILE:1:2: there is no url, expected one (http:// or https://)\npaceline: invalid input: FILE: 1 of 1 lines"},
		{"c.ps1", "$session = New-Object x\nInvoke-WebRequest -Uri \"https://h\"\n", "--curl", 4, "FILE: a command of PowerShell; expected a curl command: in the browser, \"Copy as cURL (bash)\""},
		{"c.cmd", "curl ^\"https://h^\"\n", "--curl", 4, "FILE: a curl command for cmd.exe, with ^ before its quotes; expected it as for bash"},
		{"people.csv", people, "--url|https://h/{row.emial}", 2, `FILE:1:1: {row.emial}: there is no column "emial", expected one of id, Full Name, e-mail`},
		{"people.csv", people, "--url|https://h/{row.id}|--header|X: {row.nme}", 2, `FILE:1:1: {row.nme}: there is no column "nme", expected one of id, Full Name, e-mail`},
		{"people.csv", people, "--url|https://h/{row.id}|--select|m=.row.idd", 2, `FILE:1:1: --select .row.idd: there is no column "idd", expected one of id, Full Name, e-mail; did you mean id?`},
		{"people.csv", people, "--url|https://h/{row.id}|--select|m=.row.ID", 2, `FILE:1:1: --select .row.ID: there is no column "ID", expected one of id, Full Name, e-mail; did you mean id?`},
		{"rows.jsonl", "{\"id\":1,\"name\":\"x\"}\n{\"id\":2,\"nick\":\"y\"}\n", "--url|https://h/{row.id}|--select|a=.row.nick,b=.row.nmae", 4,
			`invalid input: FILE: --select .row.nmae: there is no column "nmae", expected one of id, name; did you mean name?; nothing was sent`},
		{"whole.jsonl", `{"url":"https://h/1"}`, "--select|m=.row.id", 4, "invalid input: FILE: --select .row.id: this input has no rows, but whole requests; nothing was sent"},
		{"people.csv", people, "--url|https://h/{row.e-mail}/{row.full name}", 4, `:2:0`},
		{"people.csv", people, "--url|https://h/{key}", 2, "--url: {key} is filled in for each attempt, in --header and --query alone"},
		{"people.csv", people, "--url|https://h/{row.id}|--body|@gone", 2, "--body: open gone: no such file or directory"},
		{"people.csv", people, "--url|https://h/{row.id}|--method|get", 2, `--method "get", expected upper case: GET`},
		{"c.sh", "curl https://h\n", "--url|https://h", 2, "--url is for rows: each command has its own"},
		{"c.sh", "curl https://h\n", "--header|X: {row.a}", 2, "{row.COLUMN} is for rows, which have a --url: here each command is a request of its own"},
		{"b.har", `{"log":{"entries":[` + "\n" + `{"request":{"method":"POST","url":"https://h/","bodySize":7}}]}}`, "", 4, "FILE:2:1: the body of this request is not in the HAR, since the browser has left it out\npaceline: invalid input: FILE: 1 of 1 lines"},
		{"c.har", `{"log":{"entries":[{"request":{"method":"GET","url":"https://h/"}`, "", 4, "invalid input: FILE:1:66: the array has no end, expected ]: was the file cut off?"},
		{"d.har", `{"log":{"entries":[]}}`, "--url|https://h", 2, "--url is for rows: each entry has its own"},
		{"e.har", `[1]`, "--input-format|har", 4, "invalid input: FILE:1:1: expected a HAR, which has its requests in log.entries"},
		{"w.jsonl", `{"url":"https://h"}`, "--body|x", 2, "--body is for rows, which have a --url; FILE has lines of JSON, each a whole request"},
		{"w.jsonl", `{"url":"https://h"}`, "--query|x={row.a}", 2, "{row.a} is for rows, which have a --url; FILE has lines of JSON, each a whole request"},
		{"u.txt", "https://h/\n", "--input-format|url", 2, `--input-format "url", expected auto, jsonl, json, urls, lines, csv, tsv, curl, har; did you mean curl or urls?`},
		{"u.txt", "https://h/\n", "--curl|--input-format|urls", 2, "--curl with --input-format urls, expected one of them"},
		{"book.xlsx", "PK\x03\x04xl/workbook.xml", "", 4, "FILE: an Excel workbook (.xlsx). As a table: save it as CSV UTF-8, or libreoffice --headless --convert-to csv FILE"},
		{"b.jsonl", `{"url":"https://h","hidden":["header Cookie"]}`, "", 4, `FILE:1:20: this request is not whole: the run before left secrets out of its dead letters (["header Cookie"]); the command of that run with --retry-dead reads them in its own input
paceline: invalid input: FILE: 1 of 1 lines; nothing was sent`},
	} {
		in := write(t, c.name, c.text)
		args := []string{"run", "--limit", "20/s", in}
		if c.args != "" {
			args = append(args, strings.Split(c.args, "|")...)
		}
		code, stdout, stderr := paceline("", args...)
		want := strings.ReplaceAll(c.want, "FILE", in)
		if c.want == ":2:0" { // each row has something wrong of its own
			want = strings.ReplaceAll(`FILE:4:4: the URL: {row.e-mail} is empty, and the URL would be another one
FILE:5:3: the URL: {row.full name} is "..", and the URL would be another one
FILE:6:3: 2 columns, and the row ends here; expected 3 as in the first row
paceline: invalid input: FILE: 3 of 4 lines; nothing was sent (--skip-invalid sends the others)`, "FILE", in)
		}
		if !strings.Contains(want, "\npaceline:") {
			want = "paceline: " + want
		}
		if code != c.code || !strings.HasPrefix(stderr, want) || stdout != "" {
			t.Errorf("run %s %s\n got %d %s%s\nwant %d %s", c.name, c.args, code, stderr, stdout, c.code, want)
		}
	}
}

// Ignored parts of curl commands are reported once, though the input is read once more for the
// check.
func TestRunCurlTellsOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, func(http.ResponseWriter, *http.Request) {})
	in := write(t, "c.sh", "curl --compressed "+l.URL+"/a -L\ncurl --compressed "+l.URL+"/b\n")
	code, _, stderr := paceline("", "run", "--limit", "20/s", "--out", filepath.Join(t.TempDir(), "out.jsonl"), in)
	if code != 0 || strings.Count(stderr, "passed over in the curl commands: --compressed") != 1 || strings.Count(stderr, "passed over") != 2 {
		t.Errorf("%d %s", code, stderr)
	}
}

// A run over a table continues after a kill, by ids from its rows. No row is sent twice unnoticed.
func TestRunTableResumes(t *testing.T) {
	t.Parallel()
	const n = 300
	var text strings.Builder
	text.WriteString("id,text\r\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,\"row %d;\r\nof \"\"%d\"\"\"\r\n", i, i, n)
	}
	var child atomic.Pointer[os.Process]
	var l *listener
	l = listenTo(t, func(w http.ResponseWriter, q *http.Request, _ string) {
		if p := child.Load(); len(l.heard()) > n/3 && p != nil {
			_ = p.Kill()
		}
		fmt.Fprint(w, q.URL.Path)
	})
	in, out := write(t, "in.csv", text.String()), filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "400/s", "--concurrency", "4", "--progress", "off", "--url", l.URL + "/{row.id}", "--body", `{"t":"{row.text}"}`, "--out", out, in}
	c := program(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child.Store(c.Process)
	_ = c.Wait()
	child.Store(nil)
	before := len(results(t, out))
	if before == 0 || before >= n {
		t.Fatalf("%d results before the kill", before)
	}
	code, _, stderr := paceline("", args...)
	all := results(t, out)
	done, repeats := map[string]int{}, 0
	for _, r := range all {
		done[*r.Body]++
		if r.PossibleRepeat {
			repeats++
		}
	}
	if code != 0 || len(all) != n || len(done) != n {
		t.Errorf("%d: %d results, of %d rows\n%s", code, len(all), len(done), stderr)
	}
	if sent := len(l.heard()); sent > n+repeats {
		t.Errorf("%d sent, and %d named as repeats", sent, repeats)
	}
	if code, _, stderr = paceline("", args...); code != 0 || !strings.Contains(stderr, strconv.Itoa(n)+" done before") {
		t.Errorf("again: %d %s", code, stderr)
	}
	// With another template the same rows are other requests, and that is said.
	args[slices.Index(args, "--url")+1] = l.URL + "/other/{row.id}"
	if code, _, stderr = paceline("", args...); code != 4 ||
		!regexp.MustCompile(`lines are other requests than their ids have in .*The first is "line-2-\w+" on line 2\.`).MatchString(stderr) {
		t.Errorf("another template: %d %.300s", code, stderr)
	}
}

// Secrets of commands and rows are in nothing that a run leaves behind or says, though the server
// repeats them; and dead letters are sent again with them.
func TestRunGivenSecrets(t *testing.T) {
	secrets := []string{"Zq8-bearer-K7v2mXw", "pa55-W0rd-9xTq!", "c00kie-Vr7pLm2Q", "hdr-9Kx2-Lq7Zw", "qry-7Hn3-Vb9Tx", "form-5Tz8-Qw2Lp", "json-3Rb6-Xk9Mv", "row-4Yc1-Ns8Gd-Lw3Z", "short1"}
	failing := true
	l := listenTo(t, func(w http.ResponseWriter, q *http.Request, body string) {
		w.Header().Set("X-Request-Id", q.Header.Get("Authorization"))
		if failing {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, "no such key: %s %s %s %s", q.RequestURI, q.Header, body, strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "))
	})
	commands := fmt.Sprintf(`curl %[1]s/1?api_key=%[2]s -H 'Authorization: Bearer %[3]s' -H 'X-Api-Key: %[4]s' -b 'sid=%[5]s; theme=dark'
curl %[1]s/2 -u 'me:%[6]s' -d 'user=me&password=%[7]s'
curl %[1]s/3 --json '{"client_secret": "%[8]s", "max_tokens": 5, "deep": [{"token":"short1"}]}'
`, l.URL, secrets[4], secrets[0], secrets[3], secrets[2], secrets[1], secrets[5], secrets[6])
	log := fmt.Sprintf(`{"log":{"entries":[{"request":{"method":"GET","url":"%[1]s/1?api_key=%[2]s","headers":[{"name":"authorization","value":"Bearer %[3]s"},
{"name":"x-api-key","value":"%[4]s"},{"name":"cookie","value":"sid=%[5]s; theme=dark"}]}}]}}`, l.URL, secrets[4], secrets[0], secrets[3], secrets[2])
	rows := fmt.Sprintf("id,token\n1,%s\n", secrets[7])
	for _, c := range []struct {
		name, text string
		n          int
		args       []string
	}{
		{"c.sh", commands, 3, nil}, {"c.har", log, 1, nil},
		{"rows.csv", rows, 1, []string{"--url", l.URL + "/r/{row.id}?access_token={row.token}", "--header", "Authorization: Bearer {row.token}", "--body", "token={row.token}&a=1"}},
	} {
		failing = true
		dir := t.TempDir()
		out := filepath.Join(dir, "out.jsonl")
		in := write(t, c.name, c.text)
		args := append([]string{"run", "--limit", "none", "--progress", "off", "--log-level", "debug", "--keep-headers", "*", "--summary", filepath.Join(dir, "sum.json"), "--out", out, in}, c.args...)
		left := func(said string) {
			t.Helper()
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, f := range files {
				text, _ := os.ReadFile(f)
				said += string(text)
			}
			for _, s := range secrets {
				echo := strings.Index(said, s)
				if s == "short1" { // which is easy to guess, and so not looked for in answers
					if echo = strings.Index(said, `"token\":\"short1`); echo >= 0 && strings.Contains(said[:echo], `"body":"{`) && !strings.Contains(said, "no such key") {
						t.Errorf("%s: a weak secret in a dead letter", c.name)
					}
					continue
				}
				if echo >= 0 {
					t.Errorf("%s: %s is in …%s…", c.name, s, said[max(0, echo-200):min(len(said), echo+60)])
				}
			}
		}
		code, stdout, stderr := paceline("", args...)
		if code != 3 || len(l.heard()) == 0 {
			t.Fatalf("%s: %d %s", c.name, code, stderr)
		}
		left(stdout + stderr)
		dead := results(t, filepath.Join(dir, "out.dead.jsonl"))
		for _, r := range dead {
			var q struct{ Hidden []string }
			if err := json.Unmarshal(r.Request, &q); err != nil || len(q.Hidden) == 0 || r.Hidden == 0 || bytes.Contains(r.Request, []byte("short1")) {
				t.Errorf("%s: %s, hidden in %d places of the answer, %v", c.name, r.Request, r.Hidden, err)
			}
		}
		plan, said, _ := func() (string, string, int) {
			code, a, b := paceline("", append(slices.Clone(args), "--dry-run", "--retry-dead")...)
			return a, b, code
		}()
		if !strings.Contains(plan, "[hidden]") || !strings.Contains(plan, "is sent as") {
			t.Errorf("%s: the plan is %s%s", c.name, plan, said)
		}
		left(plan + said)
		// Sent again they are whole: they are read in their own input.
		first := l.heard()
		failing = false
		code, stdout, stderr = paceline("", append(args, "--retry-dead")...)
		if code != 0 || len(l.heard()) != 2*len(first) && c.n == 3 {
			t.Errorf("%s again: %d %s", c.name, code, stderr)
		}
		again := l.heard()
		for i := 0; i+1 < len(again) && c.n == 3; i += 2 {
			if again[i] != again[i+1] {
				t.Errorf("%s was not sent again as it was, but %s", again[i], again[i+1])
			}
		}
		left(stdout + stderr)
	}
}

// Pages of the given requests are followed, and their dead letters are whole requests. A secret in
// a URL is kept nowhere, and the run reports that.
func TestRunGivenPages(t *testing.T) {
	l := listenTo(t, func(w http.ResponseWriter, q *http.Request, _ string) {
		switch q.URL.Path {
		case "/a", "/s":
			w.Header().Set("Link", "<"+q.URL.Path+"2?"+q.URL.RawQuery+">; rel=next")
		case "/a2":
			w.WriteHeader(http.StatusNotFound)
		}
	})
	const key = "qry-7Hn3-Vb9Tx-Wm4"
	dir := t.TempDir()
	code, stdout, stderr := paceline("", "run", "--limit", "none", "--progress", "off", "--next", "link", "--method", "DELETE", "--out", filepath.Join(dir, "out.jsonl"),
		write(t, "urls.txt", l.URL+"/a?x=1\n"+l.URL+"/s?api_key="+key+"\n"))
	if got := l.heard(); code != 3 || len(got) != 3 || got[0] != "DELETE /a2?x=1" {
		t.Errorf("%d %v\n%s", code, got, stderr)
	}
	var left strings.Builder
	left.WriteString(stdout + stderr)
	for _, name := range []string{"out.jsonl", "out.dead.jsonl", "out.jsonl.journal"} {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		left.WriteString(string(text))
	}
	if strings.Contains(left.String(), key) || !strings.Contains(left.String(), "expected it in --query 'api_key={key}'") || !strings.Contains(left.String(), `"method":"DELETE","url":"`+l.URL+`/a2?x=1"`) {
		t.Error(left.String())
	}
}

// A plan shows what would be sent, and reads a million rows within little memory.
func TestRunGivenDryRun(t *testing.T) {
	in := write(t, "people.csv", "email,n\na@x,1\nb@x,2\nc@x,3\nd@x,4\n")
	args := []string{"run", "--limit", "2/s", "--dry-run", "--key-env", "PL_TEST_KEY", "--header", "Authorization: Bearer {key}", "--query", "nonce={nonce}", "--query", "k={key}", "--url", "https://h/{row.email}", "--body", `{"n":{row.n}}`, in}
	code, stdout, stderr := paceline("", args...)
	want := `
  POST https://h/a@x?nonce={nonce}&k=[PL_TEST_KEY]
  Authorization: Bearer [PL_TEST_KEY]
  Content-Type: application/json
`
	if code != 0 || !strings.Contains(stdout, want) || !strings.Contains(stdout, "\n  {\"n\":3}\n") || strings.Contains(stdout, "d@x") || !strings.Contains(stdout, "requests   4 to send") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	code, stdout, _ = paceline("", append(args, "-o", "json")...)
	var plan run.Plan
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || code != 0 || plan.Format != "csv" || len(plan.First) != 3 || plan.First[2].Body != `{"n":3}` || plan.First[2].Line != 4 {
		t.Errorf("%v, %s", err, stdout)
	}
}

// The rows of a pipe are sent as they come, before its end.
func TestRunGivenPipe(t *testing.T) {
	l := listenTo(t, nil)
	in, feed := io.Pipe()
	defer feed.Close()
	go func() {
		for i := range 3 {
			fmt.Fprintf(feed, "%s/%d\n", l.URL, i)
			for deadline := time.Now().Add(patient); len(l.heard()) <= i && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if len(l.heard()) <= i {
				t.Errorf("line %d was not sent before the next", i)
			}
		}
		feed.Close()
	}()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"run", "--limit", "none", "--progress", "off", "-"}, in, &out, &errs); code != 0 || len(l.heard()) != 3 {
		t.Errorf("%d %v %s", code, l.heard(), errs.String())
	}
}
