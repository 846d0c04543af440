package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gates "github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/coded"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe/dashboard"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/transport"
)

// plants are secrets, each in a place of its own. They have characters that escapes change.
var plants = map[string]string{
	"key":                     `k3y/Qz+7&Lm9xVb8Nm1Tk`,
	"second key":              `k3y/Wd+4&Rt6pHc2Jf8Ys`,
	"field of a line":         `f1eld/Gq+3&Tz8wKx5Pd6Bn`,
	"cookie":                  `c00kie-Vr4Hs7Jm2Xt9Qe3Lw`,
	"parameter":               `p4ram/Nk+6&Yf3dZc7Uh1Gv`,
	"member":                  `m3mber/Ws+5&Qd8tRj4Xb9Ma`,
	"user":                    `us3r-Bt7Kq2Fz9Lm4Hx6`,
	"password in a URL":       `w0rd/Dx+8&Jp2hVs6Ck3Eg`,
	"token":                   `t0ken-Zm9Rw4Ty7Xq2Lh5Vd8`,
	"secret of OAuth":         `0auth-Hn3Kp8Wd5Qs7Bz2Xf4`,
	"fixed parameter":         `fix3d-Lq6Tz9Vm2Wx5Rk8Jd3`,
	"cell":                    `c3ll/Mv+2&Xg7kPw4Hf9Ys`,
	"store":                   `st0re/Kc+9&Vd4xJq7Tn2Rw`,
	"client's key":            `cl1ent-Xw8Jd3Qm6Vz9Lt2Hk5`,
	"another client's key":    `cl1ent-Rb4Yn7Kc2Gs9Pf6Wq3`,
	"client's own credential": `0wn/Tp+4&Hw9cZk6Vx2Jm`,
}

func init() {
	for name, plant := range map[string]string{
		"PL_PLANT_KEY": "key", "PL_PLANT_SECOND": "second key", "PL_PLANT_OAUTH": "secret of OAuth", "PL_PLANT_CLIENT": "client's key", "PL_PLANT_OTHER": "another client's key",
	} {
		environment[name] = plants[plant]
	}
}

// searched fails a test if a text has one of the plants.
func searched(t *testing.T, where string, text []byte, except ...string) {
	t.Helper()
	secrets := map[string]string{}
	maps.Copy(secrets, plants)
	for _, name := range except {
		delete(secrets, name)
	}
	for _, found := range findPlants(text, secrets) {
		t.Errorf("%s has the %v", where, found)
	}
}

// searchedFolder searches all files, but for the requests in dead letters of lines of JSON: those are the user's own lines.
func searchedFolder(t *testing.T, where, folder string, lines bool) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if lines && strings.HasSuffix(path, ".dead.jsonl") {
			var kept bytes.Buffer
			for line := range bytes.Lines(text) {
				var all map[string]any
				if err := json.Unmarshal(line, &all); err != nil {
					return err
				}
				if r, _ := all["request"].(map[string]any); r["hidden"] == nil {
					delete(all, "request")
				}
				b, _ := json.Marshal(all)
				kept.Write(append(b, '\n'))
			}
			text = kept.Bytes()
		}
		searched(t, where+": "+filepath.Base(path), text)
		searched(t, where+": the name of a file", []byte(path))
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%s: %d files, %v", where, files, err)
	}
}

// parrot is a server that repeats all of a request, in the form and with the status that its path names.
type parrot struct {
	*httptest.Server
	mu      sync.Mutex
	refused map[string]int // how often, by the path
}

// refuses says that a request is refused: every second one of a path.
func (p *parrot) refuses(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[path]++
	return p.refused[path]%2 == 1
}

var parrotForms = map[string]func(string) string{
	"plain":  func(s string) string { return s },
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"json":   func(s string) string { b, _ := json.Marshal(map[string]string{"you sent": s}); return string(b) },
	"escaped": func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		return `{"x":"` + b.String() + `"}`
	},
	"percent": url.QueryEscape,
	"html":    html.EscapeString,
}

// parrotCodings are the content codings among the forms.
var parrotCodings = map[string]coded.Coding{}

func init() {
	for i, c := range coded.All {
		name := fmt.Sprintf("coding-%d", i)
		parrotCodings[name], parrotForms[name] = c, parrotForms["plain"]
	}
}

