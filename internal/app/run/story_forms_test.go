package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/tokens"
)

func (s *story) handed(c format.ItemsConfig) {
	s.Helper()
	c.Header, c.Query = s.config.Header, s.config.Query
	h, err := format.NewItems(c)
	if err != nil {
		s.Fatal(err)
	}
	s.config.Format = h
}

// echo repeats the request in its answer, secrets included.
func echo(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	if q.URL.Path == "/missing" {
		w.WriteHeader(http.StatusNotFound)
	}
	fmt.Fprint(w, q.URL.RequestURI(), q.Header["Authorization"], q.Header["Cookie"], q.Header["X-Row"])
}

// Rows of a table fill the URL, the body, the id, the headers and the query. Secrets in them are
// shown nowhere.
func TestStoryOfATable(t *testing.T) {
	tell(t, "handed-table", func(s *story) {
		s.page = echo
		s.keys("A")
		s.header("Authorization: Bearer {key}", "Cookie: {row.cookie}", "X-Row: {id} {attempt} {row.name}")
		s.query("password={row.password}", "page={row.page}")
		s.handed(format.ItemsConfig{
			Read: input.Config{Form: input.CSV}, URL: "http://api/{row.path}?q={row.name}", HasBody: true, Body: `{"name":"{row.name}","by":"{id}","n":{row.page}}`, ID: "{row.name}/{row.path}",
		})
		rows := []string{
			"name,path,password,cookie,page",
			"ann,a b,s3cret-Of-ann-8f2,sid=s3cret-Cookie-8f2,1",
			`"b ""q""",missing,s3cret-Of-bob-8f2,sid=s3cret-Cookie-8f3,2`,
			"cy,c,s3cret-Of-cy-8f2,,3",
			"dee,d,s3cret-Of-dee-8f2,sid=s3cret-Cookie-8f4,4",
		}
		s.run("all", strings.Join(rows, "\n"))
		s.config.RetryDead = format.AllDead
		s.run("the dead once more", strings.Join(rows, "\n"))
		s.run("a column has changed, a row is there twice", strings.Join(append(rows[:4:4], strings.Replace(rows[4], "8f4", "8f5", 1), rows[1]), "\n"))
		s.config.Input.Header = 60
		s.run("rows that are no requests", strings.Join([]string{rows[0], "\"x\ny\",a,b,c,1", ",a,b,\"c\nd\",1", strings.Repeat("i", 300) + ",a,b,c,1", "..,.., , ,", "e,f," + strings.Repeat("p", 60) + ",c,1"}, "\n"))
		s.run("a column is missing", "name,path\na,b")
	})
}

// URLs, an array, and commands, each with secrets.
func TestStoryOfForms(t *testing.T) {
	tell(t, "handed-forms", func(s *story) {
		s.page = echo
		for _, form := range []struct {
			form  input.Form
			input string
		}{
			{input.URLs, "http://api/a?x=1\nhttp://user:s3cret-Of-u-8f2@api/missing?api_key=s3cret-Of-k-8f2\nftp://api/\nhttp://api/a?x=1"},
			{input.JSON, `["http://api/b", {"url":"http://api/missing","method":"POST","body":{"a":  1},` + "\n" + `"headers":{"X-Row":"r"}}, 7, {"id":"x","url":"http://api/c","cost":2}, {"id":"x","url":"http://api/c"}]`},
			{input.Curl, "curl -s 'http://api/missing' -H 'Cookie: sid=s3cret-Of-c-8f2' -d 'a=1&password=s3cret-Of-p-8f2'\ncurl -X 'GE T' http://api/d\ncurl http://api/d -H 'X-Row: \\x01' -u me:s3cret-Of-w-8f2\ncurl ftp://api/ \ncurl http://api/e -b 'sid=s3cret-Of-e-8f2' -A me -m 3"},
		} {
			s.config.Out = filepath.Join(s.folder, form.form.String()+".jsonl")
			s.handed(format.ItemsConfig{Read: input.Config{Form: form.form, Ignored: func(option, instead string) { s.tell("  ignored %s %s", option, instead) }}})
			s.config.SkipInvalid = false
			s.run(form.form.String(), form.input)
			s.config.SkipInvalid = true
			s.run("those that are requests", form.input)
		}
		s.config.Input = format.InputLimits{Body: 4, Header: len("Content-Type: application/x-www-form-urlencoded\r\n")}
		s.config.Append = true
		value := strings.Repeat("v", s.config.Input.Header-len("X-Row: \r\n"))
		s.run("commands that are too large", "curl http://api/ -d 12345\ncurl http://api/ -H 'X-Row: "+value+"v'\ncurl http://api/ -H 'X-Row: "+value+"'\ncurl http://api/ -d 1234")
	})
}

