package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit/mono"
)

// archive has lists of so many pages each. It limits arrivals in a rolling window.
type archive struct {
	*httptest.Server
	pages int // of each list; 0: without end
	// elsewhere, if not empty, is where its links begin.
	elsewhere string
	answer    func(list, page int) (status int, body string) // nil, or of these another answer; 0: as ever

	mu     sync.Mutex
	rule   rule.Amendable
	began  time.Time
	served map[string]int // by list and page
	order  []string
	late   int
	keys   map[string]int // by what came as a key
}

const archiveLimit = 60

func newArchive(t *testing.T, pages int) *archive {
	t.Helper()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: archiveLimit, Window: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	l := &archive{pages: pages, rule: r, began: time.Now(), served: map[string]int{}, keys: map[string]int{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *archive) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.rule.Arrive(mono.Time(time.Since(l.began)), 1) {
		l.late++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	l.keys[q.Header.Get("X-Key")]++
	query := q.URL.Query()
	list, _ := strconv.Atoi(query.Get("list"))
	page := 1
	if p := query.Get("page"); p != "" {
		page, _ = strconv.Atoi(p)
	}
	if q.Method == http.MethodPost {
		var in struct {
			List  int    `json:"list"`
			Start string `json:"start_cursor"`
		}
		text, _ := io.ReadAll(q.Body)
		_ = json.Unmarshal(text, &in)
		list = in.List
		if in.Start != "" {
			page, _ = strconv.Atoi(strings.TrimPrefix(in.Start, "c"))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	name := fmt.Sprintf("%d/%d", list, page)
	if l.answer != nil {
		if status, body := l.answer(list, page); status != 0 {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	l.served[name]++
	l.order = append(l.order, name)
	last := page == l.pages
	next := fmt.Sprintf("%s/items?list=%d&page=%d", l.elsewhere, list, page+1)
	body := map[string]any{"you": name, "has_more": !last}
	if !last {
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next", </items?list=%d>; rel="first"`, next, list))
		body["next"], body["cursor"], body["next_cursor"] = next, page+1, fmt.Sprint("c", page+1)
	} else {
		body["next"], body["next_cursor"], body["cursor"] = nil, nil, 7
	}
	_ = json.NewEncoder(w).Encode(body)
}

// lists is an input of n lists.
func (l *archive) lists(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"l%d\",\"url\":\"%s/items?list=%d\"}\n", i, l.URL, i)
	}
	return b.String()
}

func pagesRun(in, out string, args ...string) []string {
	return append([]string{"run", "--limit", fmt.Sprintf("%d/200ms", archiveLimit), "--progress", "off", "--backoff-base", "1ms", "--out", out, in}, args...)
}

// isRead says that every page of n lists was served once and has its result.
func (l *archive) isRead(t *testing.T, out string, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late > 0 {
		t.Errorf("%d arrivals over the limit", l.late)
	}
	all := map[string]format.Result{}
	for _, r := range results(t, out) {
		if _, twice := all[r.ID]; twice {
			t.Errorf("%s is there twice", r.ID)
		}
		all[r.ID] = r
	}
	for i := range n {
		for page := 1; page <= l.pages; page++ {
			id, name := fmt.Sprintf("l%d", i), fmt.Sprintf("%d/%d", i, page)
			if page > 1 {
				id += fmt.Sprintf(".p%d", page)
			}
			r := all[id]
			if r.Body == nil || !strings.Contains(*r.Body, `"you":"`+name+`"`) || (r.Next == "") != (page == l.pages) || page > 1 && r.Page != page || page == 1 && r.Page != 0 {
				t.Errorf("%s: %+v", id, r)
			}
			if s := l.served[name]; s != 1 && !(s > 1 && r.PossibleRepeat) {
				t.Errorf("%s was served %d times", name, s)
			}
		}
	}
	if len(all) != n*l.pages {
		t.Errorf("%d results for %d pages", len(all), n*l.pages)
	}
}

// Pages are followed by a link, a URL or a cursor, each page once and within the limit, and what
// has begun is finished first.
func TestRunPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"link", []string{"--next", "link"}},
		{"a URL", []string{"--next", "/next"}},
		{"a cursor", []string{"--next", "page=/cursor", "--next-while", "/has_more"}},
		{"a cursor in the body", []string{"--next", "body:/start_cursor=/next_cursor"}},
		{"one at a time", []string{"--next", "link", "--concurrency", "1"}},
		{"files", []string{"--next", "/next", "--out-dir", "DIR"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newArchive(t, 7)
			const n = 12
			lines := l.lists(n)
			if c.name == "a cursor in the body" {
				var b strings.Builder
				for i := range n {
					fmt.Fprintf(&b, "{\"id\":\"l%d\",\"method\":\"POST\",\"url\":\"%s/query\",\"body\":{\"list\":%d,\"size\":10}}\n", i, l.URL, i)
				}
				lines = b.String()
			}
			dir := t.TempDir()
			out := filepath.Join(dir, "out.jsonl")
			args := pagesRun(write(t, "in.jsonl", lines), out, c.args...)
			if c.name == "files" {
				args = append([]string{"run", "--limit", fmt.Sprintf("%d/200ms", archiveLimit), "--progress", "off", "--out-dir", dir}, append(c.args[:2], args[len(args)-5])...)
			}
			code, _, stderr := paceline("", args...)
			if code != 0 || !strings.Contains(stderr, "84 to send, 84 done, 0 rejected, 0 expired, 0 dead, 0 lost, 72 of them further pages") {
				t.Fatalf("exit code %d: %s", code, last(stderr))
			}
			if c.name == "files" {
				if text, err := os.ReadFile(filepath.Join(dir, "l3.p7.json")); err != nil || !strings.Contains(string(text), `"you":"3/7"`) {
					t.Errorf("%s, %v", text, err)
				}
				return
			}
			l.isRead(t, out, n)
			if c.name == "one at a time" {
				for i, name := range l.order {
					if want := fmt.Sprintf("%d/%d", i/7, i%7+1); name != want {
						t.Fatalf("%d came as %s, want %s", i, name, want)
					}
				}
			}
			code, _, stderr = paceline("", args...)
			if code != 0 || !strings.Contains(stderr, "0 to send, 0 done, 0 rejected, 0 expired, 0 dead, 0 lost, 12 done before") {
				t.Errorf("again: exit code %d: %s", code, last(stderr))
			}
			l.isRead(t, out, n)
		})
	}
}

// A run is killed in the middle of its chains again and again: no page that is done is sent again,
// and each goes on where it was.
func TestRunPagesKilled(t *testing.T) {
	race.Without(t) // TestRunBatchKilled resumes with it
	t.Parallel()
	need.NotShort(t, "TestRunRowsKilled kills a run")
	l := newArchive(t, 25)
	const n = 20
	in, dir := write(t, "in.jsonl", l.lists(n)), t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	kills := 0
	for end := time.Now().Add(patient); ; {
		var errs bytes.Buffer
		c := program(t, pagesRun(in, out, "--next", "/next", "--concurrency", "8")...)
		c.Stderr = &errs
		before := l.all()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		done := false
		for l.all() < before+70 && !done {
			select {
			case err := <-ended:
				if done = true; err != nil {
					t.Fatalf("%v: %s", err, last(errs.String()))
				}
			case <-time.After(3 * time.Millisecond):
			}
			if time.Now().After(end) {
				t.Fatal("not done in ", patient)
			}
		}
		if done {
			break
		}
		_ = c.Process.Kill()
		<-ended
		kills++
	}
	if kills < 3 {
		t.Errorf("%d kills", kills)
	}
	l.isRead(t, out, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	repeats := 0
	for _, s := range l.served {
		repeats += s - 1
	}
	if repeats > kills*8 { // what was in flight
		t.Errorf("%d pages were sent again after %d kills", repeats, kills)
	}
}

func (l *archive) all() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.order)
}

