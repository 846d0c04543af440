package run

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/share/sharetest"
)

// hub is a server that counts searches apart from all else, as GitHub does, in windows of a minute by the
// clock, and says so. It is written apart from the charges.
type hub struct {
	core, search int // in a minute
	counted      map[string]int
	refused      map[string]int
	sent         map[string][]time.Duration
	begin        time.Time
	mu           sync.Mutex
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	resource, most := "core", h.core
	if strings.HasPrefix(r.URL.Path, "/search/") {
		resource, most = "search", h.search
	}
	now := time.Now()
	window := fmt.Sprint(resource, now.Truncate(time.Minute))
	h.counted[window]++
	h.sent[resource] = append(h.sent[resource], now.Sub(h.begin).Truncate(time.Second))
	w.Header().Set("X-GitHub-Media-Type", "github.v3")
	w.Header().Set("X-RateLimit-Resource", resource)
	w.Header().Set("X-RateLimit-Limit", fmt.Sprint(most))
	w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(max(most-h.counted[window], 0)))
	w.Header().Set("X-RateLimit-Reset", fmt.Sprint(now.Truncate(time.Minute).Add(time.Minute).Unix()))
	if h.counted[window] > most {
		h.refused[resource]++
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message":"API rate limit exceeded"}`)
	}
}

// hubBench is a bench with a hub at api.github.com, of which a stranger has used something.
func hubBench(t *testing.T, core, search, used int) (b *bench, h *hub) {
	h = &hub{core: core, search: search, counted: map[string]int{}, refused: map[string]int{}, sent: map[string][]time.Duration{}, begin: time.Now()}
	b, _, _ = virtualBench(t, h.ServeHTTP)
	h.counted[fmt.Sprint("search", h.begin.Truncate(time.Minute))] = used
	b.config.Keys = []format.Key{{Name: "K", Secret: "s3cret-9a7Kq"}}
	b.config.Header, _ = format.ParseHeaders([]string{"Authorization: Bearer {key}"})
	b.config.Concurrency = 1
	return b, h
}

func lines(n int, path string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":"%s%d","url":"http://api.github.com%s"}`, path, i, path))
	}
	return all
}

// A stranger has spent the searches. The rest of a run goes at the ceiling all the same, and nothing is
// refused: searches wait for their next minute, and count in no limit of the key.
func TestSearchIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 3, 2)
		b.config.Limits = []format.Rate{minutely(60, 0, false)}
		input := slices.Concat(lines(1, "/search/a"), lines(30, "/user"), lines(4, "/search/b"), lines(90, "/repos"))
		out := b.run(input...)
		if out.err != nil || out.Done != len(input) || len(h.refused) > 0 {
			t.Errorf("%v: %d of %d are done, refused %v\n%s", out.err, out.Done, len(input), h.refused, out.notices)
		}
		if last := h.sent["core"][119]; last != 60*time.Second { // 60 at once, and 60 in the next minute
			t.Errorf("the last of 120 is sent at %v, want after a minute: %v", last, h.sent["core"])
		}
		want := []time.Duration{0, time.Minute, time.Minute, time.Minute, 2 * time.Minute}
		if got := h.sent["search"]; !slices.Equal(got, want) {
			t.Errorf("searches at %v, want %v", got, want)
		}
	})
}

// A refusal of a search keeps no other request away. That is said once.
func TestASearchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 3, 3)
		input := slices.Concat(lines(2, "/search/a"), lines(10, "/user"))
		out := b.run(input...)
		if out.err != nil || out.Done != len(input) || h.refused["search"] != 1 || h.sent["core"][9] != 0 {
			t.Errorf("%v: %d of %d are done, refused %v, core at %v\n%s", out.err, out.Done, len(input), h.refused, h.sent["core"], out.notices)
		}
		if n := strings.Count(out.notices, "key K (search) is told to stay away"); n != 1 {
			t.Errorf("said %d times: %s", n, out.notices)
		}
	})
}

// A refusal of the usual resource keeps no search away.
func TestCoreIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 3, 30, 0)
		h.counted[fmt.Sprint("core", h.begin.Truncate(time.Minute))] = 3
		b.config.Limits = []format.Rate{minutely(60, 0, false)}
		out := b.run(slices.Concat(lines(3, "/user"), lines(5, "/search/a"))...)
		want := []time.Duration{0, time.Minute, time.Minute, time.Minute}
		if out.err != nil || out.Done != 8 || h.refused["core"] != 1 || h.sent["search"][4] != 0 || !slices.Equal(h.sent["core"], want) {
			t.Errorf("%v: %d of 8 are done, refused %v, core at %v, want %v; searches at %v\n%s", out.err, out.Done, h.refused,
				h.sent["core"], want, h.sent["search"], out.notices)
		}
	})
}