func newParrot(t *testing.T) *parrot {
	p := &parrot{refused: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true)
	said := string(dump)
	if user, password, ok := r.BasicAuth(); ok {
		said += user + " " + password
	}
	if query, err := url.QueryUnescape(r.URL.RawQuery); err == nil {
		said += query
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	form, what := parts[0], parts[len(parts)-1]
	write := parrotForms[form]
	if write == nil {
		write = parrotForms["plain"]
	}
	h := w.Header()
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, said)
	h.Set("X-Echo", write(line))
	h.Set("Set-Cookie", "session="+url.QueryEscape(line))
	h.Set("Content-Type", map[bool]string{true: "application/json", false: "text/plain"}[form == "json" || form == "escaped"])
	status := http.StatusOK
	switch what {
	case "429":
		if p.refuses(r.URL.Path) {
			status = http.StatusTooManyRequests
			h.Set("Retry-After", "0")
		}
	case "400", "404", "500", "401", "403", "402":
		fmt.Sscan(what, &status)
	case "redirect":
		h.Set("Location", "/"+form+"/200?back="+url.QueryEscape(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")))
		status = http.StatusFound
	case "abroad":
		h.Set("Location", strings.Replace(p.URL, "127.0.0.1", "localhost", 1)+"/"+form+"/200?back="+url.QueryEscape(said))
		status = http.StatusFound
	case "nowhere":
		h.Set("Location", "http://"+url.PathEscape(said)+"/")
		status = http.StatusFound
	case "cut":
		h.Set("Content-Length", "100000")
	case "refused200":
		if !p.refuses(r.URL.Path) {
			break
		}
		h.Set("Content-Type", "application/json")
		text, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "rate_limit_error", "message": "no more for " + said}})
		write = func(string) string { return string(text) }
	}
	body := []byte(write(said))
	if c, is := parrotCodings[form]; is {
		h.Set("Content-Encoding", c.Field)
		body = c.Encode(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
	if what == "cut" {
		panic(http.ErrAbortHandler)
	}
}

var parrotEnds = []string{"200", "400", "404", "500", "429", "redirect", "abroad", "nowhere", "cut", "refused200"}

// plantedLines are requests with secrets of their own in every place, to every end.
func (p *parrot) plantedLines(form string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	address, _ := url.Parse(p.URL)
	for _, end := range parrotEnds {
		q := url.Values{"token": {plants["parameter"]}, "page": {"1"}}
		u := url.URL{Scheme: "http", Host: address.Host, User: url.UserPassword(plants["user"], plants["password in a URL"]), Path: "/" + form + "/" + end, RawQuery: q.Encode()}
		_ = e.Encode(map[string]any{"id": form + "-" + end, "method": "POST", "url": u.String(), "body": map[string]any{"api_key": plants["member"], "text": "x"},
			"headers": map[string]any{"X-Api-Key": plants["field of a line"], "Cookie": "lang=en; sid=" + plants["cookie"], "Accept-Encoding": "gzip, deflate, br, zstd"}})
	}
	return b.String()
}

// plantedRun is a run over all of its output. It returns what the run says.
func plantedRun(t *testing.T, name, in string, args ...string) (stderr, folder string) {
	t.Helper()
	folder = t.TempDir()
	out := []string{"run", "-", "--out", filepath.Join(folder, "out.jsonl"), "--summary", filepath.Join(folder, "sum.json"), "--report", filepath.Join(folder, "report.html"), "--log-level", "debug",
		"--attempts", "2", "--backoff-base", "1ms", "--backoff-max", "1ms", "--keep-headers", "*", "--redirects", "2", "--max-outage", "1ms"}
	if !slices.Contains(args, "--limit") {
		args = append(args, "--limit", "none")
	}
	_, stdout, stderr := paceline(in, append(out, args...)...)
	searched(t, name+": standard output", []byte(stdout))
	searched(t, name+": standard error", []byte(stderr))
	if _, err := os.Stat(filepath.Join(folder, "out.jsonl")); err == nil {
		searchedFolder(t, name, folder, strings.HasPrefix(in, "{") || strings.HasPrefix(in, "["))
	}
	return stderr, folder
}

var plantedKeys = []string{"--key-env", "PL_PLANT_KEY,PL_PLANT_SECOND", "--header", "X-Auth-Token: {key}", "--query", "api_key={key}"}

// Secrets that are planted in every place of a request are in nothing that run writes, in whatever
// form a server repeats them, at whatever end.
func TestPlantedInRun(t *testing.T) {
	race.Without(t) // other tests have these ends; it reads what was written
	t.Parallel()
	p := newParrot(t)
	for form := range parrotForms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			said, folder := plantedRun(t, "lines", p.plantedLines(form), plantedKeys...)
			if !strings.Contains(said, form+"-200") {
				t.Errorf("no line of the log: %s", said)
			}
			for _, r := range results(t, filepath.Join(folder, "out.jsonl")) {
				if r.ID == form+"-200" && (r.Body == nil || !strings.Contains(*r.Body, "[PL_PLANT_") || r.Hidden < 5) {
					t.Errorf("the answer was not read: %+v", r)
				}
			}
		})
	}
	at := func(path string) string {
		u, _ := url.Parse(p.URL + path)
		u.User, u.RawQuery = url.UserPassword(plants["user"], plants["password in a URL"]), url.Values{"token": {plants["parameter"]}}.Encode()
		return u.String()
	}
	each := func(line func(end string) string) string {
		var b strings.Builder
		for _, end := range parrotEnds {
			b.WriteString(line(end) + "\n")
		}
		return b.String()
	}
	token := write(t, "token.sh", "echo '"+plants["token"]+"'\n")
	for name, c := range map[string]struct {
		in   string
		args []string
	}{
		"urls":  {each(func(end string) string { return at("/plain/" + end) }), plantedKeys},
		"table": {"end,cell\n" + each(func(end string) string { return end + "," + plants["cell"] }), append([]string{"--url", strings.Replace(at("/json/X"), "X", "{row.end}", 1), "--header", "X-Api-Key: {row.cell}", "--body", `{"password":"{row.cell}","end":"{row.end}"}`}, plantedKeys...)},
		"curl": {each(func(end string) string {
			return "curl -u '" + plants["user"] + ":" + plants["password in a URL"] + "' '" + p.URL + "/percent/" + end + "?token=" + url.QueryEscape(plants["parameter"]) + "' -H 'X-Api-Key: " + plants["field of a line"] + "' -b 'sid=" + plants["cookie"] + "' -d 'password=" + url.QueryEscape(plants["member"]) + "'"
		}), nil},
		"array":           {`[{"url":"` + at("/plain/400") + `","headers":{"X-Api-Key":"` + plants["field of a line"] + `"}},"` + at("/plain/cut") + `"]`, nil},
		"no form":         {`{"url":"` + at("/plain/200") + `","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":"password=` + url.QueryEscape(plants["member"]) + `"}`, nil},
		"a cut answer":    {p.plantedLines("plain"), append([]string{"--max-response", "200"}, plantedKeys...)},
		"another cut":     {p.plantedLines("base64"), append([]string{"--max-response", "333"}, plantedKeys...)},
		"files":           {p.plantedLines("json"), append([]string{"--out-dir", t.TempDir()}, plantedKeys...)},
		"fields":          {p.plantedLines("json"), append([]string{"--select", "id=.id, body=.body, headers=.headers, url=.url, location=.location", "--out-format", "csv"}, plantedKeys...)},
		"a success":       {p.plantedLines("json"), append([]string{"--success", `.nothing == 1`}, plantedKeys...)},
		"pages":           {`{"id":"p","url":"` + at("/json/200") + `"}`, append([]string{"--next", "token=/you sent"}, plantedKeys...)},
		"pages by a link": {`{"id":"p","url":"` + at("/plain/200") + `"}`, append([]string{"--next", "/you sent"}, plantedKeys...)},
		"denied":          {each(func(end string) string { return `{"url":"` + p.URL + "/plain/401?" + end + `"}` }), plantedKeys},
		"a plan":          {p.plantedLines("json"), append([]string{"--dry-run"}, plantedKeys...)},
		"a plan in JSON":  {"end,cell\n200," + plants["cell"], append([]string{"--dry-run", "-o", "json", "--url", strings.Replace(at("/json/X"), "X", "{row.end}", 1), "--header", "X-Api-Key: {row.cell}", "--query", "sign={row.cell}"}, plantedKeys...)},
		"no URLs":         {each(func(end string) string { return strings.Replace(at("/plain/"+end), "http", "htp", 1) }), []string{"--input-format", "urls"}},
		"wrong URLs":      {each(func(end string) string { return at("/plain/"+end) + " x" }), nil},
		"wrong lines":     {`{"url":"` + strings.Replace(at("/x"), "@", "@[", 1) + `"}` + "\n" + `{"url":"` + at("/x") + `#x y"}` + "\n" + `{"url":"ftp:` + at("/x")[5:] + `"}`, []string{"--skip-invalid"}},
		"a wrong command": {"curl '" + at("/x") + "' -H 'X-Api-Key " + plants["field of a line"] + "'\ncurl " + at("/x") + " '", []string{"--curl"}},
		"a token":         {p.plantedLines("json"), []string{"--auth-command", "sh " + token}},
		"no token":        {p.plantedLines("json"), []string{"--oauth-token-url", p.URL + "/json/400", "--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_PLANT_OAUTH"}},
		"a store":         {p.plantedLines("json"), []string{"--limit", "20/s", "--share", "redis://me:" + url.QueryEscape(plants["store"]) + "@127.0.0.1:1/0"}},
		"a wrong store":   {p.plantedLines("json"), []string{"--limit", "20/s", "--share", "redis://me:" + plants["store"] + "@127.0.0.1:1/0"}},
		"another store":   {p.plantedLines("json"), []string{"--limit", "20/s", "--share", "postgres://me:" + url.QueryEscape(plants["store"]) + "@127.0.0.1:1/x?connect_timeout=1"}},
		"flags":           {"", []string{"--url", plants["user"] + ":" + plants["password in a URL"] + "@h/x", "--header", "X-Api-Key " + plants["field of a line"], "--query", "token" + plants["parameter"]}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plantedRun(t, name, c.in, c.args...)
		})
	}
}