// Options that contradict each other are an error before the input is read.
func TestHandedRefuses(t *testing.T) {
	row, err := format.ParseHeaders([]string{"X-Row: {row.a}"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		c    format.ItemsConfig
		want string
	}{
		{format.ItemsConfig{Read: input.Config{Form: input.Curl}, Method: "GET"}, "--method is for rows, which have a --url: here each command is a request of its own"},
		{format.ItemsConfig{Read: input.Config{Form: input.JSON}, HasBody: true}, "--body is for rows, which have a --url: here each element is a request of its own"},
		{format.ItemsConfig{Read: input.Config{Form: input.JSON}, ID: "{row.a}"}, "--id is for rows"},
		{format.ItemsConfig{Read: input.Config{Form: input.JSON}, Header: row}, "{row.COLUMN} is for rows"},
		{format.ItemsConfig{Read: input.Config{Form: input.JSON}, Query: row}, "{row.COLUMN} is for rows"},
		{format.ItemsConfig{Read: input.Config{Form: input.Curl}, URL: "http://api/"}, "--url is for rows: each command has its own"},
		{format.ItemsConfig{Read: input.Config{Form: input.CSV}, URL: "http://api/{row.}"}, "--url: "},
		{format.ItemsConfig{Read: input.Config{Form: input.CSV}, URL: "http://api/", ID: "{row.a"}, "--id: "},
		{format.ItemsConfig{Read: input.Config{Form: input.CSV}, URL: "http://api/", HasBody: true, Body: "{row.a"}, "--body: "},
		{format.ItemsConfig{Read: input.Config{Form: input.CSV}, URL: "http://api/", Method: "GE T"}, "--method"},
		{format.ItemsConfig{Read: input.Config{Form: input.CSV}, URL: "http://api/{row.a}", Header: row}, ""},
		{format.ItemsConfig{Read: input.Config{Form: input.URLs}, ID: "{row.url}", Method: "HEAD"}, ""},
	} {
		if _, err := format.NewItems(c.c); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.c, err, c.want)
		}
	}
}

func (s *story) shape(selection string, format output.RowFormat) {
	s.Helper()
	shape, err := output.CompileShape(selection, format)
	if err != nil {
		s.Fatal(err)
	}
	s.config.Shape = shape
}

