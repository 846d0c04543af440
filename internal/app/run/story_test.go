package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/pool"
)

// story records the requests of runs over one folder, and their files, in the clock of a bubble.
// The record is compared with the earlier one. Requests go one at a time, and each answer takes
// some time, so the order of goroutines has no effect.
type story struct {
	*testing.T
	config Config
	folder string
	page   http.HandlerFunc

	watched func(p *Progress) // if not nil, called now and then in a run

	mu   sync.Mutex
	text strings.Builder
	told []string // of the run, apart from what it asks for: it reads on while its first request goes
	runs int
	seen map[string]string // content of each file after the run before
}

// tell runs play in a bubble, and compares its story.
func tell(t *testing.T, name string, play func(s *story)) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t, folder: t.TempDir(), seen: map[string]string{}}
		s.config = Config{
			Out: filepath.Join(s.folder, "out.jsonl"), Concurrency: 1, Attempts: 2, Backoff: pool.Backoff{Base: -1},
			Timeout: 5 * time.Second, clock: bubbleClock,
		}
		play(s)
		golden.CompareFloats(t, name+".golden", s.text.String())
	})
}

// waitedFor depends on whether a look or an answer comes first in an instant.
var waitedFor = regexp.MustCompile(`"waited_for_ms":\{[^}]*\},`)

func (s *story) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), s.folder, "FOLDER")
	s.text.WriteString(waitedFor.ReplaceAllString(text, "") + "\n")
}

func (s *story) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// ServeHTTP notes the request, and those of its fields that matter.
func (s *story) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(body))
	var line strings.Builder
	fmt.Fprintf(&line, "  asked %s http://%s%s", q.Method, q.Host, q.URL.RequestURI())
	if agent := q.UserAgent(); agent != "paceline" {
		line.WriteString(" by " + agent)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Cookie", "X-Api-Key", "X-Row"} {
		for _, v := range q.Header[name] {
			fmt.Fprintf(&line, " [%s: %s]", name, v)
		}
	}
	if len(body) > 0 {
		line.WriteString(" " + string(body))
	}
	s.note("%s", line.String())
	time.Sleep(7013 * time.Microsecond) // meanwhile all of the available input is read; no look happens at that instant
	s.page(w, q)
}

// run sends an input, and notes the results.
func (s *story) run(what, input string) {
	s.Helper()
	s.runs++
	s.note("run %d: %s", s.runs, what)
	network := fakeconn.New()
	srv := &http.Server{Handler: s}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(network) }()
	c := s.config
	var out bytes.Buffer
	c.Stdout = &out
	c.Notice = func(text string) { s.tell("  notice: %s", text) }
	c.Dial = network.Dial
	r, err := New(c)
	if err == nil {
		s.send(r, input)
	} else {
		s.note("  refused: %v", err)
	}
	_ = srv.Close()
	<-served
	for _, text := range s.told {
		s.note("%s", text)
	}
	s.told = nil
	if out.Len() > 0 {
		s.note("  standard output:\n%s", indented(out.String()))
	}
	s.files()
}

func (s *story) send(r *Run, input string) {
	err := r.Check("in", strings.NewReader(input))
	if p := r.Plan(time.Now()); len(p.First) > 0 {
		first, _ := json.Marshal(p.First)
		s.note("  the first would be %s", unescaped(first))
	}
	if err == nil {
		err = r.Open()
	}
	if err != nil {
		s.note("  refused: %v", err)
		return
	}
	over := make(chan struct{})
	var beside sync.WaitGroup
	if s.watched != nil {
		beside.Go(func() { s.watch(r, over) })
	}
	err = r.Send(s.Context(), "in", strings.NewReader(input))
	close(over)
	beside.Wait()
	totals, cerr := r.Close()
	if err != nil || cerr != nil {
		s.note("  ended with: %v, %v", err, cerr)
	}
	if because, again := r.DeadBecause(), r.DeadAgain(); because+again != "" {
		s.note("  %s\n  %s", because, again)
	}
	if s.config.Budget > 0 {
		totals.Offered = 0 // chance decides how far the input was read when the money was spent
	}
	totals.Latency = nil // computed with floating point, and covered by other tests
	for i := range totals.Keys {
		totals.Keys[i].Latency = tally.LatencyMS{}
	}
	text, _ := json.Marshal(totals)
	s.note("  totals %s", unescaped(text))
}

// watch looks at instants at which nothing else happens.
func (s *story) watch(r *Run, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(1300*time.Millisecond + 123*time.Microsecond):
			p := r.Progress()
			s.watched(&p)
		}
	}
}

// files notes new text in files, and files that are gone. The journal is left out: it has tests of
// its own.
func (s *story) files() {
	gone := maps.Clone(s.seen)
	_ = filepath.WalkDir(s.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".journal") {
			return err
		}
		text, err := os.ReadFile(path)
		was, known := gone[path]
		delete(gone, path)
		if now := string(text); !known || now != was {
			added, appended := strings.CutPrefix(now, was)
			s.note("  %s%s:\n%s", path, map[bool]string{true: " goes on"}[known && appended], indented(added))
			s.seen[path] = now
		}
		return err
	})
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		s.note("  %s is gone", path)
		delete(s.seen, path)
	}
}

