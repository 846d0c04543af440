package programs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// A program is one that knows nothing of limits, and nothing of us: it has calls to make, and a base URL in its environment.
type program struct {
	name   string
	agent  string // how its User-Agent begins
	claude bool   // it speaks with Anthropic
	calls  int
	run    func(at *gate, env []string, calls int) ([]told, error)
}

// pace is for how many calls of the eight programs, how fast the servers answer, and how long the slowest program may take in all.
type pace struct {
	times  int
	within time.Duration
	speed  []string
	least  float64 // percent of what the limits let through
}

// scale is what limits of tier 1 let through in 24 s, or, at greater length, in three minutes. Who cannot see when a request arrives knows
// it when the answer is there, and so it is that much behind the ideal, once. Hence answers of some 0.3 s where all takes 24 s, and of a second, as
// the servers have it, where it takes minutes. What is asked for of the short run is for a machine that stands still for seconds.
func scale() pace {
	if os.Getenv("PACELINE_LONG") == "1" {
		return pace{3, 10 * time.Minute, nil, 97}
	}
	return pace{1, 3 * time.Minute, []string{"--first", "lognormal:100ms,p99=500ms", "--tokens-per-second", "1000"}, 85}
}

func programs(t *testing.T, size pace) []program {
	node, python, curl := need.Node(t, "../node"), need.Python(t, "httpx", "aiohttp", "requests"), need.Program(t, "curl")
	runs := func(dir string, argv ...string) func(*gate, []string, int) ([]told, error) {
		return func(at *gate, env []string, calls int) ([]told, error) {
			return said(size.within, at, dir, env, append(argv, strconv.Itoa(calls))...)
		}
	}
	all := []program{
		{"openai", "OpenAI/JS", false, 80, runs("../node", node, "burst.mjs", "openai")},
		{"openai, streams", "OpenAI/JS", false, 70, runs("../node", node, "burst.mjs", "openai", "stream")},
		{"@anthropic-ai/sdk", "Anthropic/JS", true, 36, runs("../node", node, "burst.mjs", "anthropic")},
		{"@anthropic-ai/sdk, streams", "Anthropic/JS", true, 34, runs("../node", node, "burst.mjs", "anthropic", "stream")},
		{"httpx", "python-httpx", false, 70, runs("python", python, "-B", "with_httpx.py")},
		{"aiohttp", "Python", false, 70, runs("python", python, "-B", "with_aiohttp.py")},
		{"requests, half streams", "python-requests", false, 70, runs("python", python, "-B", "with_requests.py")},
		{"curl", "curl", false, 70, func(at *gate, env []string, calls int) ([]told, error) {
			return curled(curl, size.within, at, t.TempDir(), env, calls)
		}},
	}
	for i := range all {
		all[i].calls *= size.times
	}
	return all
}

// curled has curl call, and reads the files in which it leaves answers.
func curled(curl string, within time.Duration, at *gate, dir string, env []string, calls int) (all []told, err error) {
	env = append(env, "PATH="+filepath.Dir(curl)+":/usr/bin:/bin")
	out, err := output(within, at, "curl", env, "./burst", strconv.Itoa(calls), dir)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		var i, status int
		var seconds float64
		if _, err := fmt.Sscan(line, &i, &status, &seconds); err != nil {
			return nil, fmt.Errorf("curl said %q: %w", line, err)
		}
		l := told{SDK: "curl", Call: strconv.Itoa(i), MS: int64(1000 * seconds)}
		answer, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i, ".json")))
		if err != nil {
			return nil, err
		}
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(answer, &r); err != nil {
			return nil, fmt.Errorf("curl was told %q: %w", answer, err)
		}
		if status == http.StatusOK && len(r.Choices) == 1 {
			l.Text, l.Input, l.Output = r.Choices[0].Message.Content, r.Usage.Prompt, r.Usage.Completion
		} else {
			l.Error = &thrown{Status: status}
		}
		all = append(all, l)
	}
	return all, nil
}

