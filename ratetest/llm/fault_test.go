package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// Unreadable requests and unknown models, in the words of each provider.
func TestLLMErrors(t *testing.T) {
	race.Without(t) // one request after another
	openai := newServer(t, llm.Config{Keys: []string{"good"}, Models: []string{"m"}})
	claude := newServer(t, llm.Config{Provider: llm.Anthropic, Keys: []string{"good"}, Models: []string{"m"}})
	big := strings.Repeat(" ", 32<<20) + "{}"
	for _, c := range []struct {
		l               *llm.Server
		path, key, body string
		status          int
		says            string
	}{
		{openai, chat, "bad", prompt(1, 1), 401, `"code":"invalid_api_key"`},
		{openai, chat, "good", `{"model":`, 400, `parse the JSON body`},
		{openai, chat, "good", `null`, 400, `"type":"invalid_request_error","param":null,"code":null`},
		{openai, chat, "good", `{"messages":[{"role":"user"}]}`, 400, `"message":"model: field required","type":"invalid_request_error","param":"model","code":"missing_required_parameter"`},
		{openai, chat, "good", `{"model":"m","messages":[]}`, 400, `"param":"messages"`},
		{openai, chat, "good", `{"model":"m","messages":"x"}`, 400, `messages: not a list`},
		{openai, chat, "good", `{"model":"m","messages":[{"content":"x"}]}`, 400, `messages.0.role: field required`},
		{openai, chat, "good", `{"model":3,"messages":[{"role":"user"}]}`, 400, `model: 3 is of a wrong type`},
		{openai, chat, "good", prompt(1, 2_000_000), 400, `max_tokens: 2000000 is not from 1 to 1048576`},
		{openai, chat, "good", `{"model":"m","n":0,"messages":[{"role":"user"}]}`, 400, `n: 0 is not from 1 to 128`},
		{openai, chat, "good", strings.Replace(prompt(1, 1), `"m"`, `"gpt-9"`, 1), 404, "The model `gpt-9` does not exist"},
		{openai, chat, "good", big, 413, `maximum size`},
		{openai, responses, "good", `{"model":"m"}`, 400, `"param":"input"`},
		{openai, responses, "good", `{"model":"m","previous_response_id":"resp_1"}`, 200, `"object":"response"`},
		{openai, embeddings, "good", `{"model":"m","input":{}}`, 400, `"param":"input"`},
		{openai, embeddings, "good", `{"model":"m","input":[1,"a"]}`, 400, `"param":"input"`},
		{openai, embeddings, "good", `{"model":"m","input":"x","dimensions":5000}`, 400, `dimensions: 5000`},
		{openai, embeddings, "good", `{"model":"m","input":"x","encoding_format":"int8"}`, 400, `int8`},
		{openai, messages, "good", prompt(1, 1), 404, `"code":"unknown_url"`},
		{claude, messages, "bad", prompt(1, 1), 401, `{"error":{"message":"invalid x-api-key","type":"authentication_error"},"request_id":"req_`},
		{claude, messages, "good", prompt(1, 0), 400, `max_tokens: field required`},
		{claude, messages, "good", `{"model":"x","max_tokens":1,"messages":[{"role":"user"}]}`, 404, `"type":"not_found_error"`},
		{claude, messages, "good", big, 413, `"type":"request_too_large"`},
		{claude, chat, "good", prompt(1, 1), 404, `"type":"not_found_error"`},
	} {
		w := ask(c.l, c.path, c.key, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %.60s: %d %.300s, want %d, %s", c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
	}
	for status, change := range map[int]func(*http.Request){
		405: func(r *http.Request) { r.Method = "GET" },
		415: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		401: func(r *http.Request) { r.Header.Del("X-Api-Key"); r.Header.Del("Authorization") },
		400: func(r *http.Request) { r.Header.Del("Anthropic-Version") },
	} {
		r := llmRequest(messages, "good", prompt(1, 1))
		change(r)
		w := httptest.NewRecorder()
		if claude.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%d, want %d: %s", w.Code, status, w.Body)
		}
	}
	if r := openai.Report(); r.Verdicts["malformed"] != 15 || r.Verdicts["unauthorized"] != 1 || r.Verdicts["unknown_model"] != 1 || len(r.Accounts) != 1 {
		t.Errorf("%+v", r)
	}
}

