package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/work"
)

// said runs a command line, and returns what it wrote. It fails if the exit code is another one.
func said(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	var o, e strings.Builder
	if got := execute(context.Background(), args, strings.NewReader(""), &o, &e); got != code {
		t.Fatalf("%q: exit %d, expected %d\n%s%s", args, got, code, &o, &e)
	}
	return o.String(), e.String()
}

// counting is a server that counts the requests of each path. Paths with "missing" are not there.
type counting struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
	auth string // the latest
}

func countingServer(t *testing.T) *counting {
	c := &counting{seen: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[q.URL.Path]++
		c.auth = q.Header.Get("Authorization")
		if strings.Contains(q.URL.Path, "missing") {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `{"path":%q}`, q.URL.Path)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counting) once(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) != n {
		t.Errorf("%d paths were asked for, expected %d", len(c.seen), n)
	}
	for path, times := range c.seen {
		if times != 1 {
			t.Errorf("%s was sent %d times, expected once", path, times)
		}
	}
}

// inOrder reads lines of results, and checks that they are those of ids in their order.
func inOrder(t *testing.T, text string, ids ...string) (all []format.Result) {
	t.Helper()
	var got []string
	for line := range strings.Lines(text) {
		var r format.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all, got = append(all, r), append(got, r.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("results of %q, expected %q", got, ids)
	}
	return all
}

func TestBacklogEnqueueWorkResults(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "jobs.db")
	file := linesFile(t, dir, "requests.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`, `{"id":"b","method":"POST","url":"`+server.URL+`/missing","body":{"x":1}}`,
		`{"id":"c","url":"`+server.URL+`/c","priority":1}`)
	if out, _ := said(t, cli.ExitOK, "enqueue", file, "--backlog", store); !strings.Contains(out, "3 of 3 requests added") {
		t.Errorf("enqueue says %q", out)
	}
	if out, _ := said(t, cli.ExitOK, "enqueue", file, "--backlog", store); !strings.Contains(out, "0 of 3 requests added") || !strings.Contains(out, "3 were there already") {
		t.Errorf("the same enqueue says %q", out)
	}
	other := linesFile(t, dir, "other.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`, `{"id":"b","url":"`+server.URL+`/other"}`,
		`{"id":"c","url":"`+server.URL+`/other"}`)
	if out, _ := said(t, cli.ExitOK, "enqueue", other, "--backlog", store); !strings.HasSuffix(out,
		"; 3 were there already, 2 of them with other content, which stays: the first is b\n") {
		t.Errorf("enqueue of other content says %q", out)
	}
	out, errs := said(t, cli.ExitOK, "backlog", "results", store)
	if out != "" || !strings.Contains(errs, "3 of 3 requests have no result yet") {
		t.Errorf("results before work: %q, %q", out, errs)
	}
	_, errs = said(t, cli.ExitSomeFailed, "work", "--backlog", store, "--limit", "none", "--until-empty", "--progress", "off")
	if !strings.Contains(errs, "3 requests, 0 ended before; 0 workers here before this one") {
		t.Errorf("work says %q", errs)
	}
	server.once(t, 3)
	out, errs = said(t, cli.ExitOK, "backlog", "results", store)
	all := inOrder(t, out, "a", "b", "c")
	if all[0].State != "done" || all[1].State != "dead" || all[1].Class != "invalid" || errs != "" {
		t.Errorf("results: %+v; %q", all, errs)
	}
	if out, _ = said(t, cli.ExitOK, "backlog", "results", store, "--select", "id=.id, path=.body.path", "--format", "csv"); out != "id,path\na,/a\nc,/c\n" {
		t.Errorf("as a table: %q", out)
	}
	if out, _ = said(t, cli.ExitOK, "backlog", "results", store, "--state", "dead"); inOrder(t, out, "b") == nil {
		t.Error("expected the dead one")
	}
	if out, _ = said(t, cli.ExitOK, "backlog", "ls", store); !strings.Contains(out, "finished") || !strings.Contains(out, "default") {
		t.Errorf("ls: %q", out)
	}
}