// bases is the environment that a program has: where servers are, and a key.
func bases(openai, anthropic string) []string {
	return []string{"OPENAI_BASE_URL=" + openai + "/v1", "OPENAI_API_KEY=sk-newcomer", "ANTHROPIC_BASE_URL=" + anthropic, "ANTHROPIC_API_KEY=sk-ant-newcomer"}
}

// An outcome of a program is what came of it.
type outcome struct {
	program
	said []told
	took time.Duration
}

// race has all programs begin at once.
func race(t *testing.T, all []program, env []string) []outcome {
	t.Helper()
	results := make([]outcome, len(all))
	var wg sync.WaitGroup
	at := newGate(len(all) + 1)
	for i, p := range all {
		wg.Go(func() {
			said, err := p.run(at, env, p.calls)
			if err != nil || len(said) != p.calls {
				t.Errorf("%s: %d lines of %d: %v", p.name, len(said), p.calls, err)
			}
			results[i] = outcome{p, said, time.Since(at.opened)}
		})
	}
	at.pass()
	wg.Wait()
	return results
}

// answered are the calls that have an answer.
func (r *outcome) answered() (n int) {
	for _, l := range r.said {
		if l.Error == nil && l.Text != "" {
			n++
		}
	}
	return n
}

// fakes are both servers, with the limits of their first tiers, which they have if nothing is said, and their logs.
type fakes struct {
	openai, anthropic *process
	logs              [2]string
}

func newFakes(t *testing.T, size pace) *fakes {
	t.Helper()
	dir := t.TempDir()
	f := &fakes{logs: [2]string{filepath.Join(dir, "openai.jsonl"), filepath.Join(dir, "anthropic.jsonl")}}
	f.openai, f.anthropic = serve(t, append(size.speed, "openai", "--log", f.logs[0])...), serve(t, append(size.speed, "anthropic", "--log", f.logs[1])...)
	return f
}

// A judgement is what a server's log says, and how near its requests came to what its limits let through.
type judgement struct {
	llm.Report
	account  llm.Account
	sent     int
	refused  int
	took     time.Duration // from the first that it served to the last
	ideal    time.Duration // in which the last can be served at the earliest
	binding  string        // the limit that says so, and how
	ofMost   float64       // ideal of took, in percent
	declared int           // how many say of themselves that they are a second attempt
}

// judge ends a server and reads its log. The bucket of a limit is full at first, and is refilled evenly: the last request is served once all
// that came to more than it held has flowed in.
func judge(t *testing.T, p *process, log string) (j judgement) {
	t.Helper()
	j.Report = p.ended(t)
	if len(j.Accounts) != 1 {
		t.Fatalf("%d accounts, want 1: %+v", len(j.Accounts), j.Accounts)
	}
	j.account, j.declared = j.Accounts[0], j.Retries
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var counted [4]int64
	var first, last int64
	for line := range bytes.Lines(text) {
		var l llm.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Event != "request":
			continue
		case l.Verdict != "accepted":
			j.refused++
		default:
			for i, n := range l.Counted {
				counted[i] += n
			}
			if first == 0 {
				first = l.At
			}
			last = l.At
		}
		j.sent++
	}
	j.took = time.Duration(last - first)
	for _, w := range j.account.Limits {
		i := slices.Index([]string{"requests", "input_tokens", "output_tokens", "tokens"}, w.Name)
		if ideal := time.Duration(float64(counted[i]-w.Limit) / float64(w.Limit) * float64(w.Window)); ideal > j.ideal {
			j.ideal, j.binding = ideal, fmt.Sprintf("(%d - %d %s) / %.4g a second = %.1f s", counted[i], w.Limit, w.Name, float64(w.Limit)/w.Window.Seconds(), ideal.Seconds())
		}
	}
	j.ofMost = 100 * j.ideal.Seconds() / j.took.Seconds()
	return j
}

// behind starts a proxy before both servers, as docs/proxy-sdks.md has it.
func (f *fakes) behind(t *testing.T, size pace) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "paceline.yaml")
	config := fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
