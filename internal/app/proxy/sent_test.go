package proxy

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// attemptsIn reads a file of attempts. No line has a secret.
func attemptsIn(t *testing.T, path string, secrets ...string) (all []journal.SentLine) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		for _, s := range secrets {
			if strings.Contains(lines.Text(), s) {
				t.Errorf("a secret is in %s", lines.Text())
			}
		}
		var a journal.SentLine
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, a)
	}
	return all
}

// inOrder orders attempts by their sends.
func inOrder(all []journal.SentLine) []journal.SentLine {
	slices.SortStableFunc(all, func(a, b journal.SentLine) int {
		at, _ := time.Parse(time.RFC3339Nano, a.At)
		other, _ := time.Parse(time.RFC3339Nano, b.At)
		return at.Compare(other)
	})
	return all
}

// The file of attempts proves of a minute with weights that no window of a key held more than its limits, as the
// server saw it. It has a line of each attempt, also of one that was refused and sent again.
func TestSentProvesTheWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sent.jsonl")
		began := time.Now()
		var mu sync.Mutex
		arrived, weight := map[string]int{}, map[string]int64{}
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			key := r.Header.Get("X-Key")
			arrived[key]++
			if weight[key]++; strings.HasPrefix(r.URL.Path, "/depth") {
				weight[key] += 24
			}
			if arrived[key] == 7 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		x := virtual(t, server, Config{MaxWait: time.Hour, Sent: path,
			Clients: Clients{Header: "X-Client"},
			Upstreams: []Upstream{{Name: "market", To: mustURL(t, "http://api.test/"),
				Keys:    []Key{{Name: "A", Secret: "secret-of-a-8d7f6g"}, {Name: "B", Secret: "secret-of-b-8d7f6g"}},
				Header:  []Field{{Name: "X-Key", Value: "{key}"}},
				Charges: []provider.Charge{{On: "GET /depth*", Cost: map[provider.Unit]int64{provider.Weight: 25}}, {On: "* /*", Cost: map[provider.Unit]int64{provider.Weight: 1}}},
				Limits:  []Limit{limitOfUnit(t, "10/s", ""), limitOfUnit(t, "100 weight/10s", "")}}}})
		var all sync.WaitGroup
		for i := range 120 {
			path := "/price"
			if i%5 == 0 {
				path = "/depth?token=secret-of-a-8d7f6g"
			}
			all.Go(func() {
				if resp, _, err := x.try(t.Context(), "GET", path, "", "X-Client", "bot"); err != nil || resp.StatusCode != 200 {
					t.Errorf("%v, %v", resp, err)
				}
			})
		}
		all.Wait()
		x.stop()
		if took := time.Since(began); took < 20*time.Second || took > 2*time.Minute {
			t.Errorf("took %v", took)
		}
		refused, counted, sum := 0, map[string]int{}, map[string]int64{}
		windows := map[string][2]rule.Witness{}
		for _, a := range inOrder(attemptsIn(t, path, "secret-of")) {
			at, err := time.Parse(time.RFC3339Nano, a.At)
			if err != nil || a.Upstream != "market" || a.Client != "bot" || a.Method != "GET" || a.Requests != 1 || a.Attempt < 1 {
				t.Fatalf("%+v, %v", a, err)
			}
			if is := map[string]int64{"/depth": 25, "/price": 1}[a.Path]; a.Weight != is {
				t.Errorf("%+v, want %d weight", a, is)
			}
			if a.Status == 429 {
				refused++
				if a.Result != "limited" {
					t.Errorf("%+v", a)
				}
			}
			counted[a.Key]++
			sum[a.Key] += a.Weight
			if windows[a.Key][0] == nil {
				second, err := rule.RollingConfig{Limit: 10, Window: time.Second, Tick: -1}.Witness()
				ten, err2 := rule.RollingConfig{Limit: 100, Window: 10 * time.Second, Tick: -1}.Witness()
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				windows[a.Key] = [2]rule.Witness{second, ten}
			}
			windows[a.Key][0].Hear(mono.Of(began, at), 1, true)
			windows[a.Key][1].Hear(mono.Of(began, at), a.Weight, true)
		}
		for name, secret := range map[string]string{"A": "secret-of-a-8d7f6g", "B": "secret-of-b-8d7f6g"} {
			if counted[name] != arrived[secret] || sum[name] != weight[secret] || counted[name] == 0 {
				t.Errorf("key %s: %d attempts with %d weight are in the file, and %d with %d arrived", name, counted[name], sum[name],
					arrived[secret], weight[secret])
			}
			for i, w := range windows[name] {
				if f := w.Finding(); !f.Kept() || f.Utilisation() < 0.8 {
					t.Errorf("key %s: the fullest window of limit %d held %d of %d", name, i, f.Most, f.Limit)
				}
			}
		}
		if refused != 2 {
			t.Errorf("%d refused attempts are in the file, want one of each key", refused)
		}
	})
}
