package run

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/secret"
)

const hush = "sk-7Qw9Zr4Lx2Vb8Nm1Tk6Yp3" // a secret

// authorized is a server that notes the Authorization of each path. It repeats the request, and
// redirects or names a next page where its path begins with to/.
type authorized struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]string
}

func newAuthorized(t *testing.T) *authorized {
	a := &authorized{seen: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		a.mu.Lock()
		a.seen[q.URL.Path] = q.Header.Get("Authorization")
		a.mu.Unlock()
		if to := q.URL.Query().Get("next"); to != "" {
			w.Header().Set("Link", "<"+to+`>; rel="next"`)
		}
		if to := q.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
		user, password, _ := q.BasicAuth()
		fmt.Fprintln(w, q.Header["Authorization"], user, password)
	}))
	t.Cleanup(a.Close)
	return a
}

// at returns a URL at the server, with a user in it.
func (a *authorized) at(user, path string) string {
	return strings.Replace(a.URL, "://", "://"+user+"@", 1) + path
}

// basic is the Authorization that a server got for a path, decoded.
func (a *authorized) basic(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	scheme, rest, _ := strings.Cut(a.seen[path], " ")
	plain, err := base64.StdEncoding.DecodeString(rest)
	if err != nil || scheme != "Basic" {
		return a.seen[path]
	}
	return string(plain)
}