// Rows from all values that an expression can read, in a file made from the results, over several
// runs and after damage.
func TestStoryOfRows(t *testing.T) {
	tell(t, "rows", func(s *story) {
		s.keys("A")
		s.query("api_key={key}")
		s.page = func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/json":
				w.Header().Set("X-More", q.URL.Query().Get("api_key"))
				fmt.Fprintf(w, ` {"n":12345678901234567890,"key":%q} `, q.URL.Query().Get("api_key"))
			case "/two":
				fmt.Fprint(w, `{"n":1} {"n":2}`)
			case "/bytes":
				_, _ = w.Write([]byte{'a', 0xff})
			case "/moved":
				http.Redirect(w, q, "/two", http.StatusFound)
			case "/part":
				w.WriteHeader(http.StatusPartialContent)
				fmt.Fprint(w, q.URL.Query().Get("api_key")[9:])
			case "/missing":
				w.WriteHeader(http.StatusNotFound)
			case "/long":
				fmt.Fprint(w, strings.Repeat("l", 300))
			}
		}
		s.config.Redirects, s.config.MaxResponse = 1, 200
		var lines []string
		for _, path := range []string{"json", "two", "bytes", "missing", "moved", "part", "long", "empty"} {
			lines = append(lines, request(path, "http://api/"+path))
		}
		text := strings.Join(lines, "\n")
		s.shape(".", output.JSONL)
		s.run("whole answers", strings.Join(lines[:7], "\n"))
		s.run("one more", text)
		s.shape("id=.id, n=.body.n", output.CSV)
		s.run("another selection", text)

		s.config.Out = filepath.Join(s.folder, "table.csv")
		s.run("a table", strings.Join(lines[:3], "\n"))
		s.damage("table.csv", func(text []byte) []byte { return append(text[:len(text)-4], 0, 0, 0, 0) })
		s.run("NULs at its end", strings.Join(lines[:4], "\n"))
		s.damage("table.csv", func(text []byte) []byte { return append(text, 'x') })
		s.run("more than was written there", text)
		if err := os.Remove(s.config.Out + ".rows"); err != nil {
			s.Fatal(err)
		}
		s.run("the results are not there", text)
		s.config.Out = "-"
		s.run("to standard output", text)
	})
}

