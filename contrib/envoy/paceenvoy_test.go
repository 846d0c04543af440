package paceenvoy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	paceenvoy "github.com/paceline-go/paceline/contrib/envoy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

func exchange(t *testing.T) *ratetest.Exchange {
	t.Helper()
	x, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key1"}, Limit: 20, Window: time.Second, AnyNonce: true,
		Before: latency.Uniform(0, 30*time.Millisecond), After: latency.Uniform(0, 30*time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func get(n int) *http.Request {
	r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://api.example.com%s?api_key=key1&req_id=%d", ratetest.Path, n), nil)
	if err != nil {
		panic(err)
	}
	return r
}

// A hundred requests at once go at the limit of a strict server: 20 at once, then 20 each second.
func TestStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := exchange(t)
		d, p := drive(t, paceenvoy.Config{Transport: transport.Config{Limiter: limit.MustRolling(20, time.Second)}}, ratetest.InMemory(x))
		began := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				a, err := d.do(t.Context(), get(i))
				if err != nil || a.status != http.StatusOK {
					t.Errorf("request %d: %v, %v", i, a, err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if r := x.Report().Judge.Total; r.Limited != 0 || r.Accepted != 100 {
			t.Errorf("accepted %d, refused %d; want 100, 0", r.Accepted, r.Limited)
		}
		t.Logf("100 requests in %v; the least possible is 4 s", took)
		if took > 4500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if s := p.Stats(); s.Attempts != 100 || s.Refused != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A request whose client goes away while it waits leaves its place to the next one.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := exchange(t)
		d, _ := drive(t, paceenvoy.Config{Transport: transport.Config{Limiter: limit.MustRolling(1, 10*time.Second)}}, ratetest.InMemory(x))
		if _, err := d.do(t.Context(), get(1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		go d.do(ctx, get(2))
		time.Sleep(time.Second)
		if a, err := d.do(t.Context(), get(3)); err != nil || a.status != http.StatusOK {
			t.Error(a, err)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the third request went after %v; want 10 s, as the second one is gone", took)
		}
		if n := len(x.Records()); n != 2 {
			t.Errorf("%d requests arrived; want 2", n)
		}
	})
}

// A request that was sent and never answered counts as one that may have arrived.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(r *http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }
		ended := make(chan limit.Result, 2)
		d, _ := drive(t, paceenvoy.Config{Transport: transport.Config{Limiter: limit.MustRolling(1, 10*time.Second),
			Ended: func(a transport.Attempt) { ended <- a.Result }}}, roundTripper(cut))
		if _, err := d.do(t.Context(), get(1)); err == nil {
			t.Fatal("no error")
		}
		if r := <-ended; r != limit.Unknown {
			t.Errorf("it is %v; want unknown", r)
		}
		x := exchange(t)
		d.to = ratetest.InMemory(x)
		began := time.Now()
		if a, err := d.do(t.Context(), get(2)); err != nil || a.status != http.StatusOK {
			t.Error(a, err)
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("the second request went after %v; want 10 s at least", took)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A pause that one answer asks for holds for all requests.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if at = append(at, time.Since(began)); len(at) == 1 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		d, _ := drive(t, paceenvoy.Config{}, ratetest.InMemory(h))
		if a, err := d.do(t.Context(), get(1)); err != nil || a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "7" {
			t.Error(a, err)
		}
		if a, err := d.do(t.Context(), get(2)); err != nil || a.status != http.StatusOK {
			t.Error(a, err)
		}
		if len(at) != 2 || at[1] < 7*time.Second {
			t.Errorf("the requests arrived after %v; want the second after 7 s", at)
		}
	})
}

// A wait that is too long is an answer at once, with the time to come back.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := exchange(t)
		d, _ := drive(t, paceenvoy.Config{Transport: transport.Config{Limiter: limit.MustRolling(1, time.Minute)}, MaxWait: 5 * time.Second},
			ratetest.InMemory(x))
		if _, err := d.do(t.Context(), get(1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a, err := d.do(t.Context(), get(2))
		if err != nil || a.status != http.StatusTooManyRequests || a.header.Get("retry-after") < "60" {
			t.Errorf("%+v, %v; want 429, retry-after of 60 at least", a, err)
		}
		var p struct {
			Limit  string
			WaitMS int64 `json:"wait_ms"`
		}
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.WaitMS < 59_000 || p.Limit == "" {
			t.Errorf("%s, %v", a.body, err)
		}
		if time.Since(began) > time.Second {
			t.Errorf("it was refused after %v", time.Since(began))
		}
	})
}

