package run

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/share/sharetest"
)

// keysOf returns the keys K0, K1, … and the server's organizations for them. A letter is an
// organization, a dash is none, and an x is a key that the server does not know.
func keysOf(whose string) (keys []format.Key, known []string, of map[string]string) {
	of = map[string]string{}
	for i, o := range whose {
		k := format.Key{Name: fmt.Sprint("K", i), Secret: fmt.Sprintf("s3cret-Of-9a7Kq-%d", i)}
		keys = append(keys, k)
		switch o {
		case 'x':
			continue
		case '-':
			of[k.Secret] = ""
		default:
			of[k.Secret] = "org-" + string(o)
		}
		known = append(known, k.Secret)
	}
	return keys, known, of
}

// Keys of one organization get no refusal, and use all that it allows. Keys of several use the
// limits of each.
func TestKeysOfOrganizations(t *testing.T) {
	race.Without(t) // TestKeysOfOrganizationsShared has these goroutines
	t.Parallel()
	for _, c := range []struct {
		name, whose string
		said        map[string]string
		rolling     bool
		models      bool
		first       time.Duration // what an answer takes
		quotas      int           // how many organizations there are
		tells       []string
	}{
		{name: "two of one", whose: "aa", quotas: 1, tells: []string{"keys K0 and K1 belong to one organization (OpenAI-Organization): they share its limits"}},
		{name: "two of one, windows", whose: "aa", rolling: true, quotas: 1},
		{name: "two of two", whose: "ab", quotas: 2},
		{name: "two of two, windows", whose: "ab", rolling: true, quotas: 2},
		{name: "three of two", whose: "aba", rolling: true, quotas: 2, tells: []string{"keys K0 and K2 belong to one organization"}},
		{name: "three of two, the latter", whose: "abb", rolling: true, quotas: 2, tells: []string{"keys K1 and K2 belong to one organization"}},
		{name: "no field", whose: "--", rolling: true, quotas: 2},
		{name: "a wrong key first", whose: "xaa", rolling: true, quotas: 1},
		{name: "a wrong key last", whose: "abx", rolling: true, quotas: 2},
		{name: "answers later than the trial", whose: "aabb", rolling: true, first: 8 * time.Second, quotas: 2},
		{name: "models", whose: "aab", rolling: true, models: true, quotas: 2},
		{name: "said", whose: "--", said: map[string]string{"K0": "acme", "K1": "acme"}, rolling: true, quotas: 1},
	} {
		if !c.rolling && need.Fewer(c.quotas == 2, false) {
			continue // windows begin later there than by the clock
		}
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				const rpm, minutes = 30, 4
				keys, known, of := keysOf(c.whose)
				if c.first == 0 {
					c.first = time.Second
				}
				if c.said != nil { // which the server does not say
					for i, k := range keys {
						of[k.Secret] = c.said[fmt.Sprint("K", i)]
					}
				}
				server := llm.Config{Keys: known, Organizations: of, Limits: llm.Limits{Requests: rpm}, Rolling: c.rolling, First: latency.Constant(c.first)}
				rate := minutely(rpm, limit.Requests, !c.rolling)
				rate.EachModel = c.models
				var mu sync.Mutex
				var told []string
				v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, server: server,
					config: Config{Out: out, Keys: keys, Organizations: c.said, Limits: []format.Rate{rate}, BanStatus: []int{401}, Notice: func(s string) {
						mu.Lock()
						defer mu.Unlock()
						told = append(told, s)
					}}}
				// A wrong key's first request counts for every organization: it is not known
				// whether the server counts it.
				n := (rpm*minutes - strings.Count(c.whose, "x")) * c.quotas
				input := ofModel("gpt-4o", 0, n)
				if c.models {
					input += ofModel("gpt-4.1", n, n)
					n *= 2
				}
				v.run(input)
				refused := v.report.Verdicts["limited"]
				t.Logf("%v: %d of %d refused, %.1f %% of the ceiling, %v", c.name, refused, n, v.totals.Percent, v.took)
				if v.err != nil || refused > 0 || v.totals.Done != n {
					t.Errorf("%v; the server: %v; %d of %d done", v.err, v.report.Verdicts, v.totals.Done, n)
				}
				// Each window begins when the one before has its answer. That of the second
				// organization begins when the organization is known.
				if late := 6*c.first + 10*time.Second; v.took > (minutes-1)*time.Minute+late {
					t.Errorf("it took %v, and %v is what %d organizations allow", v.took, (minutes-1)*time.Minute, c.quotas)
				}
				if v.totals.Percent > 100.1 || v.totals.Percent < 80 {
					t.Errorf("%.1f %% of the ceiling", v.totals.Percent)
				}
				for _, want := range c.tells {
					if !strings.Contains(strings.Join(told, "\n"), want) {
						t.Errorf("told %q, want %q", told, want)
					}
				}
				if len(c.tells) == 0 && c.quotas == len(c.whose) && strings.Contains(fmt.Sprint(told), "belong") {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}

// If no provider is named, the host of the first line decides whether answers name organizations.
func TestKeysOfOrganizationsByHost(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const rpm, n = 30, 90
		keys, known, of := keysOf("aa")
		v := &virtually{t: t, lines: true, server: llm.Config{Keys: known, Organizations: of, Limits: llm.Limits{Requests: rpm}, First: latency.Constant(time.Second)},
			config: Config{Out: out, Keys: keys, Limits: []format.Rate{minutely(rpm, limit.Requests, true)}}}
		v.run(chats("http://api.openai.com", n))
		t.Logf("the server: %v; %v", v.report.Verdicts, v.took)
		if v.err != nil || v.totals.Done != n || v.report.Verdicts["limited"] > 0 || !v.plan.AtLeast {
			t.Errorf("%v; the server: %v; %d of %d done; planned %d organizations, at least: %v", v.err, v.report.Verdicts, v.totals.Done, n, v.plan.Organizations, v.plan.AtLeast)
		}
	})
}

