package provider_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

func TestUnread(t *testing.T) {
	for _, c := range []struct{ name, dialect, fields, want string }{
		{"all of it read", "generic", "Retry-After: 1|X-RateLimit-Limit: 60|X-RateLimit-Remaining: 0|X-RateLimit-Reset: 5|Date: x|Server: y", ""},
		{"another's", "generic", "X-Foo-Limit: 12|X-Foo-Limit: 13|Etag: 1", "X-Foo-Limit: 12, 13"},
		{"all the words", "stripe", "X-A-Quota: 1|X-Api-Rate: 2|X-B-Usage: 3|X-C-Remaining: 4|X-D-Reset: 5|X-Throttled: 6|X-Should-Retry: 7|X-Tokenlimit: 8",
			"X-A-Quota: 1|X-Api-Rate: 2|X-B-Usage: 3|X-C-Remaining: 4|X-D-Reset: 5|X-Should-Retry: 7|X-Throttled: 6|X-Tokenlimit: 8"},
		{"what only looks so", "generic", "X-Generator: a|X-Accelerate: b|Strict-Transport-Security: c|Operation: d|Set-Cookie: e", ""},
		{"families as they come", "openai", "X-RateLimit-Limit-Requests: 1|X-RateLimit-Remaining-Odd: 2|X-RateLimit-Bucket: b", "X-Ratelimit-Bucket: b"},
		{"where the draft goes first", "generic", "RateLimit-Limit: 5|X-RateLimit-Limit: 5", "X-Ratelimit-Limit: 5"},
		{"what is no sentence", "generic", "X-Limit: \x1b[2J" + strings.Repeat("z", 500), "X-Limit:  [2J" + strings.Repeat("z", 76) + "…"},
	} {
		h := http.Header{}
		for f := range strings.SplitSeq(c.fields, "|") {
			name, value, _ := strings.Cut(f, ": ")
			h.Add(name, value)
		}
		d, _ := provider.Lookup(c.dialect)
		if got := provider.Explain(d, noon, provider.Response{Status: 200, Header: h}).Unread; strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if o := provider.Explain(own{}, noon, provider.Response{Status: 200, Header: http.Header{"X-Limit": {"1"}}}); o.Unread != nil {
		t.Errorf("of a dialect that is not ours: %q", o.Unread)
	}
}

// unreadIsUnread: Explain reads as Read does, and what it calls unread could as well be missing.
func unreadIsUnread(t *testing.T, name string, d provider.Dialect, now time.Time, r provider.Response) {
	t.Helper()
	read, o := d.Read(now, r), provider.Explain(d, now, r)
	unread := o.Unread
	o.Unread = nil
	if !reflect.DeepEqual(read, o) {
		t.Errorf("%s: Explain reads\n%+v, Read\n%+v", name, o, read)
	}
	if len(unread) == 0 {
		return
	}
	r.Header = r.Header.Clone()
	for _, u := range unread {
		field, _, _ := strings.Cut(u, ": ")
		delete(r.Header, field)
	}
	if without := d.Read(now, r); !reflect.DeepEqual(read, without) {
		t.Errorf("%s: without %q it is read as\n%+v, with it\n%+v", name, unread, without, read)
	}
}

// TestUnreadOfTheCorpus: little of all saved answers is unread, and none of it matters.
func TestUnreadOfTheCorpus(t *testing.T) {
	unread, total := 0, 0
	for _, name := range provider.Names() {
		d, _ := provider.Lookup(name)
		for _, s := range corpus.Load(t, "testdata", name) {
			unreadIsUnread(t, s.Name, d, s.Now, s.Response)
			total++
			if u := provider.Explain(d, s.Now, s.Response).Unread; len(u) > 0 {
				t.Logf("%s: %q", s.Name, u)
				unread++
			}
		}
	}
	if unread*4 > total {
		t.Errorf("of %d answers %d have fields that are not read", total, unread)
	}
}

// TestFields: a reading knows which fields it looks at; each of them, put into an answer, is then not unread.
func TestFields(t *testing.T) {
	for name, want := range map[string]string{
		"github":   "X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset X-RateLimit-Resource X-RateLimit-Used",
		"openai":   "OpenAI-Processing-Ms X-RateLimit-Limit-* X-RateLimit-Remaining-* X-RateLimit-Reset-*",
		"gitlab":   "RateLimit-Limit RateLimit-Name RateLimit-Observed RateLimit-Remaining RateLimit-Reset",
		"binance":  "X-MBX-Order-Count-* X-MBX-Used-Weight-* X-SAPI-Used-*",
		"zendesk":  "RateLimit-Reset X-Rate-Limit X-Rate-Limit-Remaining Zendesk-Ratelimit-*",
		"twilio":   "",
		"nobody's": "",
	} {
		if got := strings.Join(provider.Fields(name), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, p := range provider.Providers() {
		if d, ok := provider.Lookup(p.Name); ok && !p.Silent && len(provider.Fields(p.Name)) == 0 {
			t.Errorf("%s: no field is looked at, and it is not called silent: %v", p.Name, d)
		}
	}
}

func TestSigns(t *testing.T) {
	find := func(name string, want provider.Sign) {
		t.Helper()
		if all := provider.Signs(name); !slices.ContainsFunc(all, func(s provider.Sign) bool { return reflect.DeepEqual(s, want) }) {
			t.Errorf("%s: %+v, want %+v", name, all, want)
		}
	}
	find("alpaca", provider.Sign{Path: "code", Is: []provider.Pattern{"42910000"}, Means: provider.RateLimited})
	find("riot", provider.Sign{Field: "X-Rate-Limit-Type", Is: []provider.Pattern{"application", "method", "service"}, Means: provider.RateLimited, By: "="})
	find("bitfinex", provider.Sign{Body: true, Is: []provider.Pattern{"ERR_RATE_LIMIT", "ratelimit: error"}, Means: provider.RateLimited, Wait: time.Minute})
	find("spotify", provider.Sign{Status: []int{429}, Means: provider.RateLimited, Wait: 30 * time.Second})
	find("binance", provider.Sign{Status: []int{418}, Means: provider.Banned}) // by code
	for _, name := range []string{"cme", "ietf", "nobody's"} {
		if got := provider.Signs(name); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, s := range provider.Signs("deepseek") {
		if len(s.Status) == 1 && s.Status[0] == 429 && s.Means != provider.TooMany {
			t.Errorf("deepseek: twice: %+v", s)
		}
	}
}

// TestKinds: every row of the table is in one of its groups.
func TestKinds(t *testing.T) {
	kinds := map[string]string{}
	for _, p := range provider.Providers() {
		kinds[p.Name] = p.Kind
		if p.Kind == "" {
			t.Errorf("%s has no kind", p.Name)
		}
	}
	for name, want := range map[string]string{"openai": "Language models", "xai": "Language models", "okx": "Exchanges", "reddit": "Web", "ietf": "Anybody"} {
		if kinds[name] != want {
			t.Errorf("%s: %q, want %q", name, kinds[name], want)
		}
	}
}
