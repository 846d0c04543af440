package run

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// The effect of an attempt on its request and on its key, by its outcome. Whether it is final
// follows from the rest.
func TestWhatAnAnswerProves(t *testing.T) {
	fields := func(f ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(f); i += 2 {
			h.Set(f[i], f[i+1])
		}
		return h
	}
	retry := fields("Retry-After", "3")
	broken := errors.New("the connection was closed")
	invalid := func(a pool.Answer) bool { return a.Invalid && !a.Banned && !a.Returned }
	banned := func(a pool.Answer) bool { return a.Banned && !a.Invalid && !a.Returned }
	counts := func(a pool.Answer) bool { return !a.Banned && !a.Invalid && !a.Returned }
	doubtful := []string{"408", "500", "500, Retry-After", "503", "200, broken off", "no answer", "101, not asked for"}
	for _, c := range []struct {
		name   string
		res    response
		result limit.Result
		after  time.Duration
		reason string
		also   func(pool.Answer) bool
	}{
		{"101, asked for", response{status: 101}, limit.Accepted, 0, "", counts},
		{"101, not asked for", response{status: 101, switched: true}, limit.Failed, 0, "which was not asked for", invalid},
		{"200", response{status: 200}, limit.Accepted, 0, "", counts},
		{"204, Retry-After", response{status: 204, header: retry}, limit.Accepted, 0, "", counts},
		{"302", response{status: 302}, limit.Accepted, 0, "", counts},
		{"400", response{status: 400}, limit.Failed, 0, "answered 400 Bad Request", invalid},
		{"401, by flag", response{status: 401, body: []byte(`{"error":{"message":"wrong key"}}`)}, limit.Failed, 0, "answered 401 Unauthorized: wrong key", banned},
		{"408", response{status: 408}, limit.Failed, 0, "408", counts},
		{"425", response{status: 425}, limit.Failed, 0, "425", counts},
		{"429", response{status: 429}, limit.Limited, 0, "429", counts},
		{"429, Retry-After", response{status: 429, header: retry}, limit.Limited, 3 * time.Second, "429", counts},
		{"429, for two days", response{status: 429, header: fields("Retry-After", "172800")}, limit.Limited, 48 * time.Hour, "429", counts},
		{"429, broken off", response{status: 429, header: retry, err: broken}, limit.Limited, 3 * time.Second, "broken off: the connection", counts},
		{"429, not to be tried again", response{status: 429, header: fields("X-Should-Retry", "false")}, limit.Limited, 0, "asks not to", invalid},
		{"429, a reset", response{status: 429, header: fields("RateLimit", `"a";r=0;t=7`)}, limit.Limited, 7 * time.Second, "429", counts},
		{"500", response{status: 500}, limit.Failed, 0, "500", counts},
		{"500, Retry-After", response{status: 500, header: retry}, limit.Failed, 3 * time.Second, "500", counts},
		{"501", response{status: 501}, limit.Failed, 0, "501", invalid},
		{"503", response{status: 503}, limit.Failed, 0, "503", counts},
		{"503, Retry-After", response{status: 503, header: retry}, limit.Limited, 3 * time.Second, "503", counts},
		{"200, broken off", response{status: 200, err: broken}, limit.Failed, 0, "answered 200 OK, broken off: the connection", counts},
		{"no answer", response{err: broken}, limit.Unknown, 0, "no answer: the connection", counts},
		{"no connection", response{err: io.EOF}, limit.Unsent, 0, "EOF", counts},
		{"a nonce", response{status: 400, body: []byte(`{"error_msg":"bad nonce: 7 is not above the last one"}`)}, limit.Failed, 0, "nonce is used up",
			func(a pool.Answer) bool { return a.Misordered && counts(a) }},
		{"what is left", response{status: 200, header: fields("RateLimit-Remaining", "7")}, limit.Accepted, 0, "",
			func(a pool.Answer) bool { return a.Known == 1 && a.Remaining == limit.Cost{7} && a.Reset[0] == 0 }},
	} {
		query, err := format.ParseQuery([]string{"nonce={nonce}"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{BanStatus: []int{401}, Query: query})
		if err != nil {
			t.Fatal(err)
		}
		c.res.written, c.res.ended = c.res.err != io.EOF, time.Now()
		j := &job{res: c.res}
		ans, final := r.judge(j)
		if ans.Result != c.result || ans.RetryAfter.Round(time.Millisecond) != c.after || final != (c.result == limit.Accepted || ans.Invalid) || !strings.Contains(ans.Reason, c.reason) || !c.also(ans) {
			t.Errorf("%s: %+v, final %v", c.name, ans, final)
		}
		if unsure := slices.Contains(doubtful, c.name); j.unsure != unsure || j.doubt != unsure {
			t.Errorf("%s: unsure %v, doubt %v", c.name, j.unsure, j.doubt)
		}
	}
}

// Answers of a known host are read in its own dialect, even after a redirect: OKX refuses with 200.
func TestHostIsKnown(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	res := response{status: 200, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"code":"50011"}`), written: true, ended: time.Now()}
	for host, want := range map[string]limit.Result{"www.okx.com": limit.Limited, "a.test": limit.Accepted} {
		if ans, _ := r.judge(&job{res: res, hop: hop{url: &url.URL{Scheme: "https", Host: host}}}); ans.Result != want {
			t.Errorf("%s: %v, want %v", host, ans.Result, want)
		}
	}
}

// The dialect of a named provider is used, whatever the host.
func TestProviderIsAsked(t *testing.T) {
	okx, _ := provider.Lookup("okx")
	r, err := New(Config{Provider: okx})
	if err != nil {
		t.Fatal(err)
	}
	res := response{status: 200, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"code":"50011"}`), written: true, ended: time.Now()}
	ans, final := r.judge(&job{res: res, hop: hop{url: &url.URL{Scheme: "https", Host: "a.test"}}})
	if ans.Result != limit.Limited || final || !strings.Contains(ans.Reason, "a refusal") {
		t.Errorf("%+v, final %v", ans, final)
	}
}