// chats returns n lines that each request a chat from a server.
func chats(base string, n int) string {
	var input strings.Builder
	for i := range n {
		fmt.Fprintf(&input, `{"id":"p%d","method":"POST","url":"%s/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}}`+"\n", i, base)
	}
	return input.String()
}

// Keys of one organization also share its limits through a store: each alone and all of them.
func TestKeysOfOrganizationsShared(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const rpm, n = 30, 90
		keys, known, of := keysOf("aab")
		store := new(sharetest.Memory)
		v := &virtually{t: t, lines: true, server: llm.Config{Keys: known, Organizations: of, Limits: llm.Limits{Requests: rpm}, First: latency.Constant(time.Second)},
			config: Config{Out: out, Keys: keys, Organizations: map[string]string{"K0": "acme", "K1": "acme"}, Limits: []format.Rate{minutely(rpm, limit.Requests, true)},
				Share: sharestore.New(sharestore.Config{Store: store, Address: "memory"})}}
		v.run(chats("http://server", 2*n))
		v.config.Share.Close()
		t.Logf("the server: %v; %v", v.report.Verdicts, v.took)
		if v.err != nil || v.totals.Done != 2*n || v.report.Verdicts["limited"] > 0 || v.plan.Organizations != 2 {
			t.Errorf("%v; the server: %v; %d of %d done; planned %d organizations", v.err, v.report.Verdicts, v.totals.Done, 2*n, v.plan.Organizations)
		}
		names, err := store.Names(t.Context())
		if len(names) != 2 || !strings.HasSuffix(fmt.Sprint(names), "organization acme]") {
			t.Errorf("%v, %v in the store", names, err)
		}
	})
}