// A page that fails is tried again for itself, and one that is dead ends its chain; --retry-dead
// goes on with it.
func TestRunPagesThatFail(t *testing.T) {
	l := newArchive(t, 5)
	tries := map[string]int{}
	l.answer = func(list, page int) (int, string) {
		name := fmt.Sprintf("%d/%d", list, page)
		tries[name]++
		switch {
		case list == 0 && tries[name] <= 2: // each page three times
			return http.StatusInternalServerError, ""
		case name == "1/3":
			return http.StatusNotFound, ""
		case name == "2/2":
			return http.StatusOK, "<html>please log in</html>"
		}
		return 0, ""
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	args := pagesRun(write(t, "in.jsonl", l.lists(4)), out, "--next", "/next", "--attempts", "3")
	code, _, stderr := paceline("", args...)
	if code != cli.ExitSomeFailed || !strings.Contains(stderr, "15 to send, 13 done, 0 rejected, 0 expired, 2 dead, 0 lost, 11 of them further pages") {
		t.Fatalf("exit code %d: %s", code, last(stderr))
	}
	dead := results(t, filepath.Join(dir, "out.dead.jsonl"))
	for _, r := range dead {
		want := map[string]string{
			"l1.p3": fmt.Sprintf(`invalid 1 {"id":"l1.p3","url":"%s/items?list=1\u0026page=3"} answered 404 Not Found`, l.URL),
			"l2.p2": fmt.Sprintf(`invalid 3 {"id":"l2.p2","url":"%s/items?list=2\u0026page=2"} answered 200 OK, which is no JSON, so that the next page (--next) is not to be found`, l.URL),
		}[r.ID]
		if got := fmt.Sprint(r.Class, " ", r.Attempts, " ", string(r.Request), " ", r.Error); got != want {
			t.Errorf("%s: %s\nwant %s", r.ID, got, want)
		}
	}
	for _, r := range results(t, out) {
		if strings.HasPrefix(r.ID, "l0") && r.Attempts != 3 {
			t.Errorf("%s took %d attempts", r.ID, r.Attempts)
		}
	}
	if code, _, stderr := paceline("", args...); code != cli.ExitSomeFailed || !strings.Contains(stderr, "0 to send, 0 done, 0 rejected, 0 expired, 0 dead, 0 lost, 2 of them further pages, 4 done before, 2 dead before") {
		t.Errorf("again: exit code %d: %s", code, last(stderr))
	}
	l.answer = nil
	if code, _, stderr := paceline("", append(args, "--retry-dead")...); code != 0 || !strings.Contains(stderr, "7 to send, 7 done") {
		t.Errorf("the dead again: exit code %d: %s", code, last(stderr))
	}
	l.isRead(t, out, 4)
}

// Endless lists end: at a page that was there before, and at the largest number of pages. A larger
// --max-pages continues.
func TestRunPagesWithoutEnd(t *testing.T) {
	l := newArchive(t, 0)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	args := pagesRun(write(t, "in.jsonl", l.lists(2)), out, "--next", "link")
	code, _, stderr := paceline("", append(args, "--max-pages", "4")...)
	if code != 0 || !strings.Contains(stderr, "has more than 4 pages (--max-pages)") || !strings.Contains(stderr, "8 done") || !strings.Contains(stderr, "2 with more pages (--max-pages)") {
		t.Errorf("exit code %d: %s", code, last(stderr))
	}
	if code, _, stderr = paceline("", append(args, "--max-pages", "4")...); code != 0 || !strings.Contains(stderr, "0 done") || !strings.Contains(stderr, "2 with more pages") {
		t.Errorf("again: exit code %d: %s", code, last(stderr))
	}
	l.pages = 6
	if code, _, stderr = paceline("", args...); code != 0 || !strings.Contains(stderr, "4 done") {
		t.Errorf("with more: exit code %d: %s", code, last(stderr))
	}
	l.isRead(t, out, 2)

	// The pages of an earlier run are known.
	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n, _ := strconv.Atoi(q.URL.Query().Get("page"))
		fmt.Fprintf(w, `{"next":"?page=%d"}`, 1+n%3)
	}))
	defer circle.Close()
	dir = t.TempDir()
	args = pagesRun(write(t, "in.jsonl", `{"id":"a","url":"`+circle.URL+`/?page=1"}`), filepath.Join(dir, "out.jsonl"), "--next", "/next")
	_, _, _ = paceline("", append(args, "--max-pages", "2")...)
	code, _, stderr = paceline("", args...)
	dead := results(t, filepath.Join(dir, "out.dead.jsonl"))
	if code != cli.ExitSomeFailed || len(dead) != 1 || dead[0].ID != "a.p4" || dead[0].Class != "loop" || dead[0].Attempts != 0 || !strings.Contains(stderr, "1 done,") {
		t.Errorf("exit code %d, %+v: %s", code, dead, last(stderr))
	}
}