// indented returns text below a line of the story. 50 and more equal bytes in a row become a count.
func indented(text string) string {
	var b strings.Builder
	for i, n := 0, 0; i < len(text); i += n {
		for n = 1; i+n < len(text) && text[i+n] == text[i]; n++ {
		}
		switch c := text[i]; {
		case c < ' ' && c != '\n':
			fmt.Fprintf(&b, "<%d %#x>", n, c)
		case n >= 50 && c < 0x80:
			fmt.Fprintf(&b, "<%d %c>", n, c)
		default:
			b.WriteString(text[i : i+n])
		}
	}
	return "    " + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n    ")
}

func unescaped(text []byte) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(text))
}

func (s *story) keys(names ...string) {
	for _, n := range names {
		s.config.Keys = append(s.config.Keys, format.Key{Name: n, Secret: "s3cret-Of-" + n + "-9a7Kq"})
	}
}

func (s *story) header(lines ...string) {
	var err error
	if s.config.Header, err = format.ParseHeaders(lines); err != nil {
		s.Fatal(err)
	}
}

func (s *story) query(lines ...string) {
	var err error
	if s.config.Query, err = format.ParseQuery(lines); err != nil {
		s.Fatal(err)
	}
}

func (s *story) next(next, while string) {
	var err error
	if s.config.Next, err = sending.ParseNext(next, while); err != nil {
		s.Fatal(err)
	}
}

// Pages by links, over four runs: as many as allowed, with the key put in again. Links to wrong
// places are named.
func TestStoryOfLinks(t *testing.T) {
	tell(t, "pages-link", func(s *story) {
		mended := false
		s.keys("A")
		s.query("api_key={key}")
		s.next("link", "")
		s.page = func(w http.ResponseWriter, q *http.Request) {
			link := func(to string) { w.Header().Set("Link", "<"+to+`>; rel="next"`) }
			page := q.URL.Query().Get("page")
			switch q.URL.Path {
			case "/three":
				if page != "3" {
					link("?api_key=" + q.URL.Query().Get("api_key") + "&page=" + map[string]string{"": "2", "2": "3"}[page])
				}
			case "/loop":
				link("/loop?page=" + map[string]string{"": "2", "2": ""}[page])
			case "/abroad":
				link("http://elsewhere/")
			case "/nowhere":
				link("ftp://api/")
			case "/leads":
				link("http://" + q.URL.Query().Get("api_key") + "/")
			case "/breaks":
				if link("/breaks?page=2"); page == "2" && !mended {
					w.WriteHeader(http.StatusNotFound)
				} else if page == "2" {
					w.Header().Del("Link")
				}
			}
			fmt.Fprintf(w, "%s %s", q.URL.Path, page)
		}
		var lines []string
		for _, path := range []string{"three", "loop", "abroad", "nowhere", "leads", "breaks", "one"} {
			lines = append(lines, fmt.Sprintf(`{"id":%q,"url":"http://api/%s","priority":1}`, path, path))
		}
		input := strings.Join(lines, "\n")
		s.config.MaxPages = 2
		s.run("two pages of each", input)
		s.config.MaxPages = 3
		s.run("three pages of each", input)
		mended, s.config.RetryDead = true, format.AllDead
		s.run("the dead once more", input)
		s.config.RetryDead = 0
		s.run("nothing is left", input+"\n"+`{"id":"three.p2","url":"http://api/one"}`)
		s.run("nothing is left", input)
	})
}

// Pages by a cursor in the body, for as long as the answers say that there are more.
func TestStoryOfCursors(t *testing.T) {
	tell(t, "pages-body", func(s *story) {
		s.keys("A")
		s.header("Authorization: Bearer {key}")
		s.next("body:/page/cursor=/next", "/more")
		s.page = func(w http.ResponseWriter, q *http.Request) {
			var asked struct {
				Who  string
				Page struct{ Cursor any }
			}
			_ = json.NewDecoder(q.Body).Decode(&asked)
			switch at := fmt.Sprint(asked.Page.Cursor); asked.Who + " " + at {
			case "text <nil>":
				fmt.Fprint(w, `{"more":true,"next":"c\"2"}`)
			case `text c"2`:
				fmt.Fprint(w, `{"more":true,"next":7}`)
			case "text 7":
				fmt.Fprint(w, `{"more":false,"next":8}`)
			case "null <nil>":
				fmt.Fprint(w, `{"more":true,"next":null}`)
			case "key <nil>":
				fmt.Fprintf(w, `{"more":true,"next":%q}`, s.config.Keys[0].Secret)
			case "same <nil>", "same x":
				fmt.Fprint(w, `{"more":true,"next":"x"}`)
			case "list <nil>":
				fmt.Fprint(w, `{"more":true,"next":[1]}`)
			case "words <nil>":
				fmt.Fprint(w, `no JSON`)
			case "long <nil>":
				fmt.Fprintf(w, `{"more":true,"next":"x","text":%q}`, strings.Repeat("x", 300))
			case "none <nil>":
				w.WriteHeader(http.StatusNoContent)
			}
		}
		s.config.MaxResponse = 200
		var lines []string
		for _, who := range []string{"text", "null", "key", "same", "list", "words", "long", "none"} {
			lines = append(lines, fmt.Sprintf(`{"id":%q,"method":"POST","url":"http://api/","body":{"who":%q,"page":{}}}`, who, who))
		}
		lines = append(lines, `{"id":"noplace","method":"POST","url":"http://api/","body":{"who":"text"}}`)
		s.run("all", strings.Join(lines, "\n"))
		s.run("nothing is left", strings.Join(lines, "\n"))
	})
}