func linesFile(t *testing.T, dir, name string, lines ...string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBacklogRun(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	store, out := "sqlite:"+filepath.Join(dir, "jobs.db"), filepath.Join(dir, "results.jsonl")
	file := linesFile(t, dir, "people.csv", "name,at", "ann,a", "bob,missing", "cid,c")
	args := []string{"run", file, "--url", server.URL + "/{row.at}", "--id", "{row.name}", "-H", "X-Name: {row.name}", "--backlog", store,
		"--limit", "none", "--out", out, "--progress", "off"}
	dry := append(args[:len(args):len(args)], "--dry-run")
	if plan, _ := said(t, cli.ExitOK, dry...); !strings.Contains(plan, "3 to send") || strings.Contains(plan, "of the backlog") {
		t.Errorf("the plan without a backlog: %q", plan)
	}
	if _, err := os.Stat(filepath.Join(dir, "jobs.db")); err == nil {
		t.Error("the dry run has made a store")
	}
	said(t, cli.ExitOK, "enqueue", linesFile(t, dir, "more.jsonl", `{"id":"dan","url":"`+server.URL+`/d"}`), "--backlog", store)
	if plan, _ := said(t, cli.ExitOK, dry...); !strings.Contains(plan, "1 of 1 requests of the backlog have no result yet") {
		t.Errorf("the plan with a backlog: %q", plan)
	}
	server.once(t, 0)
	said(t, cli.ExitSomeFailed, args...)
	said(t, cli.ExitSomeFailed, args...) // it goes on where the other ended: there is nothing to do
	server.once(t, 4)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, string(text), "dan", "ann", "cid")
	if text, err = os.ReadFile(filepath.Join(dir, "results.dead.jsonl")); err != nil {
		t.Fatal(err)
	}
	if letters := inOrder(t, string(text), "bob"); !strings.Contains(string(letters[0].Request), `"X-Name":"bob"`) {
		t.Errorf("the dead letter has the request %s, expected what the template took from its row", letters[0].Request)
	}
	if _, errs := said(t, cli.ExitConfig, "run", file, "--url", server.URL+"/{row.at}", "--backlog", store, "--limit", "none", "--select", "id=.id", "--out", file); !strings.Contains(errs, "is the input") {
		t.Errorf("results over the input: %q", errs)
	}
	before := linesFile(t, dir, "before.jsonl", `{"id":"x","state":"cancelled","attempts":0}`)
	said(t, cli.ExitSomeFailed, "run", file, "--url", server.URL+"/{row.at}", "--backlog", store, "--limit", "none",
		"--out", before)
	other := linesFile(t, dir, "other.txt", "not results")
	if _, errs := said(t, cli.ExitConfig, "run", file, "--url", server.URL+"/{row.at}", "--backlog", store, "--limit", "none", "--out", other); !strings.Contains(errs, "is this the right file?") {
		t.Errorf("results over another file: %q", errs)
	}
}