// Refusals by a daily quota and for lack of credit are kinds of their own for readers of answers.
func TestLLMKindsOfRefusal(t *testing.T) {
	for _, c := range []struct {
		name   string
		config llm.Config
		want   provider.Refusal
		after  time.Duration
		status int
	}{
		{"a minute", llm.Config{Limits: llm.Limits{Requests: 1}}, provider.RateLimited, time.Minute, 429},
		{"a day", llm.Config{Limits: llm.Limits{Requests: 9, RequestsPerDay: 1}}, provider.QuotaExhausted, 24 * time.Hour, 429},
		{"too large", llm.Config{Limits: llm.Limits{Tokens: 3}}, provider.TooLarge, 0, 429},
		{"credit", llm.Config{Credit: 1}, provider.Unpaid, 0, 429},
		{"overloaded", llm.Config{Script: []string{"", "overloaded"}}, provider.Overloaded, time.Second, 503},
		{"injected", llm.Config{Script: []string{"", "429"}, RetryAfter: 3 * time.Second}, provider.RateLimited, 3 * time.Second, 429},
		{"a minute", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 1}}, provider.RateLimited, time.Minute, 429},
		{"credit", llm.Config{Provider: llm.Anthropic, Credit: 1}, provider.Unpaid, 0, 400},
		{"overloaded", llm.Config{Provider: llm.Anthropic, Script: []string{"", "overloaded"}}, provider.Overloaded, time.Second, 529},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newServer(t, c.config)
			path := []string{chat, messages}[c.config.Provider]
			ask(l, path, "k", prompt(1, 1))
			w := ask(l, path, "k", prompt(5, 1))
			d, _ := provider.Lookup(c.config.Provider.String())
			o := d.Read(time.Now(), provider.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()})
			if w.Code != c.status || o.Refusal != c.want || o.RetryAfter != c.after || len(o.Problems) > 0 {
				t.Errorf("%v, %s: %d, %+v\n%v %s", c.config.Provider, c.name, w.Code, o, w.Header(), w.Body)
			}
		})
	}
}