max_wait: %v
upstreams:
  - {name: openai, path: /openai, to: %q, preset: "openai:tier1"}
  - name: anthropic
    path: /anthropic
    to: %q
    provider: anthropic
    limits:
      - {limit: 50/m, rule: bucket, scope: model}
      - {limit: 30000 input/m, rule: bucket, scope: model}
      - {limit: 8000 output/m, rule: bucket, scope: model}
clients: {header: User-Agent}
`, size.within, f.openai.url, f.anthropic.url)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, "proxy", "--config", file, "--log", "json")
}

// TestPrograms: eight programs, of the SDKs of OpenAI and Anthropic for Node, of three of Python's and of curl, that ask all at once, 500 times. Through the
// proxy each is answered, at the full rate of the limits, and the servers refuse nothing; what the proxy says of that is what the servers
// say. Without it most of what is sent at once is refused, and who does not try again has lost it.
func TestPrograms(t *testing.T) {
	size := scale()
	all := programs(t, size)
	t.Parallel()
	t.Run("through the proxy", func(t *testing.T) {
		t.Parallel()
		f := newFakes(t, size)
		p := f.behind(t, size)
		results := race(t, all, bases(p.url+"/openai", p.url+"/anthropic"))
		seen := watch(t, p)
		p.stopped(t)
		judged := [2]judgement{judge(t, f.openai, f.logs[0]), judge(t, f.anthropic, f.logs[1])}
		report(t, results, judged)
		for _, r := range results {
			if r.answered() != r.calls {
				t.Errorf("%s: %d of %d calls answered", r.name, r.answered(), r.calls)
			}
		}
		for _, j := range judged {
			if j.refused != 0 || j.Verdicts["accepted"] != j.sent || j.declared != 0 {
				t.Errorf("%s: %v, %d retries, want none refused", j.account.Model, j.Verdicts, j.declared)
			}
			if j.ofMost < size.least || j.ideal < 10*time.Second {
				t.Errorf("%s: %.1f %% of what the limits let through, want %v; %s", j.account.Model, j.ofMost, size.least, j.binding)
			}
		}
		seen.equals(t, results, judged)
		p.logged(t, len(results), judged)
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		f := newFakes(t, size)
		results := race(t, all, bases(f.openai.url, f.anthropic.url))
		judged := [2]judgement{judge(t, f.openai, f.logs[0]), judge(t, f.anthropic, f.logs[1])}
		report(t, results, judged)
		for _, j := range judged {
			if j.refused == 0 {
				t.Errorf("%s: nothing refused: there is nothing to compare with", j.account.Model)
			}
		}
	})
}

// report logs a table.
func report(t *testing.T, results []outcome, judged [2]judgement) {
	var b strings.Builder
	calls, answered := 0, 0
	for _, r := range results {
		n := r.answered()
		fmt.Fprintf(&b, "\n%-28s %4d calls %4d answered %4d lost %6.1f s", r.name, r.calls, n, r.calls-n, r.took.Seconds())
		calls, answered = calls+r.calls, answered+n
	}
	fmt.Fprintf(&b, "\n%-28s %4d calls %4d answered %4d lost", "all", calls, answered, calls-answered)
	for _, j := range judged {
		fmt.Fprintf(&b, "\n%-28s %4d sent  %4d served   %4d refused, in %.2f s; ideal %s: %.1f %%", j.account.Model, j.sent, j.sent-j.refused, j.refused, j.took.Seconds(), j.binding, j.ofMost)
	}
	t.Log(b.String())
}

// A view is what the proxy says of a client, or of all of an upstream.
type view struct {
	Sent, Accepted, Limited, Input, Output int64
}

func (v *view) add(o view) {
	v.Sent, v.Accepted, v.Limited, v.Input, v.Output = v.Sent+o.Sent, v.Accepted+o.Accepted, v.Limited+o.Limited, v.Input+o.Input, v.Output+o.Output
}

// seen is what the metrics and the page say of each client at an upstream.
type seen struct {
	metrics, page map[string]map[string]view
}

// watch looks at a proxy, once nothing is in flight any more.
func watch(t *testing.T, p *process) seen {
	t.Helper()
	page := framed(t, p.admin)
	return seen{scraped(t, p.admin), page}
}

var series = regexp.MustCompile(`^paceline_(requests|sent|tokens)_total\{(.*)\} (\S+)$`)
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

func scraped(t *testing.T, admin string) map[string]map[string]view {
	t.Helper()
	r, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	all := map[string]map[string]view{}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		m := series.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[2]
		}
		number, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(number)
		one := view{}
		switch m[1] + labels["result"] + labels["kind"] {
		case "sent":
			one.Sent = n
		case "requestsaccepted":
			one.Accepted = n
		case "requestslimited":
			one.Limited = n
		case "tokensinput":
			one.Input = n
		case "tokensoutput":
			one.Output = n
		}
		of := all[labels["source"]]
		if of == nil {
			of = map[string]view{}
			all[labels["source"]] = of
		}
		one.add(of[labels["client"]])
		of[labels["client"]] = one
	}
	return all
}

// framed is the first frame of the page, of those made from now on, that has nothing in flight.
func framed(t *testing.T, admin string) map[string]map[string]view {
	t.Helper()
	began := time.Now().UnixMilli()
	r, err := http.Get(admin + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	for frame := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the page: %v: %s", err, line)
		}
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData || !frame {
			frame = line == "event: frame\n"
			continue
		}
		var f struct {
			At      int64
			Sources []observe.Snapshot
		}
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		if f.At < began || slices.ContainsFunc(f.Sources, func(s observe.Snapshot) bool { return s.InFlight > 0 }) {
			continue
		}
		all := map[string]map[string]view{}
		for _, s := range f.Sources {
			all[s.Name] = map[string]view{}
			for _, c := range s.Clients {
				all[s.Name][c.Name] = view{c.Sent, c.Accepted, c.Limited, c.Used.Input, c.Used.Output}
			}
		}
		return all
	}
}

// equals: what the metrics and the page say is what the servers judged, and of each program what it was told.
func (s *seen) equals(t *testing.T, results []outcome, judged [2]judgement) {
	t.Helper()
	told := [2]map[string]view{{}, {}}
	for _, r := range results {
		i := map[bool]int{true: 1}[r.claude]
		v := told[i][r.agent]
		for _, l := range r.said {
			v.add(view{1, 1, 0, l.Input, l.Output})
		}
		told[i][r.agent] = v
	}
	for where, all := range map[string]map[string]map[string]view{"the metrics": s.metrics, "the page": s.page} {
		for i, source := range [...]string{"openai", "anthropic"} {
			sum := view{}
			for client, v := range all[source] {
				sum.add(v)
				agent := ""
				for a := range told[i] {
					if strings.HasPrefix(client, a) {
						agent = a
					}
				}
				if v != told[i][agent] || agent == "" {
					t.Errorf("%s of %s: %s has %+v, and its program was told %+v", where, source, client, v, told[i][agent])
				}
			}
			j := judged[i]
			want := view{int64(j.sent), int64(j.account.Accepted), int64(j.refused), j.account.Input, j.account.Output}
			if sum != want {
				t.Errorf("%s of %s: %+v, and the server says %+v", where, source, sum, want)
			}
		}
	}
}

// logged: the proxy has a line for each request, and each was answered.
func (p *process) logged(t *testing.T, programs int, judged [2]judgement) {
	t.Helper()
	lines, clients := map[int]int{}, map[string]bool{}
	for _, text := range p.errs {
		var l struct {
			Msg, Client string
			Status      int
		}
		if json.Unmarshal([]byte(text), &l) == nil && l.Msg == "request" {
			lines[l.Status]++
			clients[l.Client] = true
		}
	}
	if want := judged[0].sent + judged[1].sent; lines[http.StatusOK] != want || len(lines) != 1 || len(clients) != programs-2 {
		t.Errorf("the proxy's log: %v of %d clients, want 200 of each of %d", lines, len(clients), want)
	}
}
