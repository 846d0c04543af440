package sharestore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A limit of requests is written as people write it. Of a node that wants more the part is written, by its weight and
// its least part among those that want more. A limit that nobody used says so, as does a second in which nothing is
// granted.
func TestSeenInWords(t *testing.T) {
	at := mono.Time(time.Hour)
	entry := func(name string, want int64, weight, least uint64) node.Entry {
		return node.Entry{ID: name, Name: name, Want: want, Weight: weight, Least: least, Until: at.Add(1500 * time.Millisecond)}
	}
	busy := entry("a", 1000, 1000, 0)
	busy.Open[limit.Requests] = 12
	book := &node.Book{Configuration: limit.Configuration(limit.MustRolling(600, time.Minute)), Turn: 1556, Latest: at.Add(-40 * time.Millisecond),
		Nodes: []node.Entry{busy, entry("b", 7, 1000, 500), entry("idle", 0, 1000, 0)}}
	s := &Seen{Name: "api", book: book, now: at}
	later := &Seen{Name: "api", book: book, now: at.Add(time.Second)}
	want := []string{
		"limit: 600/m (Rolling: 600 requests per 1m0s, margin 7.1ms)",
		"turns: 1,556, the last 40 ms ago",
		"used: 12 of 600 requests per 1 min",
		"clock: the store's",
		"node a: 0/s in the last 1 s, 12 requests granted or in flight, wants 1,000 more, and gets 50 % of the limit, its grants hold for 1.5 s, and its next turn renews them",
		"node b: 0/s in the last 1 s, nothing granted or in flight, wants 7 more, and gets 50 % of the limit, at least 50 % if it wants that, its grants hold for 1.5 s, and its next turn renews them",
		"node idle: 0/s in the last 1 s, nothing granted or in flight, " +
			"its grants hold for 1.5 s, and its next turn renews them",
		"nothing was granted in the last 1 s",
	}
	if got := s.Words(later); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	served := *book
	served.Nodes = slices.Clone(book.Nodes[:2]) // idle has left
	served.Nodes[0].Served, served.Nodes[0].Counts = 6, 1e6
	served.Nodes[1].Served, served.Nodes[1].Counts = 2, 2e6
	got := s.Words(&Seen{Name: "api", book: &served, now: at.Add(2 * time.Second)})
	if !strings.HasPrefix(got[4], "node a: 3/s in the last 2 s, ") || !strings.HasPrefix(got[5], "node b: 2/s in the last 2 s, ") ||
		!strings.HasPrefix(got[6], "node idle: nothing granted") || got[7] != "rate: 5 requests a second were granted in the last 2 s" {
		t.Errorf("it says\n%s", strings.Join(got, "\n"))
	}
	book.Nodes[1].Least = 750
	if got := s.Words(nil); !strings.Contains(got[4], "gets 25 %") || !strings.Contains(got[5], "gets 75 %") {
		t.Errorf("with a least part of 75 %%: %q, %q", got[4], got[5])
	}
	if is, _, turn := s.Row(); is != "600/m" || turn != "40 ms ago" {
		t.Errorf("row: %q, %q", is, turn)
	}
	unused := &Seen{Name: "api", book: &node.Book{Configuration: book.Configuration}, now: at}
	if _, _, turn := unused.Row(); turn != "not used yet" {
		t.Errorf("row of an unused limit: %q", turn)
	}
	if got := unused.Words(nil)[1]; got != "not used yet: requests with a key count in the limit of that key" {
		t.Errorf("an unused limit: %q", got)
	}
	both := "All [Rolling: 20 requests per 1s, margin 1.2ms; Rolling: 600 requests per 1m0s, margin 7.1ms]"
	if worded(both) != "20/s, 600/m" {
		t.Errorf("two limits: %q", worded(both))
	}
}