// Each fault over a socket, as a client meets it, with and without a stream.
func TestLLMFaults(t *testing.T) {
	for _, api := range []llm.Provider{llm.OpenAI, llm.Anthropic} {
		path := []string{chat, messages}[api]
		for fault := range strings.FieldsSeq("ok 429 500 502 overloaded unpaid reset cut ended error-event " +
			"no-usage no-headers lying-headers garbled-headers") {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%v, %v, stream %v", api, fault, stream)
				var log bytes.Buffer
				l := newServer(t, llm.Config{Provider: api, Script: []string{fault}, Truth: uses(9, 0, 100), LogTo: &log})
				if err := l.Start(""); err != nil {
					t.Fatal(err)
				}
				body := strings.TrimSuffix(prompt(5, 200), "}") + fmt.Sprintf(`,"stream":%v,"stream_options":{"include_usage":true}}`, stream)
				r, _ := http.NewRequest("POST", l.URL()+path, strings.NewReader(body))
				llmHeader(r.Header, "k")
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				w, err := client.Do(r)
				var text string
				var usage tokens.Usage
				var o provider.Observation
				status := 0
				if err == nil {
					status = w.StatusCode
					d, _ := provider.Lookup(api.String())
					text, usage, err = watch(t, path, strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream"), w.Body)
					w.Body.Close()
					o = d.Read(time.Now(), provider.Response{Status: status, Header: w.Header, Body: []byte(text)})
				}
				overloaded := []int{503, 529}[api]
				unpaid := []int{429, 400}[api]
				headers := len(o.Limits) > 0 && len(o.Problems) == 0
				ok := map[string]bool{
					"ok":              status == 200 && err == nil && usage.Output == 100 && headers,
					"429":             status == 429 && o.RetryAfter == time.Second && headers && o.Limits[0].Remaining.N > 0,
					"500":             status == 500 && strings.Contains(text, []string{"server_error", "api_error"}[api]),
					"502":             status == 502 && strings.HasPrefix(text, "<html>"),
					"overloaded":      status == overloaded && o.Refusal == provider.Overloaded,
					"unpaid":          status == unpaid && o.Refusal == provider.Unpaid && o.RetryAfter == 0,
					"reset":           errors.Is(err, syscall.ECONNRESET) && status == 0,
					"cut":             errors.Is(err, io.ErrUnexpectedEOF) && status == 200 && text != "",
					"ended":           errors.Is(err, tokens.ErrIncomplete) && !errors.Is(err, io.ErrUnexpectedEOF) && status == 200 && text != "",
					"error-event":     status == 200 && stream && errors.Is(err, tokens.ErrIncomplete) || status == 500 && !stream,
					"no-usage":        status == 200 && errors.Is(err, tokens.ErrNoUsage),
					"no-headers":      status == 200 && err == nil && len(o.Limits)+len(o.Problems) == 0,
					"lying-headers":   status == 200 && err == nil && headers && o.Limits[0].Remaining.N == o.Policies[0].Limit,
					"garbled-headers": status == 200 && err == nil && len(o.Problems) > 3,
				}[fault]
				if !ok {
					t.Errorf("%s: status %d, %v, usage %+v, %+v\n%s", name, status, err, usage, o, text)
				}
				client.CloseIdleConnections()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				report := l.Report()
				if n := report.Faults[fault]; n != 1 && fault != "ok" || report.Wrong > 0 {
					t.Errorf("%s: %+v", name, report)
				}
				again, err := llm.Judge(llm.Config{Provider: api}, &log)
				if again.Elapsed = report.Elapsed; err != nil || !reflect.DeepEqual(again, report) {
					t.Errorf("%s: by the log %+v, %v\nwant %+v", name, again, err, report)
				}
			}
		}
	}
	goleak.VerifyNone(t)
}

// A client that leaves a stream has used the output that was sent until then.
func TestLLMClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := newServer(t, llm.Config{Provider: llm.Anthropic, Truth: uses(10, 0, 1000), TokensPerSecond: 10, LogTo: &log})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		w := httptest.NewRecorder()
		l.ServeHTTP(w, llmRequest(messages, "k", strings.Replace(prompt(7, 2000), "{", `{"stream":true,`, 1)).WithContext(ctx))
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		// 12 events of 8 tokens.
		if !strings.Contains(log.String(), `{"event":"amended","at_ns":10000000000,"n":1,"key":"key 1","model":"m","counted":[0,3,0,3]}`) || strings.Count(log.String(), "[0,0,8,8]") != 11 {
			t.Errorf("%s", &log)
		}
		l.Close()
	})
}

// A closing server answers the requests under way at once.
func TestLLMCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Truth: uses(10, 0, 1000), TokensPerSecond: 10})
		late := newServer(t, llm.Config{Before: latency.Constant(time.Minute)})
		var all sync.WaitGroup
		all.Go(func() {
			w := ask(l, chat, "k", strings.Replace(prompt(7, 2000), "{", `{"stream":true,`, 1))
			if !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
				t.Errorf("%s", w.Body)
			}
		})
		all.Go(func() {
			if w := ask(late, chat, "k", prompt(1, 1)); w.Code != 503 || !strings.Contains(w.Body.String(), "closing") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		time.Sleep(time.Second)
		start := time.Now()
		l.Close()
		late.Close()
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		all.Wait()
		if w := ask(l, chat, "k", prompt(1, 1)); w.Code != 503 {
			t.Errorf("%d after Close", w.Code)
		}
		if r := late.Report(); r.Dropped != 1 {
			t.Errorf("%+v", r)
		}
	})
}