// plantedProxy is a proxy in this process.
type plantedProxy struct {
	t        *testing.T
	at, look string
	said     lockedText
	folder   string
	stop     func()
}

// The page of a run shows no secret either, while answers that repeat them have come and one request
// is under way.
func TestPlantedInThePageOfRun(t *testing.T) {
	t.Parallel()
	p, hold := newParrot(t), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/hold") {
			<-hold
		}
		p.ServeHTTP(w, r)
	})
	lines := p.plantedLines("plain")
	first, _, _ := strings.Cut(lines, "\n")
	last := strings.NewReplacer("plain/200", "plain/hold", "plain-200", "plain-hold").Replace(first)
	if last == first {
		t.Fatalf("no line to hold in %s", first)
	}
	page, rest, wait := pageOf(t, append([]string{"0", "--limit", "none", "--attempts", "2", "--backoff-base", "1ms",
		"--backoff-max", "1ms", write(t, "in.jsonl", lines+last+"\n")}, plantedKeys...)...)
	get := func(name string) []byte {
		resp, err := http.Get(page + name)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return text
	}
	for deadline := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		var f struct {
			Sources []struct {
				Sent     int
				InFlight int `json:"in_flight"`
			}
		}
		if err := json.Unmarshal(get("snapshot.json"), &f); err != nil {
			t.Fatal(err)
		}
		if len(f.Sources) == 1 && f.Sources[0].InFlight == 1 && f.Sources[0].Sent >= len(parrotEnds) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the page has %s", get("snapshot.json"))
		}
	}
	for _, name := range []string{"", "snapshot.json", "all.json"} {
		searched(t, "the page of a run, "+name, get(name))
	}
	release()
	said, _ := io.ReadAll(rest)
	searched(t, "what that run says", said)
	_ = wait() // some lines are dead letters
}