// A store does not know the organization of a key unless the user names it. Answers that name it
// are reported once.
func TestKeysOfOrganizationsApart(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		keys, known, of := keysOf("aba")
		var mu sync.Mutex
		told := ""
		v := &virtually{t: t, lines: true, server: llm.Config{Keys: known, Organizations: of, Limits: llm.Limits{Requests: 300}},
			config: Config{Out: out, Keys: keys, Limits: []format.Rate{minutely(10, limit.Requests, true)}, Share: sharestore.New(sharestore.Config{Store: new(sharetest.Memory), Address: "memory"}),
				Notice: func(s string) {
					mu.Lock()
					defer mu.Unlock()
					told += s + "\n"
				}}}
		v.run(chats("http://api.openai.com", 30))
		v.config.Share.Close()
		const want = " belong to one organization (OpenAI-Organization), and in the store each has all of its limits: --organization "
		if v.err != nil || strings.Count(told, want) != 1 || strings.Contains(told, "K1") {
			t.Errorf("%v: told %q", v.err, told)
		}
	})
}

// organizationsRPM is the limit per organization in any minute, in the tests of restarts.
const organizationsRPM = 30

// organizationsServer is a server that separates organizations, for several runs with one file of
// results.
type organizationsServer struct {
	*virtually
	network *fakeconn.Network
	llm     *llm.Server
	server  *http.Server
}

func serveOrganizations(t *testing.T, out, whose string, by func(keys []format.Key, next http.Handler) http.Handler) *organizationsServer {
	keys, known, of := keysOf(whose)
	l, err := llm.New(llm.Config{Keys: known, Organizations: of, Limits: llm.Limits{Requests: organizationsRPM}, Rolling: true, First: latency.Constant(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	s := &organizationsServer{network: fakeconn.New(), llm: l, server: &http.Server{Handler: l}}
	if by != nil {
		s.server.Handler = by(keys, l)
	}
	go func() { _ = s.server.Serve(s.network) }()
	s.virtually = &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, config: Config{Out: out, Keys: keys, Limits: []format.Rate{minutely(organizationsRPM, limit.Requests, false)}}}
	return s
}

// end checks that all n requests were served, and none refused.
func (s *organizationsServer) end(n int) {
	s.t.Helper()
	_ = s.server.Close()
	_ = s.llm.Close()
	if report := s.llm.Report(); report.Verdicts["limited"] > 0 || report.Verdicts["accepted"] != n {
		s.t.Errorf("the server: %v, want %d accepted", report.Verdicts, n)
	}
}

// A resumed run counts the sends of all keys of each organization, and knows the organizations.
func TestKeysOfOrganizationsResume(t *testing.T) {
	race.Without(t) // TestKeysOfOrganizationsShared has these goroutines
	t.Parallel()
	need.NotShort(t, "TestKeysOfOrganizations has the keys, and other tests resume")
	for _, c := range []struct {
		whose string
		old   bool // the journal is of a version that did not know whose keys are
	}{{"aa", false}, {"ab", false}, {"aba", false}, {"ab", true}, {"aa", true}} {
		whose := c.whose
		t.Run(fmt.Sprint(whose, c.old), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				v := serveOrganizations(t, out, whose, nil)
				quotas := len(map[rune]bool{rune(whose[0]): true, rune(whose[1]): true})
				n := 4 * organizationsRPM * quotas
				took := time.Duration(0)
				for i := range 3 {
					v.tamper = nil
					if i < 2 {
						v.tamper = func(r *Run) { time.AfterFunc(20*time.Second, r.Drain) }
					}
					sends := n
					if c.old && i == 0 { // so few that the next run begins at once, within the same window
						sends = 20
					}
					v.send(v.network, ofModel("gpt-4o", 0, sends))
					took += v.took
					if c.old {
						forget(t, output.JournalOf(out))
						continue
					}
					if i > 0 && v.opened.Organizations != quotas {
						t.Errorf("run %d knows of %d organizations, want %d", i, v.opened.Organizations, quotas)
					}
				}
				v.end(n)
				if took > 3*time.Minute+15*time.Second && !c.old {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Sends of a key in a run of its own count in the limits of its organization, once a later run
// knows it.
func TestKeyOfAnOrganizationResumesAlone(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		v := serveOrganizations(t, out, "ab", nil)
		keys := v.config.Keys
		v.config.Keys = keys[1:]
		v.send(v.network, ofModel("gpt-4o", 0, 20))
		v.config.Keys = keys
		v.send(v.network, ofModel("gpt-4o", 0, 120))
		v.end(120)
	})
}

// Answers to a key before one names its organization count in the limits of that, too.
func TestKeyOfAnOrganizationThatIsNamedLate(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const unnamed = 20
		var mu sync.Mutex
		first := 0
		v := serveOrganizations(t, out, "ab", func(keys []format.Key, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				late := q.Header.Get("Authorization") == "Bearer "+keys[1].Secret && first < unnamed
				if late {
					first++
				}
				mu.Unlock()
				if !late {
					next.ServeHTTP(w, q)
					return
				}
				next.ServeHTTP(httptest.NewRecorder(), q) // it is counted, and refused by a proxy that names no organization
				w.WriteHeader(http.StatusBadRequest)
			})
		})
		v.send(v.network, ofModel("gpt-4o", 0, 160))
		if v.end(160); first != unnamed {
			t.Errorf("%d were answered without a name, want %d", first, unnamed)
		}
	})
}