// A failure of the server that asks to stay away concerns the key, whatever the resource.
func TestASearchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 30, 0)
		fails := 1
		served, _, _ := virtualBench(t, func(w http.ResponseWriter, r *http.Request) {
			if fails--; fails == 0 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		})
		served.config = b.config
		out := served.run(slices.Concat(lines(1, "/search/a"), lines(1, "/user"))...)
		if out.err != nil || out.Done != 2 || h.sent["core"][0] != 20*time.Second {
			t.Errorf("%v: %d of 2 are done, core at %v, want 20s\n%s", out.err, out.Done, h.sent["core"], out.notices)
		}
	})
}

// A limit of a resource holds for its requests alone, also for what earlier runs sent.
func TestLimitOfAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 30, 0)
		l, err := rate.ParseLimit("2/m")
		if err != nil {
			t.Fatal(err)
		}
		b.config.Resources = []ResourceLimit{{Resource: "search", Rate: l}}
		out := b.run(slices.Concat(lines(3, "/search/a"), lines(10, "/user"))...)
		if want := []time.Duration{0, 0, time.Minute}; out.err != nil || !slices.Equal(h.sent["search"], want) || h.sent["core"][9] != 0 {
			t.Errorf("%v: searches at %v, want %v; core at %v\n%s", out.err, h.sent["search"], want, h.sent["core"], out.notices)
		}
		out = b.run(slices.Concat(lines(3, "/search/a"), lines(3, "/search/b"))...) // it begins after a minute
		if want := []time.Duration{time.Minute, 2 * time.Minute, 2 * time.Minute}; out.err != nil || !slices.Equal(h.sent["search"][3:], want) {
			t.Errorf("%v: searches of the next run at %v, want %v", out.err, h.sent["search"][3:], want)
		}
	})
}

// Keys of one organization have a limit of a resource together, and other keys have it for themselves.
func TestAnOrganizationSharesAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 30, 0)
		b.config.Keys = []format.Key{{Name: "A", Secret: "s3cret-9a7Kq"}, {Name: "B", Secret: "s3cret-8b6Lp"}, {Name: "C", Secret: "s3cret-7c5Mo"}}
		b.config.Organizations = map[string]string{"A": "acme", "B": "acme", "C": "other"}
		b.config.Limits = []format.Rate{minutely(20, 0, false)}
		b.config.Resources = []ResourceLimit{{Resource: "search", Rate: minutely(2, 0, false)}}
		out := b.run(slices.Concat(lines(10, "/search/a"), lines(30, "/user"))...)
		want := []time.Duration{0, 0, 0, 0, time.Minute, time.Minute, time.Minute, time.Minute, 2 * time.Minute, 2 * time.Minute}
		if out.err != nil || out.Done != 40 || !slices.Equal(h.sent["search"], want) || h.sent["core"][29] != 0 {
			t.Errorf("%v: %d done, searches at %v, want %v; core at %v\n%s", out.err, out.Done, h.sent["search"], want, h.sent["core"], out.notices)
		}
		b.config.Append = true
		out = b.run(lines(5, "/search/b")...) // what the run before sent counts
		if want := []time.Duration{2 * time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute, 3 * time.Minute}; out.err != nil ||
			!slices.Equal(h.sent["search"][10:], want) {
			t.Errorf("%v: searches of the next run at %v, want %v", out.err, h.sent["search"][10:], want)
		}
	})
}

// Two runs with one store keep to a limit of a resource together, and it holds up no other request. With a
// store that is stated to be new, it goes at once.
func TestAResourceIsInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(sharetest.Memory)
		if err := sharestore.StateNew(t.Context(), store, sharestore.DefaultName); err != nil {
			t.Fatal(err)
		}
		b, h := hubBench(t, 600, 600, 0)
		other := newBench(t)
		other.config.Keys, other.config.Header, other.config.Concurrency, other.network = b.config.Keys, b.config.Header, 1, b.network
		for _, b := range []*bench{b, other} {
			b.config.Limits = []format.Rate{minutely(300, 0, false)}
			b.config.Resources = []ResourceLimit{{Resource: "search", Rate: minutely(4, 0, false)}, {Resource: "book *", Rate: minutely(3, 0, false)}}
			b.config.Share = sharestore.New(sharestore.Config{Store: store, Address: "memory"})
		}
		began := time.Now()
		var both sync.WaitGroup
		for _, b := range []*bench{b, other} {
			both.Go(func() {
				out := b.run(slices.Concat(lines(6, "/search/a"), lines(30, "/user"))...)
				if out.err != nil || out.Done != 36 {
					t.Errorf("%v: %d done\n%s", out.err, out.Done, out.notices)
				}
				waits := out.results["/search/a5"].WaitedFor
				for name := range waits {
					if !strings.HasPrefix(name, "the shared limit default/resource search/key-") && !strings.HasPrefix(name, "answers") {
						t.Errorf("the last search waited for %v", waits)
					}
				}
				b.config.Share.Close()
			})
		}
		both.Wait()
		if n := len(h.sent["search"]); n != 12 {
			t.Fatalf("%d searches", n)
		}
		for i, at := range h.sent["search"] {
			if i >= 4 && at-h.sent["search"][i-4] < time.Minute {
				t.Errorf("5 searches in a minute: %v", h.sent["search"][i-4:i+1])
			}
		}
		if took := time.Since(began); took > 130*time.Second {
			t.Errorf("12 searches at 4 a minute took %v", took)
		}
		if slices.Sort(h.sent["core"]); h.sent["core"][59] > 5*time.Second {
			t.Errorf("core at %v", h.sent["core"])
		}
		names, err := store.Names(t.Context())
		if err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "default/resource search/key-") }) {
			t.Errorf("%v: the store has %q", err, names)
		}
	})
}