func (s *story) damage(name string, change func([]byte) []byte) {
	s.Helper()
	path := filepath.Join(s.folder, name)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(text), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// Results are in the order of the input, though retries end them in another.
func TestStoryOfOrder(t *testing.T) {
	tell(t, "ordered", func(s *story) {
		tried := map[string]int{}
		s.page = func(w http.ResponseWriter, q *http.Request) {
			if tried[q.URL.Path]++; q.URL.Path == "/late" && tried["/late"] < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
		s.config.Ordered, s.config.Backoff.Base, s.config.Backoff.Jitter = true, 40*time.Millisecond, -1
		text := strings.Join([]string{request("a", "http://api/a"), request("late", "http://api/late"), request("b", "http://api/b"), request("c", "http://api/c")}, "\n")
		s.run("one is dead", text)
		s.config.RetryDead = format.AllDead
		s.run("it is sent again", text)
		s.config.RetryDead = 0
		s.run("nothing is left", text)
		s.config.Out, tried["/late"] = "-", 1
		s.run("to standard output", text)
		s.shape(".id", output.JSONL)
		s.config.Dead, tried["/late"] = filepath.Join(s.folder, "dead.jsonl"), 0
		s.run("rows to standard output", text)
		s.config.Shape, s.config.Dead, tried["/late"] = nil, filepath.Join(s.folder, "dead-2.jsonl"), 0
		s.config.Until = time.Now().Add(30 * time.Millisecond)
		s.run("to standard output, until one has not ended", text)
		s.config.Out, s.config.Dead, tried["/late"] = filepath.Join(s.folder, "until.jsonl"), "", 0
		s.config.Until = time.Now().Add(30 * time.Millisecond)
		s.run("to a file, until one has not ended", text)
		s.config.Until = time.Time{}
		s.run("it goes on", text)
	})
}

// giver gives tokens, one after the other.
type giver struct {
	s *story
	n int
	// refuses is the number of tokens after which there are no more; 0: there always are.
	refuses int
}

func (g *giver) Secrets() map[string]string {
	return map[string]string{"client": "s3cret-Of-client-8f2"}
}
func (g *giver) String() string { return "the giver" }

func (g *giver) Issue(context.Context) (auth.Token, error) {
	time.Sleep(3 * time.Millisecond)
	if g.n++; g.refuses > 0 && g.n > g.refuses {
		g.s.note("  no token")
		return auth.Token{}, errors.New("it has no more than s3cret-Of-client-8f2")
	}
	g.s.note("  token %d", g.n)
	return auth.Token{Value: fmt.Sprintf("s3cret-Token-%d-8f2", g.n)}, nil
}

// Refused tokens are renewed, and their requests go again without counting an attempt. When there
// are no more tokens, the run ends.
func TestStoryOfTokens(t *testing.T) {
	tell(t, "tokens", func(s *story) {
		s.header("Authorization: Bearer {token}")
		served := map[string]int{}
		s.page = func(w http.ResponseWriter, q *http.Request) {
			token := q.Header.Get("Authorization")
			if served[token]++; served[token] > 2 || q.URL.Path == "/mine" || q.URL.Path == "/never" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprintf(w, `{"error":{"message":"%s is over"}}`, token)
				return
			}
			fmt.Fprint(w, token, " of s3cret-Of-client-8f2")
		}
		lines := func(paths ...string) string {
			var all []string
			for _, p := range paths {
				all = append(all, request(p, "http://api/"+p))
			}
			return strings.Join(all, "\n")
		}
		s.config.Bearer = &Bearer{Issuer: &giver{s: s}}
		s.run("each token is good for two", lines("a", "b", "c", "mine", "d"))
		s.config.Out = filepath.Join(s.folder, "never.jsonl")
		s.run("none is good", lines("never", "e"))
		s.config.Out = filepath.Join(s.folder, "none.jsonl")
		s.config.Bearer = &Bearer{Issuer: &giver{s: s, refuses: 1}, LifeConfig: auth.LifeConfig{Patience: time.Minute}}
		s.run("no more are given", lines("f", "g", "h"))
		s.config.Out = filepath.Join(s.folder, "first.jsonl")
		s.config.Bearer = &Bearer{Issuer: &giver{s: s, n: 1, refuses: 1}}
		s.run("none is given", lines("f"))
	})
}

// Batches with lines that are no requests. These are passed over once for all runs, in the form of
// each provider. The plan has the cost of the rest, and says if it is too much.
func TestStoryOfBatches(t *testing.T) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		tell(t, "skipped-"+p.String(), func(s *story) {
			s.page = func(w http.ResponseWriter, q *http.Request) {
				fmt.Fprint(w, `{"usage":{"prompt_tokens":20,"completion_tokens":50,"input_tokens":20,"output_tokens":50}}`)
			}
			s.keys("A")
			s.header(p.KeyHeader())
			s.config.SkipInvalid = true
			s.config.Prices = Prices{Input: 2, Output: 8}
			line := func(id string) string {
				const body = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`
				if p == format.OpenAI {
					return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":%s}`, id, body)
				}
				return fmt.Sprintf(`{"custom_id":%q,"params":%s}`, id, body)
			}
			text := strings.Join([]string{line("a"), `{"custom_id":"bad","url":"http://A@api/` + "s3cret-Of-A-9a7Kq" + `"}`, line("b"), `{"custom_id":"` + strings.Repeat("i", 600) + `"}`, "no JSON", line("c"), line("d")}, "\n")
			for _, budget := range []float64{0.001, 0.0011, 0} {
				format, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: "http://api/v1", Count: tokens.Used})
				if err != nil {
					s.Fatal(err)
				}
				s.config.Format, s.config.Budget = format, budget
				s.run(fmt.Sprintf("for %g USD", budget), text)
			}
		})
	}
}

