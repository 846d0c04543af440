//go:build unix

package keeper

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
)

// kept is a Keeper of many runs, with its state in a file.
func kept(t *testing.T, state string) *Keeper {
	t.Helper()
	k := New(proxy.Config{Live: true, State: state, MaxWait: Forever, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// run is a run at servers with a limit.
func run(t *testing.T, limit string, to ...string) *Run {
	t.Helper()
	l, err := rate.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	c := proxy.Config{Listen: "127.0.0.1:0", Admin: proxy.Off}
	for i, text := range to {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Upstreams = append(c.Upstreams, proxy.Upstream{To: u, Name: strings.Repeat("u", i+1), Path: "/" + strings.Repeat("u", i+1),
			Limits: []proxy.Limit{{Limit: l}}})
	}
	if c, err = c.Checked(); err != nil {
		t.Fatal(err)
	}
	return &Run{Program: "test", PID: os.Getpid(), Upstreams: c.Upstreams, Settings: limit + strings.Join(to, " "), Temp: t.TempDir(),
		Client: proxy.Client{MaxWait: Forever}, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)}
}

func joined(t *testing.T, k *Keeper, r *Run) *Run {
	t.Helper()
	if err := k.Join(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// get asks for a URL as the program of a run does.
func get(t *testing.T, r *Run, at string) (status int, err error) {
	t.Helper()
	by, err := url.Parse(r.made.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(by)}}
	defer c.CloseIdleConnections()
	a, err := c.Get(at)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	return a.StatusCode, err
}

func server(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	return s
}

// Two runs count in the limits of one host. A run that comes after the end of another knows what that
// one sent. Figures are of one run.
func TestRunsCountTogether(t *testing.T) {
	s := server(t)
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	first, second := joined(t, k, run(t, "2/300ms", s.URL)), joined(t, k, run(t, "2/300ms", s.URL))
	began := time.Now()
	for _, r := range []*Run{first, second} {
		if status, err := get(t, r, s.URL+"/x"); status != http.StatusOK {
			t.Fatal(status, err)
		}
	}
	if f := k.Leave(t.Context(), first); f.Requests != 1 || f.Named != 1 || f.Hosts[0] != strings.TrimPrefix(s.URL, "http://") {
		t.Errorf("the first: %+v", f)
	}
	if len(k.Names()) != 1 {
		t.Errorf("runs: %q", k.Names())
	}
	third := joined(t, k, run(t, "2/300ms", s.URL))
	if status, err := get(t, third, s.URL+"/x"); status != http.StatusOK || time.Since(began) < 300*time.Millisecond {
		t.Errorf("the third request, after %v: %d, %v", time.Since(began), status, err)
	}
	if f := k.Leave(t.Context(), third); f.Requests != 1 {
		t.Errorf("the third: %+v", f)
	}
	if _, err := get(t, third, s.URL+"/x"); err == nil {
		t.Error("the entrance of a run that has left is open")
	}
	k.Leave(t.Context(), second)
}

// A run with other settings for a host, after the end of one, knows what that one sent, and so does the
// next one with the settings of the first.
func TestRunsWithOtherSettings(t *testing.T) {
	s := server(t)
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	other := func(r *Run) *Run {
		r.Upstreams[0].Arrivals.Late, r.Settings = time.Second, "other"
		return r
	}
	began := time.Now()
	for i, r := range []*Run{run(t, "2/700ms", s.URL), other(run(t, "2/700ms", s.URL)), run(t, "2/700ms", s.URL)} {
		joined(t, k, r)
		for range 2 {
			if status, err := get(t, r, s.URL+"/x"); status != http.StatusOK {
				t.Fatal(status, err)
			}
		}
		if went, least := time.Since(began), time.Duration(i)*700*time.Millisecond; went < least || went > least+5*time.Second {
			t.Errorf("run %d has sent 2 requests after %v, expected %v", i, went, least)
		}
		k.Leave(t.Context(), r)
	}
}

// A run's entrance takes its own token alone, and opens its own hosts alone.
func TestEntrances(t *testing.T) {
	one, other := server(t), server(t)
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	first, second := joined(t, k, run(t, "100/s", one.URL)), joined(t, k, run(t, "100/s", other.URL))
	if status, err := get(t, second, one.URL); status != http.StatusOK {
		t.Errorf("another run's host: %d, %v", status, err)
	}
	if f := k.Leave(t.Context(), second); f.Requests != 0 || f.Others != 1 {
		t.Errorf("another run's host is not passed unread: %+v", f)
	}
	mine, _ := url.Parse(first.made.URL)
	for _, key := range []string{second.key, "", strings.ToLower(first.key)} {
		mine.User = url.UserPassword("paceline", key)
		wrong := *first
		wrong.made.URL = mine.String()
		if status, err := get(t, &wrong, one.URL); status != http.StatusProxyAuthRequired {
			t.Errorf("the token %q: %d, %v", key, status, err)
		}
	}
	c, err := net.Dial("tcp", mine.Host)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	k.Leave(t.Context(), first)
}

// Runs that differ in a limit or a setting of a host are a conflict, whatever their other hosts are.
func TestConflicts(t *testing.T) {
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	first := joined(t, k, run(t, "20/s", "https://api.example.com", "https://other.example.com/v1"))
	for _, c := range []struct {
		limit, to string
		field     string
	}{
		{"20/s", "https://api.example.com", ""},
		{"30/s", "https://api.example.com:443", "Limits"},
		{"20/s", "https://api.example.com/v1", "To"},
		{"30/s", "http://API.example.com", "Limits"},
		{"30/s", "https://api.example.com:444", ""},
		{"30/s", "https://elsewhere.example.com", ""},
		{"20/s", "https://other.example.com/v1", ""},
		{"30/s", "https://other.example.com/v2", "Limits"},
	} {
		r := run(t, c.limit, c.to)
		err := k.Join(r)
		var wrong *ConflictError
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.field == "":
			k.Leave(t.Context(), r)
		case !errors.As(err, &wrong) || wrong.Field != c.field:
			t.Errorf("%+v: %v", c, err)
		case c.field == "Limits" && (wrong.Ours != "30/s" || wrong.Theirs != "20/s"):
			t.Errorf("%+v: %v", c, err)
		}
	}
	r := run(t, "20/s", "https://api.example.com")
	r.Settings, r.Upstreams[0].Header = "other", []proxy.Field{{Name: "X-Key", Value: "secret"}}
	if err := k.Join(r); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "Header") {
		t.Errorf("another field: %v", err)
	}
	k.Leave(t.Context(), first)
	if err := k.Join(r); err != nil {
		t.Errorf("after the end of the other: %v", err)
	}
	k.Leave(t.Context(), r)
}

// A state file that cannot be read is put aside, and everything that may have been sent counts: nothing
// goes at once.
func TestUnreadableState(t *testing.T) {
	s := server(t)
	state := filepath.Join(t.TempDir(), "state")
	first := kept(t, state)
	first.Leave(t.Context(), joined(t, first, run(t, "20/s", s.URL)))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	first.proxy = nil // it is closed
	if err := os.WriteFile(state, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := kept(t, state)
	r := joined(t, k, run(t, "20/s", s.URL))
	if text, err := os.ReadFile(state + aside); string(text) != "hello\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
	r2 := run(t, "20/s", s.URL)
	r2.Client.MaxWait = 3 * time.Second
	if status, err := get(t, joined(t, k, r2), s.URL); status != http.StatusTooManyRequests {
		t.Errorf("it goes: %d, %v", status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.Leave(ctx, r)
	k.Leave(ctx, r2)
}

// The figures of a run's end count denials and bans by answers, and connections, which carry several requests.
func TestFiguresOfAnswers(t *testing.T) {
	statuses := []int{http.StatusForbidden, http.StatusUnauthorized, http.StatusTeapot}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(statuses[0])
		statuses = statuses[1:]
	}))
	t.Cleanup(s.Close)
	other := server(t)
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	r := run(t, "2/300ms", s.URL)
	r.Upstreams[0].Provider, _ = provider.Lookup("binance")
	joined(t, k, r)
	by, err := url.Parse(r.made.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return by, nil }}}
	began := time.Now()
	for _, at := range []string{s.URL, other.URL, s.URL, other.URL, s.URL} {
		a, err := c.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, a.Body)
		if a.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began).Seconds()
	c.CloseIdleConnections()
	f := k.Leave(t.Context(), r)
	if f.Requests != 3 || f.Denied != 2 || f.Banned != 1 || f.Named != 1 || f.Others != 1 || f.Elsewhere != 1 || !(f.LongestWait > 0.1 && f.LongestWait < took) {
		t.Errorf("in %.3f s: %+v", took, f)
	}
	f.LongestWait = 2.5
	if got := f.Words(); !strings.HasSuffix(got, " 1 refused, 2 denied (401, 403), 1 ban, longest wait 2.5 s; 1 connection to 1 other host passed unread") {
		t.Errorf("%s", got)
	}
}