// A key is filled in when a request is sent, and goes only to servers that are named. The file of the backlog does not
// have it.
func TestBacklogKeysStayOut(t *testing.T) {
	server, dir := countingServer(t), t.TempDir()
	db := filepath.Join(dir, "jobs.db")
	const key = "s3cret-Of-9a7Kq-backlog"
	t.Setenv("BACKLOG_KEY", key)
	file := linesFile(t, dir, "requests.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`)
	said(t, cli.ExitOK, "enqueue", file, "--backlog", "sqlite:"+db)
	args := []string{"work", "--backlog", "sqlite:" + db, "--limit", "none", "--until-empty", "--key-env", "BACKLOG_KEY", "-H", "Authorization: Bearer {key}"}
	if _, errs := said(t, cli.ExitUsage, args...); !strings.Contains(errs, "--key-host") {
		t.Errorf("without --key-host: %q", errs)
	}
	said(t, cli.ExitOK, append(args, "--key-host", strings.TrimPrefix(server.URL, "http://"))...)
	if server.auth != "Bearer "+key {
		t.Errorf("the server got %q", server.auth)
	}
	all, err := filepath.Glob(db + "*")
	if err != nil || len(all) == 0 {
		t.Fatal(err, all)
	}
	for _, name := range all {
		if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), key) {
			t.Errorf("%s has the key (%v)", name, err)
		}
	}
	secret := linesFile(t, dir, "secret.jsonl", `{"id":"s","url":"`+server.URL+`/s","headers":{"Authorization":"Bearer abcdefgh12345"}}`)
	if _, errs := said(t, cli.ExitConfig, "enqueue", secret, "--backlog", "sqlite:"+db); !strings.Contains(errs, "header Authorization") || !strings.Contains(errs, "nothing was added") {
		t.Errorf("a secret of its own: %q", errs)
	}
	said(t, cli.ExitOK, "enqueue", secret, "--backlog", "sqlite:"+db, "--store-secrets")
}

// What cannot be stored is found before the first request is added, however long the file is.
func TestBacklogEnqueuesAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := make([]string, 6000)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"id":"r%d","url":"http://h/%d"}`, i, i)
	}
	for name, last := range map[string]string{
		"a secret":   `{"id":"last","url":"http://h/","headers":{"Authorization":"Bearer abcdefgh12345"}}`,
		"a priority": `{"id":"last","url":"http://h/","priority":2000000}`,
		"an id":      `{"id":"` + strings.Repeat("x", 510) + `","url":"http://h/"}`,
	} {
		lines[len(lines)-1] = last
		db := filepath.Join(dir, "jobs.db")
		_, errs := said(t, cli.ExitConfig, "enqueue", linesFile(t, dir, "many.jsonl", lines...), "--backlog", "sqlite:"+db)
		if _, err := os.Stat(db); err == nil || !strings.Contains(errs, "many.jsonl:6000:") || !strings.Contains(errs, "nothing was added") {
			t.Errorf("%s: %q, expected the place, and no store", name, errs)
		}
	}
}

// Requests of a pipe that does not end are added soon.
func TestBacklogEnqueuesFromAPipe(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "jobs.db")
	in, pipe := io.Pipe()
	var out, errs strings.Builder
	code := make(chan int)
	go func() {
		code <- execute(context.Background(), []string{"enqueue", "-", "--backlog", "sqlite:" + db}, in, &out, &errs)
	}()
	fmt.Fprintln(pipe, `{"id":"a","url":"http://h/"}`)
	for deadline := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		var ls strings.Builder
		if execute(context.Background(), []string{"backlog", "show", "sqlite:" + db}, in, &ls, io.Discard) == cli.ExitOK && strings.Contains(ls.String(), "1 request, 1 ready") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the first request of an open pipe was not added")
		}
	}
	fmt.Fprintln(pipe, `{"id":"b","url":"http://h/"}`)
	pipe.Close()
	if got := <-code; got != cli.ExitOK || !strings.Contains(out.String(), "2 of 2 requests added") {
		t.Errorf("exit %d: %s%s", got, &out, &errs)
	}
}

func TestBacklogVerbs(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "jobs.db")
	file := linesFile(t, dir, "urls.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`, `{"id":"b","url":"`+server.URL+`/missing"}`, `{"id":"c","url":"`+server.URL+`/c"}`)
	said(t, cli.ExitOK, "enqueue", file, "--backlog", store, "--backlog-name", "mails")
	says := func(expected string, args ...string) {
		t.Helper()
		if out, _ := said(t, cli.ExitOK, append([]string{"backlog"}, args...)...); !strings.Contains(out, expected) {
			t.Errorf("backlog %q says %q, expected %q", args, out, expected)
		}
	}
	says("3 requests, 3 ready", "show", store, "mails")
	says("paused", "pause", store, "mails")
	says("mails: paused", "show", store, "mails")
	says("goes on", "resume", store, "mails")
	says("1 request is cancelled; the others", "cancel", store, "mails", "c", "nobody")
	work := []string{"work", "--backlog", store, "--backlog-name", "mails", "--limit", "none", "--until-empty", "--progress", "off"}
	said(t, cli.ExitSomeFailed, work...)
	says("2 ", "results", store, "mails", "--select", `text="2 \(.id)"`, "--state", "done,dead")
	says(`"state":"cancelled"`, "results", store, "mails", "--state", "cancelled")
	says("0 requests wait again", "retry-dead", store, "mails", "--class", "outage")
	says("1 request waits again", "retry-dead", store, "mails")
	said(t, cli.ExitSomeFailed, work...)
	if server.seen["/missing"] != 2 || server.seen["/c"] != 0 || server.seen["/a"] != 1 {
		t.Errorf("sent %v, expected the dead one twice and the cancelled one never", server.seen)
	}
	says("removed", "rm", store, "mails")
	said(t, cli.ExitConfig, "backlog", "show", store, "mails")
}