// A redirect that is followed is no answer yet; one too many is the answer.
func TestRedirectIsNoAnswer(t *testing.T) {
	r, err := New(Config{Redirects: 1})
	if err != nil {
		t.Fatal(err)
	}
	at := &url.URL{Scheme: "http", Host: "a.test", Path: "/"}
	j := &job{r: &format.Request{URL: at}, hop: hop{url: at, method: http.MethodGet}, res: response{status: 302, header: http.Header{"Location": {"/b"}}, written: true, ended: time.Now()}}
	if ans, final := r.judge(j); final || !ans.Returned || ans.Result != limit.Failed || j.hop.url.Path != "/b" {
		t.Errorf("%+v, final %v, next %v", ans, final, j.hop)
	}
	if ans, final := r.judge(j); !final || ans.Result != limit.Accepted {
		t.Errorf("%+v, final %v", ans, final)
	}
}

// A refused prompt is not at fault if the server states when to come back. Otherwise its attempts
// are counted.
func TestRefusedPrompt(t *testing.T) {
	l, err := format.NewLLM(format.LLMConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Format: l})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status   int
		header   http.Header
		returned bool
	}{
		{429, nil, false},
		{429, http.Header{"Retry-After": {"3"}}, true},
		{503, nil, false},
		{503, http.Header{"Retry-After": {"3"}}, true},
		{500, http.Header{"Retry-After": {"3"}}, false},
	} {
		ans, final := r.judge(&job{res: response{status: c.status, header: c.header, written: true, ended: time.Now()}})
		if final || ans.Returned != c.returned || ans.Invalid {
			t.Errorf("%d %v: %+v, final %v", c.status, c.header, ans, final)
		}
	}
}