// lockedText is what a program says, while it runs.
type lockedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newPlantedProxy(t *testing.T, args ...string) *plantedProxy {
	t.Helper()
	p := &plantedProxy{t: t, at: need.Address(t), look: need.Address(t), folder: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		execute(ctx, append([]string{"proxy", "--listen", p.at, "--admin", p.look, "--log", "json", "--log-level", "debug", "--state", filepath.Join(p.folder, "state"), "--max-outage", "0s"}, args...), strings.NewReader(""), &p.said, &p.said)
	}()
	p.stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(p.stop)
	for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		if resp, err := http.Get("http://" + p.look + "/readyz"); err == nil {
			resp.Body.Close()
			return p
		}
		select {
		case <-ended:
			t.Fatalf("the proxy ended: %s", p.said.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the proxy does not come up")
		}
	}
}

// do sends a request with all plants of a client, and searches the answer if it is the proxy's own.
func (p *plantedProxy) do(method, path string, fields ...string) (status int) {
	p.t.Helper()
	r, err := http.NewRequest(method, "http://"+p.at+path, strings.NewReader(`{"api_key":"`+plants["member"]+`"}`))
	if err != nil {
		p.t.Fatal(err)
	}
	q := r.URL.Query()
	q.Set("token", plants["parameter"])
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Cookie", "sid="+plants["cookie"])
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0 // the upstream has cut it off
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		searched(p.t, fmt.Sprintf("a refusal with %d of %s", resp.StatusCode, path), append(fmt.Appendf(nil, "%v", resp.Header), body...))
	}
	return resp.StatusCode
}

