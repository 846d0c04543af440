package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/jobs"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// A client with models may use these alone, wherever a request names one. What names none is refused, too,
// if it has a body.
func TestModelsOfAClient(t *testing.T) { synctest.Test(t, modelsOfAClient) }

func modelsOfAClient(t *testing.T) {
	c := batching(t, t.TempDir())
	c.Bounds.Kept = 1 << 10
	c.Clients.List = []Client{{Name: "small", Models: []string{"gpt-4o-mini", "claude-*"}}}
	x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served") }), c)
	form := func(model string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n--b--\r\n"
	}
	const chat = "/v1/chat/completions"
	for _, c := range []struct {
		method, path, body, kind string
		says                     string // of the refusal; empty: it is served
	}{
		{"POST", chat, `{"model":"gpt-4o-mini","messages":[]}`, "", ""},
		{"POST", chat, `{"messages":[{"model":"gpt-5"}],"model":"claude-haiku"}`, "", ""},
		{"POST", chat, `{"model":"gpt-5"}`, "", `"gpt-5"; expected one of gpt-4o-mini, claude-*`},
		{"POST", chat, `{"model":"gpt-4o-mini","model":"gpt-5"}`, "", `"gpt-5"`},
		{"POST", chat, `{"model":"gpt-4o-mini","MODEL":"gpt-5"}`, "", `"gpt-5"`},
		{"POST", chat, `{"model":"gpt-4o-mini","models":["gpt-5"]}`, "", `"gpt-5"`},
		{"POST", chat, `{"model":7}`, "", "not found in the body"},
		{"POST", chat, `{"messages":[]}`, "", "not found in the body"},
		{"POST", chat, `{"model":"gpt-4o-mini"`, "", "not found in the body"},
		{"POST", chat, `[{"model":"gpt-4o-mini"}]`, "", "not found in the body"},
		{"POST", chat, `{"model":"gpt-4o-mini","x":"` + strings.Repeat("x", 2<<10) + `"}`, "", "not found in the body"},
		{"POST", chat + "?model=gpt-5", `{"model":"gpt-4o-mini"}`, "", `"gpt-5"`},
		{"POST", "/openai/deployments/gpt-5/chat/completions", `{"model":"gpt-4o-mini"}`, "", `"gpt-5"`},
		{"POST", "/openai/deployments/gpt-4o-mini/chat/completions", `{"messages":[]}`, "", ""},
		{"POST", "/model/gpt-5/converse", `{"messages":[]}`, "", `"gpt-5"`},
		{"POST", "/model/claude-opus/converse", `{"messages":[]}`, "", ""},
		{"POST", chat + "?model=gpt-4o-mini", `{"messages":[]}`, "", "not found in the body"},
		{"POST", "/v1/audio/transcriptions", form("gpt-4o-mini"), "multipart/form-data; boundary=b", ""},
		{"POST", "/v1/audio/transcriptions", form("whisper-1"), "multipart/form-data; boundary=b", `"whisper-1"`},
		{"POST", "/v1/audio/transcriptions", form("gpt-4o-mini"), "multipart/form-data", "not found in the body"},
		{"GET", "/v1/models", "", "", ""},
		{"POST", "/v1/responses/r/cancel", "", "", ""},
	} {
		for who, says := range map[string]string{"small": c.says, "large": ""} {
			resp, text := x.do(c.method, "/llm"+c.path, c.body, "X-Who", who, "Content-Type", c.kind)
			if says == "" {
				if text != "served" {
					t.Errorf("%s: %s %s %s: %d %s", who, c.method, c.path, c.body, resp.StatusCode, text)
				}
				continue
			}
			if text == "served" {
				t.Errorf("%s %s %s is served", c.method, c.path, c.body)
				continue
			}
			if p := refused(t, resp, text); p.Status != http.StatusForbidden || !strings.HasSuffix(p.Type, "#model-not-allowed") || !strings.Contains(p.Detail, says) {
				t.Errorf("%s %s: %+v, want %s", c.path, c.body, p, says)
			}
		}
	}
}

// A batch with a line for another model fails before it sends anything. A line whose client may not use
// its model any more gets an error.
func TestModelsOfABatch(t *testing.T) { synctest.Test(t, modelsOfABatch) }

func modelsOfABatch(t *testing.T) {
	c := batching(t, t.TempDir())
	c.Clients.List = []Client{{Name: "small", Models: []string{"gpt-4o-mini"}}}
	server := newLLM(t, llm.Config{Provider: llm.OpenAI})
	x := virtual(t, server, c)
	small, large := patron{x, "small"}, patron{x, "large"}
	mixed := promptsOf(1, "gpt-4o-mini") + strings.Replace(promptsOf(1, "gpt-4o"), `"custom_id":"`, `"custom_id":"other-`, 1)
	b := small.ended(small.batch(mixed), time.Minute)
	if len(b.Mistakes.Data) != 1 || b.Status != "failed" || b.Mistakes.Data[0].Code != "model_not_allowed" || b.Mistakes.Data[0].Line != 2 {
		t.Errorf("%+v", b)
	}
	if r := server.Report(); len(r.Verdicts) != 0 {
		t.Errorf("sent: %+v", r)
	}
	if b := large.ended(large.batch(mixed), time.Minute); b.Status != "completed" || b.Counts["completed"] != 2 {
		t.Errorf("%+v", b)
	}
	late := &bulk{x.proxy.common, x.proxy.config.Upstreams[0].Name, jobs.Way{Owner: "small", Waits: t.Context()}, false}
	q, err := http.NewRequestWithContext(t.Context(), "POST", "http://llm.test/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o"}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := late.RoundTrip(q); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%v %v", resp, err)
	}
}

// Whatever a body is, nothing is allowed of which a decoder finds another model.
func FuzzModels(f *testing.F) {
	f.Add([]byte(`{"model":"a","model":"b"}`))
	f.Add([]byte(`{"models":["a"],"Model":"b"}`))
	k := &client{Client: Client{Name: "c", Models: []string{"a"}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		if k.mayBatch(&url.URL{Path: "/v1/x"}, body) != nil {
			return
		}
		var as struct {
			Model  string
			Models []string
		}
		if json.Unmarshal(body, &as) != nil {
			return
		}
		for _, name := range append(as.Models, as.Model) {
			if name != "a" && name != "" {
				t.Fatalf("%q is allowed", body)
			}
		}
	})
}