// No file may grow beyond a few kB in the middle of the chains: nothing is lost, and where there is
// room again they go on.
func TestRunPagesOnAFullDisk(t *testing.T) {
	t.Parallel()
	sh := need.Program(t, "sh")
	l := newArchive(t, 10)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	args := pagesRun(write(t, "in.jsonl", l.lists(10)), out, "--next", "/next", "--concurrency", "4")
	c := program(t, args...)
	c.Args = append([]string{"sh", "-c", `ulimit -f 16 && exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path = sh
	said, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "file too large") || strings.Contains(string(said), "add up") || l.all() >= 100 || l.all() < 20 {
		t.Fatalf("%v, %d arrived: %s", err, l.all(), said)
	}
	if code, _, stderr := paceline("", args...); code != 0 || !strings.Contains(stderr, "0 lost") {
		t.Errorf("exit code %d: %s", code, last(stderr))
	}
	l.isRead(t, out, 10)
}

// A link to another host is not followed, with a key or without, unless it is named; a key that a
// link repeats is neither kept nor lost.
func TestRunPagesStayHome(t *testing.T) {
	abroad := newArchive(t, 3)
	l := newArchive(t, 3)
	l.elsewhere = strings.Replace(abroad.URL, "127.0.0.1", "localhost", 1)
	abroad.elsewhere = l.elsewhere
	in, dir := write(t, "in.jsonl", l.lists(1)), t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	args := pagesRun(in, out, "--next", "link", "--key-env", "PL_SECRET", "--header", "X-Key: {key}")
	code, _, stderr := paceline("", args...)
	dead := results(t, filepath.Join(dir, "out.dead.jsonl"))
	if code != cli.ExitSomeFailed || len(dead) != 1 || dead[0].Class != "redirect" || dead[0].ID != "l0.p2" || abroad.all() != 0 ||
		dead[0].Error != "not followed to "+strings.TrimPrefix(l.elsewhere, "http://")+": the next page is at another host (--key-host)" {
		t.Fatalf("exit code %d, %+v: %s", code, dead, last(stderr))
	}
	code, _, stderr = paceline("", append(args, "--retry-dead", "--key-host", strings.TrimPrefix(l.elsewhere, "http://")+","+strings.TrimPrefix(l.URL, "http://"))...)
	if code != 0 || abroad.keys[aSecret] != 2 {
		t.Errorf("where it is named: exit code %d, %v: %s", code, abroad.keys, last(stderr))
	}

	echo := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) {
		query := q.URL.Query()
		page, _ := strconv.Atoi(query.Get("page"))
		if query.Set("page", strconv.Itoa(page+1)); page < 3 {
			fmt.Fprintf(w, `{"next":"?%s"}`, query.Encode())
		}
	})
	dir = t.TempDir()
	code, stdout, stderr := paceline("", pagesRun(write(t, "in.jsonl", `{"id":"a","url":"`+echo.url+`/"}`), filepath.Join(dir, "out.jsonl"), "--next", "/next",
		"--key-env", "PL_SECRET", "--query", "api_key={key}", "--log-level", "debug")...)
	if code != 0 || strings.Count(echo.saw("/"), "api_key=") != 4 {
		t.Errorf("exit code %d: %s\n%s", code, last(stderr), echo.saw("/"))
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		text, _ := os.ReadFile(name)
		isShown(t, filepath.Base(name), string(text))
	}
	isShown(t, "what was said", stdout+stderr)
}

// An id of the input cannot be that of a page of another, in whichever order they come.
func TestRunPagesIDs(t *testing.T) {
	l := newArchive(t, 3)
	for _, lines := range []string{
		`{"id":"a","url":"URL"}` + "\n" + `{"id":"a.p2","url":"URL"}`,
		`{"id":"a.p2","url":"URL"}` + "\n" + `{"id":"a","url":"URL"}`,
	} {
		for _, in := range []string{"-", "file"} {
			lines := strings.ReplaceAll(lines, "URL", l.URL+"/items?list=1")
			args := []string{"run", "--limit", "none", "--next", "link", "--progress", "off", "-"}
			if in != "-" {
				args[len(args)-1] = write(t, "in.jsonl", lines)
			}
			code, _, stderr := paceline(lines, args...)
			if code != map[string]int{"-": cli.ExitSomeFailed, "file": cli.ExitConfig}[in] || !strings.Contains(stderr, ":2:7: id ") || !strings.Contains(stderr, "(--next)") {
				t.Errorf("%s: exit code %d: %s", in, code, last(stderr))
			}
		}
	}
	// The page was led and done before the line that has its id was read.
	in, feed := io.Pipe()
	led := make(chan struct{})
	l.answer = func(list, page int) (int, string) {
		if list == 7 && page == 3 {
			close(led)
		}
		return 0, ""
	}
	go func() {
		fmt.Fprintf(feed, `{"id":"a","url":"%s/items?list=7"}`+"\n", l.URL)
		<-led
		fmt.Fprintf(feed, `{"id":"a.p2","url":"%s/items?list=8"}`, l.URL)
		feed.Close()
	}()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"run", "--limit", "none", "--next", "link", "--progress", "off", "-"}, in, &out, &errs); code != cli.ExitSomeFailed ||
		!strings.Contains(errs.String(), `:2:7: id "a.p2" is that of page 2 of "a" on line 1 (--next)`) {
		t.Errorf("a page before its id: exit code %d: %s", code, last(errs.String()))
	}
	// An id in the form of a page is an ordinary id if the first page does not exist.
	if code, _, stderr := paceline(`{"id":"a.p2","url":"`+l.URL+`/items?list=5"}`, "run", "--limit", "none", "--next", "link", "--progress", "off", "-"); code != 0 || !strings.Contains(stderr, "3 done") {
		t.Errorf("exit code %d: %s", code, last(stderr))
	}
}

func TestRunPagesFlags(t *testing.T) {
	in := write(t, "in.jsonl", numbered(1, "http://127.0.0.1:1/"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--next", "next"}, `--next "next", expected link, a JSON pointer to a URL`},
		{[]string{"--next", "body:a=/b"}, "expected body:POINTER=POINTER"},
		{[]string{"--next", "/a~x"}, "after ~ comes 0 or 1"},
		{[]string{"--next", "link", "--next-while", "more"}, "is no JSON pointer"},
		{[]string{"--next-while", "/more"}, "are for --next"},
		{[]string{"--max-pages", "3"}, "are for --next"},
		{[]string{"--next", "link", "--max-pages", "0"}, "--max-pages 0, expected at least 1"},
		{[]string{"--next", "page=/c", "--query", "page=1"}, "the first would take the place of every cursor"},
	} {
		code, _, stderr := paceline("", append([]string{"run", "--limit", "none", in}, c.args...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d: %s; want %s", c.args, code, stderr, c.want)
		}
	}
}
