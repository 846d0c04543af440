package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// However a host is written, it is its provider's: in capitals, with a port, with the dot at the end, with both.
func TestForHostHoweverWritten(t *testing.T) {
	for _, p := range provider.Providers() {
		for _, host := range p.Hosts {
			port := strings.Contains(host, ":") // that belongs to it
			if strings.HasPrefix(host, ".") {
				host = "any" + host
			}
			want, ok := provider.ForHost(host)
			if !ok {
				t.Errorf("%s is nobody's", host)
				continue
			}
			forms := []string{strings.ToUpper(host), host + ":443", host + ".", host + ".:443"}
			if port {
				forms = forms[:1]
			}
			for _, form := range forms {
				if got, ok := provider.ForHost(form); !ok || got.Name() != want.Name() {
					t.Errorf("%s is %v's, want %s's", form, got, want.Name())
				}
			}
		}
	}
	for _, host := range []string{"", ".", ":443", "[::1]", "[::1]:443", "github.com.evil.test", "localhost", "localhost:8080"} {
		if got, ok := provider.ForHost(host); ok {
			t.Errorf("%q is %v's", host, got.Name())
		}
	}
}

func answer(status int, body string, fields ...string) provider.Response {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return provider.Response{Status: status, Header: h, Body: []byte(body)}
}

// A server is known by the fields that no other sends: one alone, or several together.
func TestDetectByFewSigns(t *testing.T) {
	for _, tc := range []struct {
		r    provider.Response
		want string
	}{
		{answer(200, "", "Zendesk-Ratelimit-Account", "total=100"), "zendesk"},
		{answer(200, "", "X-Zendesk-Zorg", "yes"), "zendesk"},
		{answer(200, "", "X-Rate-Limit", "700", "X-Rate-Limit-Remaining", "699"), "zendesk"},
		{answer(200, "", "X-Rate-Limit", "700"), "generic"},
		{answer(200, "", "X-Rate-Limit-Remaining", "699"), "generic"},
		{answer(400, `{"error":{"message":"aiplatform.googleapis.com"}}`), "vertex"},
		{answer(399, `{"error":{"message":"aiplatform.googleapis.com"}}`), "generic"},
		{answer(429, `{"error":{"message":"of somebody"}}`), "generic"},
	} {
		if got := provider.Detect(tc.r).Name(); got != tc.want {
			t.Errorf("%d %v %s: %s, want %s", tc.r.Status, tc.r.Header, tc.r.Body, got, tc.want)
		}
	}
}

// GitHub refuses with 403, too. That is about limits if any of what it says is, and about permissions otherwise.
func TestForbiddenByGitHub(t *testing.T) {
	github, _ := provider.Lookup("github")
	for _, tc := range []struct {
		r    provider.Response
		want provider.Refusal
		wait time.Duration
	}{
		{answer(403, `{"message":"Must have admin rights"}`, "X-Ratelimit-Remaining", "59"), provider.None, 0},
		{answer(403, `{}`, "X-Ratelimit-Remaining", "0"), provider.RateLimited, 0},
		{answer(403, `{}`, "Retry-After", "7"), provider.RateLimited, 7 * time.Second},
		{answer(403, `{"message":"API rate limit exceeded for user"}`), provider.RateLimited, 0},
		{answer(403, `{"message":"You have exceeded a secondary rate limit"}`), provider.RateLimited, time.Minute},
		{answer(403, `{"message":"You have triggered an abuse detection mechanism"}`, "Retry-After", "9"), provider.RateLimited, 9 * time.Second},
	} {
		if o := github.Read(time.Unix(1_800_000_000, 0), tc.r); o.Refusal != tc.want || o.RetryAfter != tc.wait {
			t.Errorf("%v %s: %q, wait %v, want %q, %v", tc.r.Header, tc.r.Body, o.Refusal, o.RetryAfter, tc.want, tc.wait)
		}
	}
}

// An instant in seconds, milliseconds, microseconds or nanoseconds since 1970, with a fraction or without, is one instant; so is one written
// out.
func TestOneInstantInManyUnits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	generic, _ := provider.Lookup("generic")
	at := now.Add(30 * time.Second)
	for _, text := range []string{
		"30", fmt.Sprint(at.Unix()), fmt.Sprintf("%d.0", at.Unix()), fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMicro()), fmt.Sprint(at.UnixNano()),
		at.Format(time.RFC3339), at.Format("2006-01-02 15:04:05"), at.Format("2006-01-02T15:04:05"), at.Format(http.TimeFormat),
		at.Format("Mon Jan 02 2006 15:04:05 GMT-0700") + " (Coordinated Universal Time)", "30s", "30.000",
	} {
		o := generic.Read(now, answer(200, "", "X-Ratelimit-Limit", "100", "X-Ratelimit-Remaining", "9", "X-Ratelimit-Reset", text))
		if len(o.Limits) != 1 || !o.Limits[0].Reset.Equal(at) {
			t.Errorf("%q: %+v, want a reset at %v", text, o.Limits, at)
		}
	}
}

// The price of a model is known by any name that requests use. The price of a tuned one is not.
func TestPriceOf(t *testing.T) {
	plain, ok := provider.PriceOf("openai", "gpt-4o")
	if !ok || plain.USD(1e6, 0) != plain.Input || plain.USD(0, 1e6) != plain.Output || plain.USD(5e5, 1e6) != plain.Input/2+plain.Output {
		t.Errorf("%+v, %v", plain, ok)
	}
	for _, name := range []string{"openai/gpt-4o", "gpt-4o-2024-08-06", "a/b/gpt-4o"} {
		if m, ok := provider.PriceOf("openai", name); !ok || m != plain {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
	if m, ok := provider.LookupModel("openai", "ft:gpt-4o-2024-08-06:org::id"); !ok || m != plain {
		t.Errorf("tuned, it is %+v, %v", m, ok)
	}
	for _, name := range []string{"ft:gpt-4o-2024-08-06:org::id", "gpt-4o-of-mine", "", "2024-08-06"} {
		if m, ok := provider.PriceOf("openai", name); ok {
			t.Errorf("%q costs %+v", name, m)
		}
	}
	if m, ok := provider.PriceOf("openai", "text-embedding-3-small"); !ok || m.Input <= 0 { // of output it has none
		t.Errorf("%+v, %v", m, ok)
	}
	if m, ok := provider.PriceOf("nobody", "gpt-4o"); ok {
		t.Errorf("%+v", m)
	}
}