func TestBacklogBadInput(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	db := filepath.Join(dir, "jobs.db")
	store := "sqlite:" + db
	good := linesFile(t, dir, "good.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`)
	twice := linesFile(t, dir, "twice.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`, `{"id":"b","url":"`+server.URL+`/b"}`, `{"id":"a","url":"`+server.URL+`/c"}`)
	batch := linesFile(t, dir, "batch.jsonl", strings.TrimSpace(chats("a", "m", 1)), `{"custom_id":"b","method":"GET","url":"/v1/responses","body":{}}`)
	none := "sqlite:" + filepath.Join(dir, "none.db")
	for _, c := range []struct {
		code     int
		expected string
		args     []string
	}{
		{cli.ExitConfig, "there is no store of backlogs", []string{"work", "--backlog", none, "--limit", "none"}},
		{cli.ExitConfig, "there is no store of backlogs", []string{"backlog", "ls", none}},
		{cli.ExitConfig, "there is no store of backlogs", []string{"backlog", "results", none}},
		{cli.ExitConfig, `id "a" is already on line 1`, []string{"enqueue", twice, "--backlog", store}},
		{cli.ExitUsage, "--backlog is required", []string{"enqueue", good}},
		{cli.ExitUsage, "--backlog is required", []string{"work", "--limit", "none"}},
		{cli.ExitConfig, "expected sqlite:FILE or postgres://", []string{"enqueue", good, "--backlog", "jobs.db"}},
		{cli.ExitUsage, "--via with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "--via", "batch"}},
		{cli.ExitUsage, "--ordered with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "--ordered"}},
		{cli.ExitUsage, "--out-dir with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "--out-dir", dir}},
		{cli.ExitUsage, "--retry-dead with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "--retry-dead"}},
		{cli.ExitUsage, "--next with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "--next", "link"}},
		{cli.ExitUsage, "--tpm: the tokens of GET /a cannot be counted", []string{"run", good, "--backlog", store, "--tpm", "1000"}},
		{cli.ExitUsage, "--format with paceline work", []string{"work", "--limit", "none", "--backlog", store, "--format", "openai-batch"}},
		{cli.ExitUsage, "--base-url: base URL", []string{"work", "--limit", "none", "--backlog", store, "--base-url", "host"}},
		{cli.ExitUsage, "--format openai-batch with --select", []string{"backlog", "results", store, "--format", "openai-batch", "--select", "id=.id"}},
		{cli.ExitUsage, "--model is for prompts", []string{"enqueue", good, "--backlog", store, "--model", "m"}},
		{cli.ExitUsage, "--prompt-column with --body", []string{"enqueue", good, "--backlog", store, "--prompt-column", "c", "--body", "b"}},
		{cli.ExitConfig, `batch.jsonl:2:27: method "GET", expected "POST"`, []string{"enqueue", batch, "--backlog", store}},
		{cli.ExitUsage, "--limit auto with --backlog", []string{"run", good, "--limit", "auto", "--backlog", store}},
		{cli.ExitUsage, "{nonce} in N with --backlog", []string{"run", good, "--limit", "none", "--backlog", store, "-H", "N: {nonce}"}},
		{cli.ExitUsage, "--backlog-name without --backlog", []string{"run", good, "--limit", "none", "--backlog-name", "x"}},
		{cli.ExitUsage, "--out with paceline work", []string{"work", "--limit", "none", "--backlog", store, "--out", "x"}},
		{cli.ExitUsage, "--url with paceline work", []string{"work", "--limit", "none", "--backlog", store, "--url", "x"}},
		{cli.ExitUsage, "--format csv without --select", []string{"backlog", "results", store, "--format", "csv"}},
		{cli.ExitUsage, "expected done, dead, expired or cancelled", []string{"backlog", "results", store, "--state", "lost"}},
		{cli.ExitUsage, "expected the ids of requests, or --all", []string{"backlog", "cancel", store, "default"}},
		{cli.ExitUsage, "--class nobody", []string{"backlog", "retry-dead", store, "--class", "nobody"}},
	} {
		if out, errs := said(t, c.code, c.args...); !strings.Contains(errs, c.expected) || out != "" {
			t.Errorf("%q says %q, expected %q", c.args, out+errs, c.expected)
		}
	}
	for _, name := range []string{db, filepath.Join(dir, "none.db")} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there, expected that what is refused makes no store", name)
		}
	}
	said(t, cli.ExitOK, "enqueue", good, "--backlog", store)
	if _, errs := said(t, cli.ExitConfig, "work", "--backlog", store, "--backlog-name", "mails", "--limit", "none"); !strings.Contains(errs, `there is no such backlog: "mails"`) {
		t.Errorf("a name that is not there: %q", errs)
	}
	server.once(t, 0)
}

// Workers share one budget: together they send what it pays for, and no more. What each took and did not spend is there
// for the next, which has a larger budget. One with another budget is refused while others are there.
func TestBacklogBudget(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "jobs.db")
	said(t, cli.ExitOK, "enqueue", urlFile(t, server.URL, 100), "--backlog", store)
	together := func(budget string) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, errs := said(t, cli.ExitBudget, "work", "--backlog", store, "--limit", "none", "--until-empty",
					"--progress", "off", "--budget", budget, "--price", "0.5", "--concurrency", "2")
				if !strings.Contains(errs, "what is left of the budget of $"+strings.TrimSuffix(budget, "USD")) {
					t.Errorf("it says %q", errs)
				}
			})
		}
		all.Wait()
	}
	o, err := (&backlogFlags{store: store, name: defaultBacklog}).open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	left := func() int {
		all, err := o.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(livingOf(all))
	}
	spend := func(budget string, most int) {
		for sent := -1; sent < most; sent = len(server.seen) {
			if sent == len(server.seen) {
				t.Fatalf("with a budget of %s, %d requests are sent of %d", budget, sent, most)
			}
			together(budget) // one that ends early may return what it reserved when the others have ended
			for left() > 0 { // the store was busy at an end, and others give it up
				time.Sleep(50 * time.Millisecond)
			}
		}
		server.once(t, most)
		if n, err := work.ReadNote(t.Context(), o.Backlog); err != nil || n.Budget == nil || n.Budget.Taken != sending.Money(most)*sending.ToMoney(0.5) {
			t.Errorf("after %d requests, %+v is taken of %s: %v", most, n.Budget, budget, err)
		}
	}
	spend("25USD", 50)
	spend("40USD", 80)
	out, _ := said(t, cli.ExitOK, "backlog", "show", store)
	if !strings.Contains(out, "80 done") || strings.Contains(out, "repeat") {
		t.Errorf("the backlog is\n%s", out)
	}
	said(t, cli.ExitOK, "work", "--backlog", store, "--limit", "none", "--until-empty", "--progress", "off")
	server.once(t, 100)
}