// The user and the password in a URL are sent as curl sends them, in every form of input.
func TestUserInURL(t *testing.T) {
	a := newAuthorized(t)
	for user, want := range map[string]string{
		"me:" + hush:            "me:" + hush,
		"me:p%40s%3As%2Fw%23":   "me:p@s:s/w#",
		"a%3Ab:c":               "a:b:c",
		"me":                    "me:",
		":" + hush:              ":" + hush,
		"me:p^w{}|<>üß`\\ %2 %": "me:p^w{}|<>üß`\\ %2 %",
		"me:p@w":                "me:p@w",
	} {
		if strings.ContainsAny(user, " {") { // neither may be in a list or in a template
			user, want = strings.NewReplacer(" ", "", "{}", "").Replace(user), strings.NewReplacer(" ", "", "{}", "").Replace(want)
		}
		quoted := strings.ReplaceAll(user, `\`, `\\`)
		for _, form := range []struct {
			name  string
			items *format.ItemsConfig
			lines []string
		}{
			{"lines", nil, []string{fmt.Sprintf(`{"url":"%s"}`, a.at(quoted, "/x"))}},
			{"urls", &format.ItemsConfig{Read: input.Config{Form: input.URLs}}, []string{a.at(user, "/x")}},
			{"csv", &format.ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "{row.u}"}, []string{"u,n", a.at(user, "/x") + ",1"}},
			{"--url", &format.ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: a.at(user, "/{row.n}")}, []string{"n,m", "x,1"}},
			{"array", &format.ItemsConfig{Read: input.Config{Form: input.JSON}}, []string{fmt.Sprintf(`["%s"]`, a.at(quoted, "/x"))}},
			{"curl", &format.ItemsConfig{Read: input.Config{Form: input.Curl}}, []string{"curl '" + a.at(user, "/x") + "'"}},
		} {
			delete(a.seen, "/x")
			b := newBench(t)
			if form.items != nil {
				h, err := format.NewItems(*form.items)
				if err != nil {
					t.Fatalf("%s: %v", form.name, err)
				}
				b.config.Format = h
			}
			out := b.run(form.lines...)
			if got := a.basic("/x"); got != want || out.Done != 1 || out.err != nil {
				t.Errorf("%s, %s: the server got %q, expected %q; %+v", form.name, user, got, want, out)
			}
			if strings.Contains(user, hush) {
				unseen(t, form.name, b.config.Out, out, hush)
			}
		}
	}
}

// unseen checks that nothing written by a run has a secret, in itself or in base64.
func unseen(t *testing.T, name, file string, out ran, secrets ...string) {
	t.Helper()
	var all strings.Builder
	all.WriteString(out.log + out.notices)
	for _, f := range []string{file, output.DeadBeside(file), file + ".journal"} {
		text, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all.WriteString(string(text))
	}
	for _, s := range secrets {
		for _, form := range []string{s, base64.StdEncoding.EncodeToString([]byte("me:" + s)), base64.StdEncoding.EncodeToString([]byte(":" + s))} {
			if i := strings.Index(all.String(), form); i >= 0 {
				t.Errorf("%s: %q is in %q", name, form, all.String()[max(0, i-100):min(len(all.String()), i+100)])
			}
		}
	}
}

// The user and the password go to the host of their URL and to no other, with redirects and with
// pages.
func TestUserStaysAtItsHost(t *testing.T) {
	home, other := newAuthorized(t), newAuthorized(t)
	b := newBench(t)
	b.config.Redirects, b.config.Attempts = 4, 1
	b.config.KeyHosts = secret.Places{placeOf(t, home.URL), placeOf(t, other.URL)} // keys may go there, a password not
	const me = "me:" + hush
	line := func(id, address string) string { return fmt.Sprintf(`{"id":"%s","url":"%s"}`, id, address) }
	b.run(
		line("1", home.at(me, "/1?to=/1a")),
		line("2", home.at(me, "/2?to="+home.URL+"/2a")),
		line("3", home.at(me, "/3?to="+other.URL+"/3a")),
		line("4", home.at(me, "/4?to="+home.at("eve:x", "/4a"))),
		line("5", home.at(me, "/5?to="+other.at("eve:x", "/5a"))),
		line("6", home.at(me, "/6?to="+other.URL+"/6a%3Fto="+home.URL+"/6b")),
		line("7", home.at(me, "/7?to=//"+strings.TrimPrefix(other.URL, "http://")+"/7a")),
		line("8", other.at("you:"+hush, "/8?to="+other.URL+"/8a")),
	)
	b = newBench(t)
	b.config.KeyHosts = secret.Places{placeOf(t, home.URL), placeOf(t, other.URL)}
	next, err := sending.ParseNext("link", "")
	if err != nil {
		t.Fatal(err)
	}
	b.config.Next, b.config.MaxPages = next, 5
	out := b.run(line("p", home.at(me, "/p1?next=/p2%3Fnext="+other.URL+"/p3%253Fnext="+home.at("eve:x", "/p4"))))
	unseen(t, "pages", b.config.Out, out, hush)
	for path, want := range map[string]string{
		"/1": me, "/1a": me, "/2": me, "/2a": me, "/3": me, "/4a": me, "/5": me, "/6": me, "/6b": me, "/p1": me, "/p2": me, "/p4": me,
	} {
		if got := home.basic(path); got != want {
			t.Errorf("%s: %q, expected %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"/3a": "", "/5a": "", "/6a": "", "/7a": "", "/p3": "", "/8": "you:" + hush, "/8a": "you:" + hush} {
		if got, is := other.seen[path]; !is || other.basic(path) != want {
			t.Errorf("another host, %s: %q (%v), expected %q", path, got, is, want)
		}
	}
}

// A field of the line or of the run comes before the user in its URL, as in curl.
func TestUserGivesWay(t *testing.T) {
	a := newAuthorized(t)
	b := newBench(t)
	b.run(fmt.Sprintf(`{"url":"%s","headers":{"authorization":"Bearer own"}}`, a.at("me:x", "/line")))
	header, err := format.ParseHeaders([]string{"Authorization: Bearer run"})
	if err != nil {
		t.Fatal(err)
	}
	b = newBench(t)
	b.config.Header = header
	b.run(fmt.Sprintf(`{"url":"%s"}`, a.at("me:x", "/run")))
	if a.seen["/line"] != "Bearer own" || a.seen["/run"] != "Bearer run" {
		t.Errorf("%q", a.seen)
	}
}

// An error about a URL has no part of the user and the password in it.
func TestUserInErrors(t *testing.T) {
	for _, address := range []string{
		"http://me:" + hush + "@", "http://me:" + hush + "/x@h.test/", "http://me:" + hush + "#x@h.test/", "http://me:" + hush + "?x@h.test/", "ftp://me:" + hush + "@h.test/", "me:" + hush + "@h.test/x",
		"//me:" + hush + "@h.test/", "http:/me:" + hush + "@h.test/", "http://me:" + hush + "@h.test:port/", "http://me:" + hush + "@[::1/", "\u200bhttp://me:" + hush + "@h.test/", "http://me:" + hush + "@h.test/?q=a b",
		"http://h.test/?q=a b&api_key=" + hush, "http://me:%zz" + hush + "@h .test/", "http://me:" + hush + "\u200b@h.test/",
	} {
		for _, form := range []struct {
			items *format.ItemsConfig
			line  string
		}{
			{nil, fmt.Sprintf(`{"url":"%s"}`, address)},
			{&format.ItemsConfig{Read: input.Config{Form: input.URLs}}, address},
			{&format.ItemsConfig{Read: input.Config{Form: input.JSON}}, fmt.Sprintf(`["%s"]`, address)},
			{&format.ItemsConfig{Read: input.Config{Form: input.Curl}}, "curl '" + address + "'"},
		} {
			b := newBench(t)
			if form.items != nil {
				b.config.Format, _ = format.NewItems(*form.items)
			}
			b.config.Attempts = 1
			out := b.run(form.line)
			if out.err == nil || strings.Contains(out.err.Error(), hush[:9]) {
				if strings.HasPrefix(form.line, "curl") && out.err == nil {
					continue // http is assumed there, and a white space is taken
				}
				t.Errorf("%s: %v", form.line, out.err)
			}
		}
	}
}

func placeOf(t *testing.T, address string) secret.Place {
	p, err := secret.ParsePlace(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A secret parameter of a line is not kept in the result of a page. A later run goes on with it all
// the same, since it is in its input.
func TestSecretParametersOfPages(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q.URL.RequestURI())
		fmt.Fprintf(w, `{"next":%q}`, strings.Repeat("x", len(asked)))
	}))
	defer s.Close()
	next, err := sending.ParseNext("cursor=/next", "")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.config.Next = next
	line := fmt.Sprintf(`{"id":"l","url":"%s/?a=1&token=%s&b=2"}`, s.URL, hush)
	for most := 1; most <= 3; most++ {
		b.config.MaxPages = most
		out := b.run(line)
		unseen(t, "pages", b.config.Out, out, hush)
	}
	want := []string{"/?a=1&token=" + hush + "&b=2", "/?a=1&b=2&cursor=x&token=" + hush, "/?a=1&b=2&cursor=xx&token=" + hush}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