// prompted answers each prompt by the name of its model.
func prompted(p format.Provider) http.HandlerFunc {
	tried := map[string]int{}
	return func(w http.ResponseWriter, q *http.Request) {
		var asked struct{ Model string }
		_ = json.NewDecoder(q.Body).Decode(&asked)
		problem := func(status int, kind, message string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"code":%q,"message":%q}}`, kind, kind, message)
		}
		tried[asked.Model]++
		switch asked.Model {
		case "missing":
			problem(404, map[format.Provider]string{format.OpenAI: "model_not_found", format.Anthropic: "not_found_error"}[p], "model: missing")
		case "wrong":
			problem(400, "invalid_request_error", "max_tokens:\n too large for s3cret-Of-A-9a7Kq")
		case "long-words":
			problem(400, "invalid_request_error", strings.Repeat("a", 199)+"é")
		case "just-long-words":
			problem(400, "invalid_request_error", strings.Repeat("a", 200))
		case "forbidden":
			problem(403, "permission_error", "not yours")
		case "fails":
			problem(500, "api_error", "sorry")
		case "gateway":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>\xff</html>")
		case "moved":
			w.Header().Set("Location", "http://elsewhere/s3cret-Of-A-9a7Kq")
			w.WriteHeader(http.StatusFound)
		case "moved-nowhere":
			w.WriteHeader(http.StatusFound)
		case "error-with-200":
			fmt.Fprint(w, `{"error":{"message":"over capacity"}}`)
		case "no-error-with-200":
			fmt.Fprint(w, `{"error":null,"text":"s3cret-Of-A-9a7Kq \xff","usage":{"prompt_tokens":-1}}`)
		case "half":
			fmt.Fprint(w, `{"text":"`)
		case "long":
			fmt.Fprintf(w, `{"text":%q}`, strings.Repeat("l", 1000))
		case "limited":
			if tried[asked.Model] == 1 {
				w.Header().Set("Retry-After", "2")
				problem(429, "rate_limit_error", "slowly")
				return
			}
			fallthrough
		default:
			fmt.Fprint(w, `{"usage":{"prompt_tokens":20,"completion_tokens":60,"input_tokens":20,"output_tokens":60}}`)
		}
	}
}

// Each end of a prompt, in its provider's form, and its effect in another run.
func TestStoryOfPrompts(t *testing.T) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		tell(t, "prompts-"+p.String(), func(s *story) {
			s.page = prompted(p)
			s.keys("A")
			s.header(p.KeyHeader())
			s.config.MaxResponse, s.config.TTL = 500, 20*time.Second
			var lines []string
			for _, model := range []string{"good", "missing", "wrong", "long-words", "just-long-words", "forbidden", "fails", "gateway", "moved", "moved-nowhere", "error-with-200", "no-error-with-200", "half", "long", "limited"} {
				body := fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`, model)
				if p == format.OpenAI {
					lines = append(lines, fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":%s}`, model, body))
				} else {
					lines = append(lines, fmt.Sprintf(`{"custom_id":%q,"params":%s}`, model, body))
				}
			}
			for _, retry := range []string{"", "all", "model,refused"} {
				batch, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: "http://api/v1", Count: tokens.Used})
				if err != nil {
					s.Fatal(err)
				}
				s.config.Format = batch
				if retry != "" {
					if s.config.RetryDead, err = format.ParseDead(retry); err != nil {
						s.Fatal(err)
					}
				}
				s.run("retry dead: "+retry, strings.Join(lines, "\n"))
			}
		})
	}
}

// The cost of attempts with prices: nothing if the server surely did not process them, and the
// whole price if that is not known.
func TestStoryOfABudget(t *testing.T) {
	tell(t, "budget", func(s *story) {
		refused := false
		s.page = func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/limited":
				if !refused {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
				}
				refused = true
			case "/broken":
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, "half")
			case "/missing":
				w.WriteHeader(http.StatusNotFound)
			}
		}
		s.config.Price = 0.25
		var text strings.Builder
		text.WriteString(`{"id":"two","url":"http://api/ok","cost":2}`)
		for _, path := range []string{"limited", "broken", "missing", "ok"} {
			text.WriteString("\n" + request(path, "http://api/"+path))
		}
		for _, budget := range []float64{0.5, 0.75, 0.999, 1.25, 1.5, 10} {
			s.config.Budget = budget
			s.run(fmt.Sprintf("for %g USD", budget), text.String())
		}
	})
}