// searched searches all that the proxy has written, and ends it.
func (p *plantedProxy) searched(name string) {
	p.t.Helper()
	for _, path := range []string{"/", "/snapshot.json", "/metrics", "/readyz"} {
		resp, err := http.Get("http://" + p.look + path)
		if err != nil {
			p.t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			p.t.Errorf("%s: %d", path, resp.StatusCode)
		}
		searched(p.t, name+": "+path, body)
	}
	p.stop()
	searched(p.t, name+": the log", []byte(p.said.String()))
	searchedFolder(p.t, name, p.folder, false)
	if !strings.Contains(p.said.String(), `"path":"/plain/400"`) {
		p.t.Errorf("no line of a request: %s", p.said.String())
	}
}

// The same of the proxy, with keys of its own, with those of clients, and with neither.
func TestPlantedInProxy(t *testing.T) {
	t.Parallel()
	s := newParrot(t)
	for name, c := range map[string]struct {
		args   []string
		fields []string
		known  string // a secret that the proxy knows, too, and that a client puts into a path
	}{
		"keys":  {append([]string{"--to", s.URL, "--limit", "1000/s"}, plantedKeys...), []string{"Authorization", "Bearer " + plants["client's own credential"]}, plants["key"]},
		"fixed": {[]string{"--to", s.URL, "--limit", "1000/s", "--header", "Authorization: Bearer " + plants["second key"], "--query", "api_key=" + plants["fixed parameter"], "--header", "X-Me: " + plants["cell"]}, []string{"X-Api-Key", plants["client's own credential"]}, plants["second key"]},
		"clients": {append([]string{"--to", s.URL, "--limit", "1000/s", "--client-key-env", "PL_PLANT_CLIENT,PL_PLANT_OTHER"}, plantedKeys...),
			[]string{"Authorization", "Bearer " + plants["client's key"], "X-Api-Key", plants["another client's key"]}, plants["second key"]},
		"clients alone": {[]string{"--to", s.URL, "--preset", "openai:tier1", "--client-key-env", "PL_PLANT_CLIENT,PL_PLANT_OTHER"}, []string{"Paceline-Key", plants["client's key"], "Authorization", "Bearer " + plants["client's own credential"], "X-Other", plants["client's key"]}, ""},
		"neither":       {[]string{"--to", s.URL, "--limit", "1000/s"}, []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(plants["user"]+":"+plants["client's own credential"]))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlantedProxy(t, append(c.args, "--max-wait", "1ms", "--attempts", "1")...)
			served := 0
			for form := range parrotForms {
				for _, end := range parrotEnds {
					if end == "429" || end == "refused200" { // all wait after these
						continue
					}
					if p.do("POST", "/"+form+"/"+end, c.fields...) == http.StatusOK {
						served++
					}
				}
			}
			for _, path := range []string{"/plain/401", "/plain/402", "/plain/403", "/../" + c.known, "/plain/" + url.PathEscape(c.known), "/x/%00", "/json/refused200", "/json/429", "/json/200"} {
				p.do("GET", path, c.fields...)
			}
			p.do("GET", "/plain/200", "Authorization", "Bearer "+plants["key"]+"x")
			if served < len(parrotForms) {
				t.Errorf("served %d: %s", served, p.said.String())
			}
			p.searched(name)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		p := newPlantedProxy(t, append([]string{"--to", "http://127.0.0.1:1/" + plants["user"], "--limit", "10/s"}, plantedKeys...)...)
		if status := p.do("POST", "/plain/400"); status < 500 {
			t.Errorf("%d", status)
		}
		p.searched("nobody there")
	})
}

// failing is a server for http.Client that nobody reaches. Its error has all of the request in it.
type failing struct{}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("dial tcp: connection refused")}
}

