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
	"github.com/paceline-go/paceline/internal/app/run/sending"
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
		res    sending.Response
		result limit.Result
		after  time.Duration
		reason string
		also   func(pool.Answer) bool
	}{
		{"101, asked for", sending.Response{Status: 101}, limit.Accepted, 0, "", counts},
		{"101, not asked for", sending.Response{Status: 101, Switched: true}, limit.Failed, 0, "which was not asked for", invalid},
		{"200", sending.Response{Status: 200}, limit.Accepted, 0, "", counts},
		{"204, Retry-After", sending.Response{Status: 204, Header: retry}, limit.Accepted, 0, "", counts},
		{"302", sending.Response{Status: 302}, limit.Accepted, 0, "", counts},
		{"400", sending.Response{Status: 400}, limit.Failed, 0, "answered 400 Bad Request", invalid},
		{"401, by flag", sending.Response{Status: 401, Body: []byte(`{"error":{"message":"wrong key"}}`)}, limit.Failed, 0, "answered 401 Unauthorized: wrong key", banned},
		{"408", sending.Response{Status: 408}, limit.Failed, 0, "408", counts},
		{"425", sending.Response{Status: 425}, limit.Failed, 0, "425", counts},
		{"429", sending.Response{Status: 429}, limit.Limited, 0, "429", counts},
		{"429, Retry-After", sending.Response{Status: 429, Header: retry}, limit.Limited, 3 * time.Second, "429", counts},
		{"429, for two days", sending.Response{Status: 429, Header: fields("Retry-After", "172800")}, limit.Limited, 48 * time.Hour, "429", counts},
		{"429, broken off", sending.Response{Status: 429, Header: retry, Err: broken}, limit.Limited, 3 * time.Second, "broken off: the connection", counts},
		{"429, not to be tried again", sending.Response{Status: 429, Header: fields("X-Should-Retry", "false")}, limit.Limited, 0, "asks not to", invalid},
		{"429, a reset", sending.Response{Status: 429, Header: fields("RateLimit", `"a";r=0;t=7`)}, limit.Limited, 7 * time.Second, "429", counts},
		{"500", sending.Response{Status: 500}, limit.Failed, 0, "500", counts},
		{"500, Retry-After", sending.Response{Status: 500, Header: retry}, limit.Failed, 3 * time.Second, "500", counts},
		{"501", sending.Response{Status: 501}, limit.Failed, 0, "501", invalid},
		{"503", sending.Response{Status: 503}, limit.Failed, 0, "503", counts},
		{"503, Retry-After", sending.Response{Status: 503, Header: retry}, limit.Limited, 3 * time.Second, "503", counts},
		{"200, broken off", sending.Response{Status: 200, Err: broken}, limit.Failed, 0, "answered 200 OK, broken off: the connection", counts},
		{"no answer", sending.Response{Err: broken}, limit.Unknown, 0, "no answer: the connection", counts},
		{"no connection", sending.Response{Err: io.EOF}, limit.Unsent, 0, "EOF", counts},
		{"a nonce", sending.Response{Status: 400, Body: []byte(`{"error_msg":"bad nonce: 7 is not above the last one"}`)}, limit.Failed, 0, "nonce is used up",
			func(a pool.Answer) bool { return a.Misordered && counts(a) }},
		{"what is left", sending.Response{Status: 200, Header: fields("RateLimit-Remaining", "7")}, limit.Accepted, 0, "",
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
		c.res.Written, c.res.Ended = c.res.Err != io.EOF, time.Now()
		j := &job{res: c.res}
		ans, final := r.judge.of(j)
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
	res := sending.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"code":"50011"}`), Written: true, Ended: time.Now()}
	for host, want := range map[string]limit.Result{"www.okx.com": limit.Limited, "a.test": limit.Accepted} {
		if ans, _ := r.judge.of(&job{res: res, hop: sending.Hop{URL: &url.URL{Scheme: "https", Host: host}}}); ans.Result != want {
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
	res := sending.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"code":"50011"}`), Written: true, Ended: time.Now()}
	ans, final := r.judge.of(&job{res: res, hop: sending.Hop{URL: &url.URL{Scheme: "https", Host: "a.test"}}})
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
	j := &job{r: &format.Request{URL: at}, hop: sending.Hop{URL: at, Method: http.MethodGet}, res: sending.Response{Status: 302, Header: http.Header{"Location": {"/b"}}, Written: true, Ended: time.Now()}}
	if ans, final := r.judge.of(j); final || !ans.Returned || ans.Result != limit.Failed || j.hop.URL.Path != "/b" {
		t.Errorf("%+v, final %v, next %v", ans, final, j.hop)
	}
	if ans, final := r.judge.of(j); !final || ans.Result != limit.Accepted {
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
		ans, final := r.judge.of(&job{res: sending.Response{Status: c.status, Header: c.header, Written: true, Ended: time.Now()}})
		if final || ans.Returned != c.returned || ans.Invalid {
			t.Errorf("%d %v: %+v, final %v", c.status, c.header, ans, final)
		}
	}
}