// Of requests at once the places of each node are written, and for how long those of a silent one stay its own.
func TestSeenAtOnce(t *testing.T) {
	at := mono.Time(time.Hour)
	entry := func(name string, has, want int64, silent time.Duration) node.Entry {
		e := node.Entry{ID: name, Name: name, Want: want, Weight: 1000, Until: at.Add(node.DefaultTTL - silent)}
		e.Open[limit.Requests] = has
		return e
	}
	four, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := &Seen{Name: "api/in flight", now: at, book: &node.Book{Configuration: limit.Configuration(four), Turn: 3, Latest: at}}
	s.book.Nodes = []node.Entry{entry("a", 3, 0, 0), entry("b", 0, 5, 0), entry("c", 1, 0, time.Minute), entry("d", 1, 0, 12*time.Minute)}
	later := *s
	later.now = at.Add(time.Second)
	want := []string{
		"limit: Concurrency: 4 requests at once",
		"turns: 3, the last 0 ms ago",
		"used: 4 of 4 requests at once",
		"clock: the store's",
		"node a: 3 requests granted or in flight",
		"node b: nothing granted or in flight, waits for 5 more",
		"node c: 1 requests granted or in flight, silent: its places stay its own for 10 min, unless it is seen that its process has ended",
		"node d: 1 requests granted or in flight, silent: given up, and taken out at the next turn of another",
	}
	if got := s.Words(&later); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is used is written also when no node is there: what was settled in the window, and the grants of a node that
// ended, from when it was given up on. It is written for each kind of limit that a flag or a file makes.
func TestUsedInSilence(t *testing.T) {
	at := mono.Time(time.Hour)
	rolling := func(n int64, per time.Duration, unit limit.Unit) func() limit.Limiter {
		return func() limit.Limiter {
			l, _ := limit.NewRolling(limit.RollingConfig{Limit: n, Window: per, Unit: unit})
			return l
		}
	}
	zoned := func(text string) func() limit.Limiter {
		return func() limit.Limiter {
			is, _ := rate.ParseCounted(text)
			l, _ := is.Limiter(limit.Arrivals{RejectsFree: true})
			return l
		}
	}
	for _, c := range []struct {
		made  func() limit.Limiter
		after time.Duration // from the settled send on
		want  string
	}{
		{rolling(600, time.Minute, 0), 0, "used: 10 of 600 requests per 1 min"},
		{rolling(600, time.Minute, 0), 40 * time.Second, "used: 6 of 600 requests per 1 min"}, // the node was given up 70 s ago
		{rolling(600, time.Minute, 0), 61 * time.Second, "used: 0 of 600 requests per 1 min"},
		{rolling(6000, time.Minute, limit.Weight), 0, "used: 70 of 6,000 weight per 1 min"},
		{rolling(5e6, 24*time.Hour, limit.Money), 0, "used: $0.0700 of $5.00 per 1 day"},
		{func() limit.Limiter {
			return limit.NewAll(rolling(20, time.Second, 0)(), rolling(600, time.Minute, 0)())
		}, 0, "used: 6 of 20 requests per 1 s; used: 10 of 600 requests per 1 min"},
		{func() limit.Limiter {
			l, _ := limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 40})
			return l
		}, 500 * time.Millisecond, "used: 6 of 40 requests"},
		{zoned("1000/d@America/Los_Angeles"), 0, "used: 10 of 1,000 requests per 1 day"},
		{func() limit.Limiter {
			h, _ := limit.NewHeadroom(limit.HeadroomConfig{Limiter: rolling(20, time.Second, 0)(), Ramp: time.Minute})
			return h
		}, 0, ""}, // that much is not known of the limit
	} {
		was := c.made()
		cost := limit.Cost{limit.Requests: 6, limit.Weight: 66, limit.Money: 66000}
		sent := &limit.Sent{At: at, Number: 1, Cost: cost}
		was.Admit(sent)
		was.Settle(at, sent, &limit.Outcome{Result: limit.Accepted})
		killed := node.Entry{ID: "a", Name: "a", Weight: 1000, Until: at.Add(-30*time.Second - node.DefaultLate)}
		killed.Open = limit.Cost{limit.Requests: 4, limit.Weight: 4, limit.Money: 4000}
		s := &Seen{Name: "api", now: at.Add(c.after), book: &node.Book{Turn: 1, Latest: at, Configuration: limit.Configuration(was),
			State: limit.AppendState(nil, was), Nodes: []node.Entry{killed}}}
		if got := strings.Join(s.used(), "; "); got != c.want {
			t.Errorf("%v after %s: %q, expected %q", c.after, s.book.Configuration, got, c.want)
		}
	}
}