// The same of the library: what a Transport, a Pool, a Gate and a share write or show by
// themselves.
func TestPlantedInLibrary(t *testing.T) {
	t.Parallel()
	s := newParrot(t)
	var said lockedText
	log := slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	shown := func(name string, all ...any) {
		t.Helper()
		for _, v := range all {
			text, _ := json.Marshal(v)
			searched(t, name, text)
			searched(t, name, fmt.Appendf(nil, "%v %+v", v, v))
		}
	}
	key := func(name string) transport.Key {
		return transport.Key{Name: name, Apply: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+plants[name]) }}
	}
	for name, base := range map[string]http.RoundTripper{"a server": nil, "nobody": failing{}} {
		tr := transport.Must(transport.Config{Base: base, Logger: log, Keys: []transport.Key{key("key"), key("second key")}, Attempts: 2, MaxOutage: time.Millisecond, MaxWait: func(*http.Request) time.Duration { return time.Millisecond }})
		client := &http.Client{Transport: tr}
		for form := range parrotForms {
			for _, end := range append(parrotEnds, "401", "402", "403") {
				r, _ := http.NewRequest("GET", s.URL+"/"+form+"/"+end+"?token="+url.QueryEscape(plants["parameter"]), nil)
				r.URL.User = url.UserPassword(plants["user"], plants["password in a URL"])
				r.Header.Set("Cookie", "sid="+plants["cookie"])
				r.Header.Set("X-Api-Key", plants["field of a line"])
				resp, err := client.Do(r)
				if e, ok := errors.AsType[*transport.Error](err); ok {
					shown(name+": an error", e.Error(), e.Partition.String())
				}
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		}
		snapshot := tr.Snapshot()
		shown(name+": the snapshot", snapshot)
		shown(name+": the partitions", tr.Partitions())
		page := httptest.NewRecorder()
		dashboard.Handler(tr).ServeHTTP(page, httptest.NewRequest("GET", "http://localhost/snapshot.json", nil))
		if page.Code != http.StatusOK {
			t.Errorf("the page: %d %s", page.Code, page.Body)
		}
		searched(t, name+": the page", page.Body.Bytes())
		tr.CloseIdleConnections()
	}
	// A Pool and a Gate know of a request what their caller makes of its error.
	gate := gates.NewGate(limit.MustRolling(1000, time.Second))
	var ends []pool.Ended
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{Name: "K", Limiter: limit.MustRolling(1000, time.Second)}}, Log: log, Queue: pool.QueueConfig{MaxAttempts: 2}, Ended: func(e pool.Ended) { ends = append(ends, e) },
		Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
			if err := gate.Do(ctx, limit.One, func() error {
				_, err := (&http.Client{Transport: failing{}}).Get(a.Request.Value.(string))
				return err
			}); err != nil {
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Reason: err.Error()}
			}
			return pool.Answer{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Submit(t.Context(), pool.Request{ID: "r", Cost: limit.One, Value: "http://" + plants["user"] + ":" + url.QueryEscape(plants["password in a URL"]) + "@h.test/?api_key=" + url.QueryEscape(plants["parameter"])}); err != nil {
		t.Fatal(err)
	}
	p.Drain()
	if err := p.Run(t.Context()); err != nil {
		t.Error(err)
	}
	for _, e := range ends {
		shown("the end of a request", e.Reason)
	}
	shown("the snapshot of a Pool", p.Snapshot())
	shown("the snapshot of a Gate", gate.Snapshot())
	searched(t, "the log of the library", []byte(said.String()))
	if !strings.Contains(said.String(), "not sent again") {
		t.Errorf("no line of the log: %s", said.String())
	}
}

// The panic of a Pool, whose Send panicked with the error of a request, has no secret of its URL.
func TestPlantedInAPanic(t *testing.T) {
	t.Parallel()
	u := url.URL{Scheme: "http", Host: "h.test", User: url.UserPassword(plants["user"], plants["password in a URL"]),
		RawQuery: "api_key=" + url.QueryEscape(plants["parameter"])}
	p, err := pool.New(pool.Config{Keys: []pool.Key{{Name: "K"}}, Send: func(context.Context, pool.Attempt) pool.Answer {
		panic(&url.Error{Op: "Get", URL: u.String(), Err: errors.New("connection refused")})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Submit(t.Context(), pool.Request{ID: "r", Cost: limit.One}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		v := recover()
		text := fmt.Sprint(v)
		searched(t, "a panic", []byte(text))
		if _, ok := v.(*pool.SendPanic); !ok || !strings.Contains(text, "connection refused") {
			t.Errorf("it panics with %s", text)
		}
	}()
	_ = p.Run(t.Context())
}