// Each flag of run goes with --backlog, or is refused by its name.
func TestBacklogFlags(t *testing.T) {
	t.Parallel()
	server, tokens := countingServer(t), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"of a server","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	dir := t.TempDir()
	file := linesFile(t, dir, "one.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`)
	table := linesFile(t, dir, "one.csv", "a,"+server.URL+"/a")
	curls := linesFile(t, dir, "curl.txt", "curl "+server.URL+"/a")
	prompts := linesFile(t, dir, "q.csv", "text", "Why?")
	schema := linesFile(t, dir, "schema.json", `{"type":"object"}`)
	batch := linesFile(t, dir, "batch.jsonl", strings.TrimSpace(chats("a", "gpt-4o", 1)))
	chat := linesFile(t, dir, "chat.jsonl", `{"id":"a","method":"POST","url":"`+server.URL+`/chat/completions","body":{"model":"gpt-4o"}}`)
	limits := "sqlite:" + filepath.Join(dir, "shared")
	ripeStore(t, limits, "it", perSecondKeeper(20))
	goes := map[string]bool{"backlog": true, "help-all": true}
	for n, c := range []struct{ file, args string }{
		{file, `--limit none --attempts 3 --backoff-base 1s --backoff-max 2s --concurrency 4 --timeout 5s --max-outage 1m --redirects 1
			--success true --ok-status 404 --answer-time 1s --ttl 1h --renew --until 1h --unanswered hold --partly again --rejects-free --queue 10
			--keep-headers Date --max-response 1kB --provider openai --header A:b --query c=d --progress off --backlog-name other`},
		{file, `--limit none --dead DIR/dead.jsonl --summary DIR/summary.json --output json --out DIR/out.csv --select id=.id
			--out-format csv --color never --log-level error --page 127.0.0.1:0 --quiet`},
		{file, "--limit none --errors DIR/errors.jsonl --verbose"},
		{file, "--limit none --budget 5USD --price 1"},
		{file, "--limit none --dry-run --by 1h"},
		{file, `--limit none --charge GET+/a=2+weight --key-env PL_FLAGS --header X:{key} --ban-status 403
			--organization PL_FLAGS=it --key-host HOST`},
		{file, `--limit none --header Authorization:{token} --oauth-token-url URL --oauth-client-id-env PL_FLAGS
			--oauth-client-secret-env PL_FLAGS --oauth-scopes a --oauth-param b=c`},
		{file, `--limit none --header Authorization:{token} --auth-command pwd --auth-every 1h`},
		{file, "--limit 20/s --share " + limits + " --share-name it --share-fallback split --share-weight 2 --share-least 0.1"},
		{file, "--preset trello --rule rolling --dry-run"},
		{table, `--limit none --input-format csv --no-header --url {row.2} --id {row.1} --method PUT --body {row.1} --skip-invalid
			--max-line 10kB --max-header 10kB --max-body 1kB`},
		{curls, "--limit none --curl"},
		{prompts, "--limit none --prompt-column text --model m --system x --max-tokens 5 --json-schema " + schema + " --base-url HOST"},
		{batch, "--limit none --format openai-batch --base-url HOST"},
		{prompts, `--limit none --prompt-column text --model gpt-4o --max-tokens 5 --base-url HOST --budget 5USD
			--price-input 1 --price-output 2`},
		{chat, `--rpm 600 --tpm 60000 --itpm 60000 --otpm 60000 --count used --estimate 0.05 --max-output 5
			--limit-model o3=rpm:60`},
	} {
		var args []string
		for arg := range strings.FieldsSeq(c.args) {
			arg = strings.NewReplacer("DIR", dir, "URL", tokens.URL, "HOST", server.URL, "+", " ").Replace(arg)
			if name, is := strings.CutPrefix(arg, "--"); is {
				goes[name] = true
			}
			args = append(args, arg)
		}
		args = append(args, "--backlog", fmt.Sprintf("sqlite:%s/%d.db", dir, n))
		said(t, cli.ExitOK, "share", "new", fmt.Sprintf("sqlite:%s/%d.db.limits", dir, n))
		said(t, cli.ExitOK, append([]string{"run", c.file}, args...)...)
	}
	values := map[string]string{"use": "50%", "sync": "always", "via": "batch", "count": "sum", "retry-dead": "all", "strangers": "rolling"}
	goes["tui"] = true // it needs a terminal, with a backlog and without
	newRun().Flags().VisitAll(func(flag *pflag.Flag) {
		if goes[flag.Name] {
			return
		}
		value := cmp.Or(values[flag.Name], map[string]string{"bool": "true", "duration": "1s"}[flag.Value.Type()], "1")
		db := filepath.Join(dir, "refused.db")
		var out, errs strings.Builder
		code := execute(t.Context(), []string{"run", file, "--limit", "20/s", "--backlog", "sqlite:" + db, "--" + flag.Name + "=" + value},
			strings.NewReader(""), &out, &errs)
		named := strings.Contains(errs.String(), "--"+flag.Name+" with --backlog: ")
		if _, err := os.Stat(db); code != cli.ExitUsage || !named || err == nil {
			t.Errorf("--%s is neither shown to go with a backlog nor refused by its name: exit %d, %s", flag.Name, code, &errs)
		}
	})
}

// A worker without a limit is refused beside one with limits, and the other way round. It is noticed as long as the
// other one lives.
func TestBacklogOtherLimits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	s, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := backlog.Open(t.Context(), s, "default", backlog.Options{Format: work.Format}); err != nil {
		t.Fatal(err)
	}
	info, err := s.Find(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	begins := func(code int, limit string) string {
		t.Helper()
		_, errs := said(t, code, append([]string{"work", "--backlog", "sqlite:" + file, "--until-empty", "--progress", "off", "--limit"},
			strings.Fields(limit)...)...)
		return errs
	}
	begins(cli.ExitOK, "20/s")
	for _, c := range []struct{ is, other, says string }{
		{"20/s", "none", "1 worker sends here with limits, and this one would send without a limit (--limit none)"},
		{"none", "none --limit-model o3=rpm:5", "without a limit (--limit none), and this one would send with limits of o3 and of all others"},
		{"none --limit-model o3=rpm:5", "20/s", "1 worker sends here with limits of o3 and of all others, and this one would send with limits;"},
		{"20/s", "none", "1 worker sends here with limits, and this one would send without a limit (--limit none)"},
		{"none", "20/s", "1 worker sends here without a limit (--limit none), and this one would send with limits"},
	} {
		beat, err := s.Register(t.Context(), info.ID, "host", 1)
		if err != nil {
			t.Fatal(err)
		}
		if errs := begins(cli.ExitConfig, c.other); !strings.Contains(errs, c.says) {
			t.Errorf("%s beside %s: %q", c.other, c.is, errs)
		}
		begins(cli.ExitOK, c.is)
		if _, err := s.GiveUp(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		begins(cli.ExitOK, c.other)
	}
}

// What another program or version made is not touched, and two workers cannot keep different limits.
func TestBacklogOfOthers(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	file := linesFile(t, dir, "good.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`)
	refused := func(expected string, args ...string) {
		t.Helper()
		if out, errs := said(t, cli.ExitConfig, args...); !strings.Contains(errs, expected) || out != "" {
			t.Errorf("%q says %q, expected %q", args, out+errs, expected)
		}
	}
	db := filepath.Join(dir, "mails.db")
	store, err := sqlite.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backlog.Open(t.Context(), store, defaultBacklog, backlog.Options{Format: "mails, version 3"}); err != nil {
		t.Fatal(err)
	}
	store.Close()
	refused("the backlog has another format: mails, version 3, expected paceline run, version 1", "enqueue", file, "--backlog", "sqlite:"+db)
	refused("the backlog has another format", "work", "--backlog", "sqlite:"+db, "--limit", "none")
	refused("the backlog has another format", "backlog", "results", "sqlite:"+db)
	if out, _ := said(t, cli.ExitOK, "backlog", "show", "sqlite:"+db); !strings.Contains(out, "0 requests") {
		t.Errorf("a backlog of another program: %q, expected its counts", out)
	}
	empty := filepath.Join(dir, "empty.db") // for programs that add requests by SQL
	if out, _ := said(t, cli.ExitOK, "enqueue", "-", "--backlog", "sqlite:"+empty); !strings.Contains(out, "0 of 0 requests added") {
		t.Errorf("an empty input: %q", out)
	}
	said(t, cli.ExitOK, "backlog", "show", "sqlite:"+empty)

	newer := filepath.Join(dir, "newer.db")
	said(t, cli.ExitOK, "enqueue", file, "--backlog", "sqlite:"+newer)
	raw, err := sql.Open("sqlite", newer)
	if err == nil {
		_, err = raw.ExecContext(t.Context(), "UPDATE paceline_backlog_version SET version = 99")
	}
	if err != nil {
		t.Fatal(err)
	}
	raw.Close()
	refused("the tables are of another version: 99", "work", "--backlog", "sqlite:"+newer, "--limit", "none")
	refused("the tables are of another version: 99", "run", file, "--backlog", "sqlite:"+newer, "--limit", "none")

	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, bytes.Repeat([]byte("this is no database\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("not a database", "work", "--backlog", "sqlite:"+text, "--limit", "none")
	refused("postgres://u:xxxxx@127.0.0.1:1/x?sslmode=disable: ", "work", "--backlog", "postgres://u:secret@127.0.0.1:1/x?sslmode=disable", "--limit", "none")

	limits := filepath.Join(dir, "jobs.db")
	said(t, cli.ExitOK, "enqueue", file, "--backlog", "sqlite:"+limits)
	ripeStore(t, "sqlite:"+limits+".limits", defaultBacklog, perSecondKeeper(30))
	refused(`"30/s"`, "work", "--backlog", "sqlite:"+limits, "--limit", "20/s")
	server.once(t, 0)
}

// A backlog may have requests of any program. One that is no request of run is a dead letter, and the others go on.
func TestBacklogBrokenRequest(t *testing.T) {
	t.Parallel()
	server, dir := countingServer(t), t.TempDir()
	db := filepath.Join(dir, "jobs.db")
	said(t, cli.ExitOK, "enqueue", linesFile(t, dir, "good.jsonl", `{"id":"a","url":"`+server.URL+`/a"}`), "--backlog", "sqlite:"+db)
	store, err := sqlite.OpenExisting(db)
	if err != nil {
		t.Fatal(err)
	}
	b, err := backlog.Open(t.Context(), store, defaultBacklog, backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Enqueue(t.Context(), backlog.Job{ID: "broken", Data: []byte(`{"id":"x","uri":1}`)},
		backlog.Job{ID: "bare", Data: []byte("{\n\"url\":\"" + server.URL + "/bare\"}")}); err != nil {
		t.Fatal(err)
	}
	store.Close()
	said(t, cli.ExitSomeFailed, "work", "--backlog", "sqlite:"+db, "--limit", "none", "--until-empty", "--progress", "off")
	server.once(t, 2)
	out, _ := said(t, cli.ExitOK, "backlog", "results", "sqlite:"+db)
	all := inOrder(t, out, "a", "broken", "bare")
	if all[1].State != "dead" || all[1].Class != "invalid" || !strings.Contains(all[1].Error, `unknown field "uri"`) || all[2].State != "done" {
		t.Errorf("broken: %+v; bare: %+v", all[1], all[2])
	}
}