// The resources of an input that is read once are joined with their first request. A store that is not stated to
// be new lets nothing go in the first window.
func TestAResourceIsJoinedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 600, 600, 0)
		b.config.Charges = []provider.Charge{{On: "* /search/*", Resource: "search {1}"}}
		b.config.Resources = []ResourceLimit{{Resource: "search *", Rate: minutely(2, 0, false)}}
		b.config.Share = sharestore.New(sharestore.Config{Store: new(sharetest.Memory), Address: "memory"})
		r := b.made(b.config)
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(slices.Concat(lines(4, "/search/a"), lines(2, "/search/b"), lines(2, "/user")), "\n")
		err := r.Send(t.Context(), "in", strings.NewReader(text))
		totals, _ := r.Close()
		b.config.Share.Close()
		all := h.sent["search"]
		if err != nil || totals.Done != 8 || len(all) != 6 || all[0] < time.Minute || all[3] > 80*time.Second || all[4] < 2*time.Minute ||
			all[5] > 3*time.Minute || h.sent["core"][1] != 0 {
			t.Errorf("%v: %d done, searches at %v, core at %v", err, totals.Done, all, h.sent["core"])
		}
	})
}

// An answer that names another resource than the charge is no news of this one, and that is said once.
func TestAnotherResourceIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 30, 0)
		b.config.Charges = []provider.Charge{{On: "GET /user", Resource: "users"}}
		out := b.run(lines(10, "/user")...)
		if out.err != nil || out.Done != 10 || len(h.refused) > 0 {
			t.Errorf("%v: %d done, refused %v", out.err, out.Done, h.refused)
		}
		if n := strings.Count(out.notices, "GET /user counts in the resource core, and not in users, as its answer says: --charge 'GET /user=resource core'"); n != 1 {
			t.Errorf("said %d times: %s", n, out.notices)
		}
	})
}

// Where all requests count in the limits of the run, a resource waits for these, and its results say so.
func TestAResourceWaitsForTheLimitOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
		b.config.Limits, b.config.Concurrency = []format.Rate{{N: 1, Per: time.Minute, Text: "1/m"}}, 1
		b.config.Charges = []provider.Charge{{On: "GET /search/*", Resource: "search"}}
		out := b.run(request("a", url+"search/a"), request("b", url+"search/b"), request("c", url+"search/c"))
		if waits := out.results["c"].WaitedFor; out.err != nil || waits["limit 1/m"] < 119_000 || waits["limit of search"] > 0 {
			t.Errorf("%v: the third waited for %v", out.err, waits)
		}
	})
}

// A plan counts each limit of a resource, by the requests of that resource alone.
func TestPlanOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := hubBench(t, 60, 3, 0)
		b.config.Limits = []format.Rate{minutely(60, 0, false)}
		b.config.Resources = []ResourceLimit{{Resource: "search", Rate: minutely(3, 0, false)}, {Resource: "none", Rate: minutely(1, 0, false)}}
		r := b.made(b.config)
		text := strings.Join(slices.Concat(lines(120, "/user"), lines(7, "/search/a")), "\n")
		if err := r.Check("input", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		p := r.Plan(time.Now())
		if len(p.Limits) != 2 || p.Seconds != 120 || p.Limits[0].Cost != 120 || p.Limits[0].Seconds != 60 || p.Limits[0].Binds ||
			!strings.HasPrefix(p.Limits[1].Limit, "search: ") || p.Limits[1].Cost != 7 || !p.Limits[1].Binds {
			t.Errorf("%v s, %+v", p.Seconds, p.Limits)
		}
	})
}

// Where answers name another resource than the row, later requests of that path count there, and keep to its
// limit. Only those that were read before may be refused.
func TestAWrongResourceIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := hubBench(t, 60, 30, 0)
		b.config.Charges = []provider.Charge{{On: "GET /user", Resource: "users"}}
		b.config.Limits = []format.Rate{minutely(60, 0, false)}
		b.config.Queue = 2
		out := b.run(lines(150, "/user")...)
		if out.err != nil || out.Done != 150 || h.refused["core"] > 0 {
			t.Errorf("%v: %d done, refused %v", out.err, out.Done, h.refused)
		}
	})
}