// Pages by a cursor in the query, and by a URL in the answer, broken off between two pages.
func TestStoryOfPagesBrokenOff(t *testing.T) {
	for _, next := range []string{"cursor=/next", "/url"} {
		tell(t, "pages-"+strings.Trim(strings.Split(next, "=")[0], "/"), func(s *story) {
			s.next(next, "")
			s.page = func(w http.ResponseWriter, q *http.Request) {
				if at := q.URL.Query().Get("cursor"); at < "3" {
					n := map[string]int{"": 1, "1": 2, "2": 3}[at]
					fmt.Fprintf(w, `{"next":%d,"url":"/list?q=a+b&cursor=%d"}`, n, n)
				} else {
					fmt.Fprint(w, `{"next":"","url":false}`)
				}
			}
			const input = `{"id":"list","url":"http://user:pass@api/list?q=a+b"}` + "\n" + `{"id":"other","url":"http://api/list?cursor=3"}`
			for n := 1; n <= 5; n++ {
				s.config.MaxPages = n
				s.run(fmt.Sprintf("at most %d", n), input)
			}
		})
	}
}

// A file for each body: named once its line is there, with secrets hidden. Some are too long, some
// fail, and a later run finds those of an earlier one.
func TestStoryOfBodies(t *testing.T) {
	tell(t, "bodies", func(s *story) {
		s.keys("A")
		s.header("Authorization: Bearer {key}")
		s.config.OutDir, s.config.MaxFile, s.config.MaxResponse = filepath.Join(s.folder, "bodies"), 100<<10, 1<<10
		s.config.Dead = filepath.Join(s.folder, "dead.jsonl")
		s.page = func(w http.ResponseWriter, q *http.Request) {
			key := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
			w.Header().Set("Content-Type", map[string]string{"/json": "application/json", "/png": "image/png"}[q.URL.Path])
			switch q.URL.Path {
			case "/json":
				fmt.Fprintf(w, `{"key":%q}`, key)
			case "/png":
				_, _ = w.Write([]byte{0xff, 0, 1})
			case "/long": // the key crosses the end of one read
				fmt.Fprint(w, strings.Repeat("x", 64<<10-10), key, strings.Repeat("y", 10<<10), key[:12])
			case "/part": // the part may begin and end within a key
				w.WriteHeader(http.StatusPartialContent)
				fmt.Fprint(w, key[9:], " ", strings.Repeat("z", 1200), " ", key[:9])
			case "/most":
				fmt.Fprint(w, strings.Repeat("m", 100<<10))
			case "/more":
				fmt.Fprint(w, strings.Repeat("m", 100<<10+1))
			case "/broken":
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, strings.Repeat("b", 3000))
			case "/fails":
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, "no")
			}
		}
		var lines []string
		for _, path := range []string{"json", "png", "long", "part", "most", "more", "broken", "fails", "empty"} {
			lines = append(lines, request("a/"+path, "http://api/"+path))
		}
		input := strings.Join(lines, "\n")
		s.run("all", input)

		// After a power cut, two bodies have a line and no name, and one of them is incomplete. One
		// body was removed, and one has no line.
		bodies := s.config.OutDir
		if err := os.Mkdir(filepath.Join(bodies, "results.unfinished"), 0o700); err != nil {
			s.Fatal(err)
		}
		move := func(name string) string {
			to := filepath.Join(bodies, "results.unfinished", filepath.Base(name))
			if err := os.Rename(name, to); err != nil {
				s.Fatal(err)
			}
			return to
		}
		named := func(like string) string {
			all, _ := filepath.Glob(filepath.Join(bodies, like))
			if len(all) != 1 {
				s.Fatalf("%s: %q", like, all)
			}
			return all[0]
		}
		move(named("*json.json"))
		half := move(named("*png*"))
		if err := os.WriteFile(half, []byte{0xff, 0, 0}, 0o600); err != nil {
			s.Fatal(err)
		}
		if err := os.Remove(named("*part*")); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bodies, "results.unfinished", "of-nobody"), []byte("half"), 0o600); err != nil {
			s.Fatal(err)
		}
		s.run("after a power cut", input)
		if _, err := os.Stat(filepath.Join(bodies, "results.unfinished")); err == nil {
			s.Error("the folder of what is unfinished stays")
		}
		s.config.RetryDead = format.AllDead
		s.run("the dead once more", strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "broken") }), "\n"))
	})
}
