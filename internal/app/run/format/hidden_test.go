package format

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/secret"
)

const inside = "sk-7Qw9Zr4Lx2Vb8Nm1Tk6Yp3" // a secret

// aRequest returns a request in a form that was not written for paceline.
func aRequest(t *testing.T, address string, header http.Header, body string) *Request {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{ID: "1", Line: 1, Method: "POST", URL: u, Header: header, Body: []byte(body)}
}

// A secret of such a request is hidden wherever it stands. The shown request names the place, and
// has all else unchanged.
func TestSecretsOfWhatIsHandedOver(t *testing.T) {
	plain := http.Header{"X-Plain": {"open"}}
	with := func(name string, values ...string) http.Header { return http.Header{"X-Plain": {"open"}, name: values} }
	basic := base64.StdEncoding.EncodeToString([]byte("me:" + inside))
	for _, tc := range []struct {
		name    string
		address string
		header  http.Header
		body    string
		hidden  []string
		shown   []string // parts that stay
	}{
		{"nothing", "https://h.test/a?page=2&max_tokens=5", plain, `{"token_count":3,"text":"hello"}`, nil, []string{`https://h.test/a?page=2&max_tokens=5`, `"X-Plain":"open"`, `hello`}},
		{"a bearer's token, repeated", "https://h.test/" + inside + "/a", with("Authorization", "Bearer "+inside), "as " + inside, []string{"body", "header Authorization", "url"}, []string{"https://h.test/[Authorization]/a", "as [Authorization]"}},
		{"a password, repeated by itself", "https://h.test/?q=" + inside, with("Authorization", "Basic "+basic), "", []string{"header Authorization", "url"}, []string{"?q=[Authorization]"}},
		{"a whole field", "https://h.test/", with("X-Api-Key", inside), "", []string{"header X-Api-Key"}, []string{`"X-Api-Key":"` + hiddenText + `"`}},
		{"two of a field", "https://h.test/" + inside, with("X-Api-Key", "first-"+inside[3:], inside), "", []string{"header X-Api-Key", "url"}, nil},
		{"a cookie, repeated", "https://h.test/", with("Cookie", "lang=en; sid="+inside+"; x"), "of " + inside, []string{"body", "header Cookie"}, []string{"of [Cookie]"}},
		{"in a field that shows nothing", "https://h.test/", http.Header{"X-Api-Key": {inside}, "X-Note": {"key " + inside, "none"}}, "", []string{"header X-Api-Key", "header X-Note"}, []string{`"X-Note":["key [X-Api-Key]","none"]`}},
		{"in the last of a field", "https://h.test/", http.Header{"X-Api-Key": {inside}, "X-Note": {"none", "key " + inside}}, "", []string{"header X-Api-Key", "header X-Note"}, []string{`"X-Note":["none","key [X-Api-Key]"]`}},
		{"a user and password", "https://me-myself:" + inside + "@h.test/a", plain, "", []string{"url"}, []string{"https://" + hiddenText + "@h.test/a"}},
		{"a user, and another URL", "https://" + inside + "@h.test/a?u=http://x", plain, "", []string{"url"}, []string{"https://" + hiddenText + "@h.test/a?u=http://x"}},
		{"a user alone", "https://" + inside + "@h.test/a", plain, "", []string{"url"}, []string{"https://" + hiddenText + "@h.test/a"}},
		{"a parameter", "https://h.test/?a=1&api_key=" + inside + "&b=2", plain, "", []string{"url"}, []string{"?a=1&api_key=" + hiddenText + "&b=2"}},
		{"a signature", "https://h.test/?sign=" + inside + "&b=2", plain, "", []string{"url"}, []string{"?sign=" + hiddenText + "&b=2"}},
		{"another sign", "https://h.test/?sign=aries&b=2", with("OK-ACCESS-PASSPHRASE", inside), "", []string{"header OK-ACCESS-PASSPHRASE"}, []string{"?sign=aries&b=2"}},
		{"a parameter whose name is escaped", "https://h.test/?api%5Fkey=" + inside + "&b", plain, "", []string{"url"}, []string{"&b"}},
		{"a parameter without a value", "https://h.test/?api_key=&token&b=2", plain, "", nil, []string{"?api_key=&token&b=2"}},
		{"a form", "https://h.test/", http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}, "a=1&password=" + inside, []string{"body"}, []string{"a=1&password=" + hiddenText}},
		{"no form", "https://h.test/", http.Header{"Content-Type": {"text/plain"}}, "a=1&password=5", nil, []string{"a=1&password=5"}},
		{"members of JSON", "https://h.test/", plain, ` {"a":[{"token": "` + inside + `", "n":1}, "x"], "Password":"` + inside + `","z":"end"}`, []string{"body"}, []string{`{\"a\":[{\"token\": \"` + hiddenText + `\", \"n\":1}, \"x\"], \"Password\":\"` + hiddenText + `\",\"z\":\"end\"}`}},
		{"a parameter that is escaped wrongly, repeated", "https://h.test/?api_key=" + inside + "%zz", plain, "of " + inside + "%zz", []string{"body", "url"}, []string{"of [api_key]"}},
		{"a list of them", "https://h.test/", plain, `{"tokens":1,"secret":["` + inside + `","` + inside + `2"]}`, []string{"body"}, []string{`"body":"{\"tokens\":1,\"secret\":[\"` + hiddenText + `\",\"` + hiddenText + `\"]`}},
		{"no text", "https://h.test/", plain, "\xff\xfe" + inside, []string{"body"}, []string{`"method":"POST"`}},
	} {
		s := &Secrets{handed: true, Finder: secret.New(nil)}
		q := aRequest(t, tc.address, tc.header, tc.body)
		before := q.URL.String()
		s.Conceal(&Request{Method: "GET"}) // a line that is no request
		s.Conceal(q)
		line := string(s.LineOf(q))
		var w wholeRequest
		if err := json.Unmarshal([]byte(strings.ReplaceAll(line, `"headers":`, `"not":`)), &w); err != nil || !json.Valid([]byte(line)) {
			t.Errorf("%s: %v: %s", tc.name, err, line)
		}
		if strings.Contains(line, inside) || strings.Contains(line, basic) || strings.Contains(line, "me-myself") {
			t.Errorf("%s: shown in %s", tc.name, line)
		}
		if slices.Sort(w.Hidden); !slices.Equal(w.Hidden, tc.hidden) {
			t.Errorf("%s: hidden is %q, want %q", tc.name, w.Hidden, tc.hidden)
		}
		for _, text := range tc.shown {
			if !strings.Contains(line, text) {
				t.Errorf("%s: no %q in %s", tc.name, text, line)
			}
		}
		if got := s.Address(q); strings.Contains(got, inside) || got != w.URL {
			t.Errorf("%s: for people it goes to %s, in the line to %s", tc.name, got, w.URL)
		}
		if q.URL.String() != before || len(q.Body) != len(tc.body) {
			t.Errorf("%s: to show it has changed it: %s", tc.name, q.URL)
		}
		secrets := strings.Contains(tc.address+tc.body, inside) || len(tc.hidden) > 0
		if secrets != (len(q.own) > 0) && tc.name != "no text" {
			t.Errorf("%s: its secrets are %+v", tc.name, q.own)
		}
		for i, k := range q.own {
			if k.Value == "" || k.Value == hiddenText || slices.Contains(q.own[:i], k) {
				t.Errorf("%s: its secrets are %+v", tc.name, q.own)
			}
		}
		elsewhere, _ := url.Parse("https://h.test/next?cursor=" + inside)
		if _, found := s.OwnIn(q, elsewhere); found != (len(q.own) > 0 && !strings.Contains(tc.address, "%zz")) { // there the secret is longer
			t.Errorf("%s: found in the next page's URL: %v", tc.name, found)
		}
		if name, found := s.OwnIn(q, &url.URL{Scheme: "https", Host: "h.test", RawQuery: "token=" + inside}); !found || name != "token" {
			t.Errorf("%s: a secret by its name in the next page's URL: %q, %v", tc.name, name, found)
		}
	}
}