// A limit and a weight that a user changes hold for runs that come later, and the weight until its run ends.
func TestTurnOutlivesRuns(t *testing.T) {
	k := kept(t, filepath.Join(t.TempDir(), "state"))
	turn := func(knob, name, value, want string) {
		t.Helper()
		said, err := k.Turn(daemon.Turn{Knob: knob, Name: name, Value: value})
		if err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("%s %s %s: %q, want %q", knob, name, value, said, want)
		}
	}
	shows := func(limits, changes string) {
		t.Helper()
		s := k.Settings()
		if got := strings.Join(s.Limits, ", "); got != limits || strings.Join(s.Changes, ", ") != changes {
			t.Errorf("limits %s, changes %q; want %s, %s", got, s.Changes, limits, changes)
		}
	}
	turn(daemon.Limit, "", "9/s", "no program is served yet; expected one by paceline exec")
	first := joined(t, k, run(t, "20/s", "http://127.0.0.1:1"))
	turn(daemon.Limit, "", "9/s", "limit 20/s is 9/s now")
	turn(daemon.Share, first.client.Name, "3", "client "+first.client.Name+": weight 1 is 3 now")
	shows("9/s", "limit 20/s is 9/s now, client "+first.client.Name+": weight 1 is 3 now")
	second := joined(t, k, run(t, "7/m", "http://127.0.0.1:2"))
	shows("127.0.0.1:1: 9/s, 127.0.0.1:2: 7/m", "limit 127.0.0.1:1: 20/s is 9/s now, client "+first.client.Name+": weight 1 is 3 now")
	turn(daemon.Limit, "7/m", "8/m", "limit 127.0.0.1:2: 7/m is 8/m now")
	turn(daemon.Pause, "127.0.0.1:2", "", "127.0.0.1:2 paused until paceline ctl resume")
	k.Leave(t.Context(), first)
	shows("127.0.0.1:1: 9/s, 127.0.0.1:2: 8/m", "limit 127.0.0.1:1: 20/s is 9/s now, limit 127.0.0.1:2: 7/m is 8/m now")
	k.Leave(t.Context(), second)
	if s := k.Settings(); len(s.Pauses) != 1 || len(s.Clients) != 1 {
		t.Errorf("%+v", s)
	}
}