// What is answered before the organization of its key is known counts from the latest instant at which it can have
// arrived: of a request without an answer, that is later than its end.
func TestPastOfAnOrganization(t *testing.T) {
	r, err := New(Config{Keys: []format.Key{{Name: "A"}, {Name: "B"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.epoch = time.Now()
	o := r.organizations
	o.field, o.together = "Org", true
	o.owner = keyring.NewOwners(keyring.OwnersConfig{Most: 10, MaxKeys: 2})
	var want []mono.Time
	for i, result := range []limit.Result{limit.Accepted, limit.Unknown, limit.Unsent, limit.Limited} {
		ends := mono.Time(i+1) * mono.Time(time.Second)
		j := &job{r: &format.Request{Cost: limit.One}, res: sending.Response{Ended: r.epoch.Add(time.Duration(ends))}}
		if result != limit.Unknown {
			j.res.Status = 400
		}
		r.organizations.named(r.groups, r.epoch, j, &pool.Answer{Outcome: limit.Outcome{Result: result}, Denied: true})
		switch result {
		case limit.Unknown:
			want = append(want, ends.Add(journal.Late))
		case limit.Accepted, limit.Limited:
			want = append(want, ends)
		}
	}
	var got []mono.Time
	for _, p := range o.pasts[0] {
		got = append(got, p.At)
	}
	if !slices.Equal(got, want) {
		t.Errorf("they count at %v, want %v", got, want)
	}
}

// forget removes the organizations of keys from a journal.
func forget(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"whose"`) {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(name, []byte(kept.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The limits of an organization that an answer reveals go by the clock as those of the first one.
func TestHoursOfASecondOrganization(t *testing.T) {
	l, err := rate.ParseLimit("2/h@UTC")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(50 * time.Minute) // it is 0:50
		b, _, _ := virtualBench(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Openai-Organization", r.Header.Get("Key"))
		})
		b.config.Limits = []format.Rate{l}
		b.config.Keys, _, _ = keysOf("ab")
		b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
		var lines []string
		for i := range 8 {
			lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"http://api.openai.com/"}`, i))
		}
		out := b.run(lines...)
		if got := time.Now().UTC().Format("15:04"); out.err != nil || out.Done != 8 || got != "01:00" {
			t.Errorf("%v: %d of 8 are done at %s, want at 01:00: two of each key before that, and two after", out.err, out.Done, got)
		}
	})
}