// The key's credential takes the place of the request's own.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan http.Header, 1)
		d, _ := drive(t, paceenvoy.Config{Transport: transport.Config{Keys: []transport.Key{{Name: "one", Apply: func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer real")
		}}}}}, ratetest.InMemory(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })))
		r := get(1)
		r.Header.Set("Authorization", "Bearer placeholder")
		if _, err := d.do(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if h := <-seen; h.Get("Authorization") != "Bearer real" || len(h.Values("Authorization")) != 1 {
			t.Errorf("%v", h["Authorization"])
		}
	})
}

// Tokens are estimated from the body, and settled by the usage in the answer.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 100, Tokens: 2000}})
		if err != nil {
			t.Fatal(err)
		}
		bucket, err := limit.NewBucket(limit.BucketConfig{Unit: limit.Tokens, Limit: 2000, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		estimator, err := tokens.New(tokens.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d, p := drive(t, paceenvoy.Config{MaxWait: 10 * time.Minute, Transport: transport.Config{Limiter: bucket, Tokens: estimator}},
			ratetest.InMemory(s))
		d.most = 11 * time.Minute
		d.mode = &extprocv3.ProtocolConfiguration{RequestBodyMode: modev3.ProcessingMode_BUFFERED, ResponseBodyMode: modev3.ProcessingMode_STREAMED}
		for range 6 {
			r, _ := http.NewRequest(http.MethodPost, "http://api.openai.com/v1/chat/completions", strings.NewReader(
				`{"model":"gpt-4o-mini","max_tokens":400,"messages":[{"role":"user","content":"`+strings.Repeat("word ", 200)+`"}]}`))
			r.Header.Set("Authorization", "Bearer key")
			r.Header.Set("Content-Type", "application/json")
			if a, err := d.do(t.Context(), r); err != nil || a.status != http.StatusOK {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		if s := p.Stats(); s.Refused != 0 || s.Attempts != 6 {
			t.Errorf("%+v", s)
		}
	})
}

// What Envoy is configured wrongly with is named, and no request is lost in it.
func TestWrongModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := drive(t, paceenvoy.Config{}, nil)
		d.mode.RequestBodyMode = modev3.ProcessingMode_STREAMED
		_, err := d.do(t.Context(), get(1))
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "request_body_mode is STREAMED; expected NONE") {
			t.Error(err)
		}
		d.mode = &extprocv3.ProtocolConfiguration{ResponseBodyMode: modev3.ProcessingMode_FULL_DUPLEX_STREAMED}
		if _, err = d.do(t.Context(), get(1)); !strings.Contains(fmt.Sprint(err), "response_body_mode is FULL_DUPLEX_STREAMED") {
			t.Error(err)
		}
		s, err := d.client.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.ask(s, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{}})
		if !strings.Contains(fmt.Sprint(err), "request_header_mode: SEND") {
			t.Error(err)
		}
	})
}

func TestNewNamesTheField(t *testing.T) {
	for want, c := range map[string]paceenvoy.Config{
		"Transport.Base":     {Transport: transport.Config{Base: http.DefaultTransport}},
		"Transport.Attempts": {Transport: transport.Config{Attempts: 3}},
		"MaxWait -1s":        {MaxWait: -time.Second},
		"nowhere":            {Transport: transport.Config{Preset: "nowhere"}},
	} {
		if _, err := paceenvoy.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

// FuzzFields tries headers of requests and answers that Envoy would not send.
func FuzzFields(f *testing.F) {
	f.Add("GET", "example.com", "/a?b=c", "200")
	f.Add("", "", "*", "1e9")
	p, err := paceenvoy.New(paceenvoy.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, host, path, code string) {
		s := &script{ctx: t.Context(), in: []*extprocv3.ProcessingRequest{
			{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{EndOfStream: true,
				Headers: headerMap([][2]string{{":method", method}, {":authority", host}, {":path", path}}, nil)}}},
			{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{EndOfStream: true,
				Headers: headerMap([][2]string{{":status", code}}, nil)}}},
		}}
		if err := p.Process(s); err == nil && s.sent == 0 {
			t.Error("neither an error nor an answer")
		}
	})
}

// The example's timeouts fit those of the processor.
func TestExample(t *testing.T) {
	b, err := os.ReadFile("envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failure_mode_allow: false", "max_message_timeout: 90s", "message_timeout: 1s", "request_header_mode: SEND", "response_header_mode: SEND"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("envoy.yaml has no %q", want)
		}
	}
}