// A line written for paceline stays as it is in its dead letter. Its secrets are found by their
// places all the same, and hidden where the line is shown and where a server repeats them.
func TestLinesOfPacelineStay(t *testing.T) {
	for _, tc := range []struct {
		name, address string
		header        http.Header
		body          string
		secrets       int
	}{
		{"nothing", "https://h.test/?a=b&max_tokens=5", http.Header{"Content-Type": {"application/json"}}, `{"a":"it: is \"token\""}`, 0},
		{"a parameter", "https://h.test/?token=" + inside, nil, "", 1},
		{"a user and password", "https://me-myself:" + inside + "@h.test/", nil, "", 3},
		{"a field", "https://h.test/", http.Header{"X-Api-Key": {inside}}, "", 1},
		{"a cookie", "https://h.test/", http.Header{"Cookie": {"sid=" + inside}}, "", 2},
		{"a member", "https://h.test/", nil, `{"a":[{"api_key" : "` + inside + `"}]}`, 1},
		{"a member within a text", "https://h.test/", nil, `{"a":"{\"api_key\":5}"}`, 0},
		{"a form", "https://h.test/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "password=" + inside, 1},
	} {
		s := &Secrets{Finder: secret.New(nil)}
		q := aRequest(t, tc.address, tc.header, tc.body)
		q.Raw = json.RawMessage(`{"id":"1","url":"https://h.test/?token=x"}`)
		for _, handed := range []bool{false, true} {
			s.handed, q.own = handed, nil
			if s.Conceal(q); len(q.own) != tc.secrets {
				t.Errorf("%s, handed over %v: %+v", tc.name, handed, q.own)
			}
			if got := s.LineOf(q); string(got) != string(q.Raw) {
				t.Errorf("%s, handed over %v: %s", tc.name, handed, got)
			}
			if got := s.Address(q); strings.Contains(got, inside) || strings.Contains(got, "myself") || !strings.HasPrefix(got, "https://") || !strings.Contains(got, "h.test/") {
				t.Errorf("%s, handed over %v: it goes to %s", tc.name, handed, got)
			}
			if _, found := s.OwnIn(q, q.URL); found {
				t.Errorf("%s, handed over %v: a page keeps its parameters", tc.name, handed)
			}
			if shown, n := s.Of(q).HideIn("of " + inside); n != min(tc.secrets, 1) {
				t.Errorf("%s, handed over %v: a server's %q", tc.name, handed, shown)
			}
		}
	}
}

// The keys of a run are hidden in what is shown of each request, also of one with secrets of its own.
func TestSecretsOfARequestBesideKeys(t *testing.T) {
	const key, own = "9aK7q0Xw5Tz3Lm8Rv1", "Zx4Pq7Ns2Vb6Hd0Yc5"
	s := NewSecrets([]secret.Key{{Name: "A", Value: key}}, nil, nil, nil)
	text := key + " and " + own
	for _, c := range []struct {
		r    *Request
		want string
		n    int
	}{
		{nil, "[A] and " + own, 1},
		{&Request{}, "[A] and " + own, 1},
		{&Request{own: []secret.Key{{Name: "row.token", Value: own}}}, "[A] and [row.token]", 2},
	} {
		if got, n := s.Of(c.r).HideIn(text); got != c.want || n != c.n {
			t.Errorf("of %+v: %q with %d hidden, want %q", c.r, got, n, c.want)
		}
	}
}

// Values from a row are secret if their field or parameter is. Values of each attempt are not
// shown.
func TestSecretsOfRows(t *testing.T) {
	header, err := ParseHeaders([]string{"X-Api-Key: v1-{row.key}-x", "X-Mixed: {row.name} {key}", "X-Name: {row.name}", "X-Run: fixed"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := ParseQuery([]string{"token={row.token}", "n={row.name}", "sign={row.name}{nonce}", "fixed=1"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Secrets{handed: true, Finder: secret.New(nil), header: header, query: query}
	q := aRequest(t, "https://h.test/a", nil, "of "+inside+" and other-"+inside)
	q.filled, q.cells = []string{"key", "name", "token"}, []string{inside, "Ann", "other-" + inside}
	s.Conceal(q)
	var w struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Hidden  []string          `json:"hidden"`
	}
	line := s.LineOf(q)
	if err := json.Unmarshal(line, &w); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(line), inside) || w.Headers["X-Name"] != "Ann" || w.Headers["X-Api-Key"] != hiddenText || w.Headers["X-Mixed"] != hiddenText || len(w.Headers) != 3 || !strings.Contains(w.URL, "n=Ann") || strings.Contains(w.URL, "fixed") {
		t.Errorf("%s", line)
	}
	if want := []string{"body", "header X-Api-Key", "header X-Mixed", "query sign", "query token", "url"}; !slices.Equal(slices.Sorted(slices.Values(w.Hidden)), want) {
		t.Errorf("hidden is %q, want %q", w.Hidden, want)
	}
	if !slices.ContainsFunc(q.own, func(k secret.Key) bool { return k == secret.Key{Name: "row.token", Value: "other-" + inside} }) || slices.ContainsFunc(q.own, func(k secret.Key) bool { return k.Name == "row.name" && k.Value != "Ann" }) {
		t.Errorf("%+v", q.own)
	}
	if q.Cell("name") != "Ann" || q.Cell("none") != "" {
		t.Errorf("%q, %q", q.Cell("name"), q.Cell("none"))
	}
}
