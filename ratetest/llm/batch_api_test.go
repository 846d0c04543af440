package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// A keeper is a client of the endpoints that count in no limit.
type keeper struct {
	t   *testing.T
	l   *llm.Server
	key string
}

// do makes a request and reads the answer into to, unless it is nil. It returns the status and the body.
func (k *keeper) do(method, path, kind, body string, to any) (int, string) {
	k.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	if k.key != "" {
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	w := httptest.NewRecorder()
	k.l.ServeHTTP(w, r)
	if to != nil {
		if err := json.Unmarshal(w.Body.Bytes(), to); err != nil || w.Code != http.StatusOK {
			k.t.Fatalf("%s %s: %d %v: %s", method, path, w.Code, err, w.Body)
		}
	}
	return w.Code, w.Body.String()
}

// upload sends a file, and returns its id.
func (k *keeper) upload(purpose, text string) string {
	k.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("purpose", purpose)
	part, _ := form.CreateFormFile("file", "lines.jsonl") // a buffer takes all
	part.Write([]byte(text))
	form.Close()
	var f struct{ ID string }
	k.do("POST", "/v1/files", form.FormDataContentType(), body.String(), &f)
	return f.ID
}

// shown is a batch of either provider.
type shown struct {
	ID, Status string
	Output     string         `json:"output_file_id"`
	Errors     string         `json:"error_file_id"`
	Processing string         `json:"processing_status"`
	Counts     map[string]int `json:"request_counts"`
	Results    string         `json:"results_url"`
}

func line(id string, more string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]%s}}`+"\n", id, more)
}

func (k *keeper) batch(text string) (b shown) {
	k.t.Helper()
	k.do("POST", "/v1/batches", "application/json", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, k.upload("batch", text)), &b)
	return b
}

func (k *keeper) look(b shown) (now shown) {
	k.t.Helper()
	k.do("GET", "/v1/batches/"+b.ID, "", "", &now)
	return now
}

// expectBatch compares what is shown of a batch.
func expectBatch(t *testing.T, b shown, status string, total, completed, failed int) {
	t.Helper()
	if b.Status != status || b.Counts["total"] != total || b.Counts["completed"] != completed || b.Counts["failed"] != failed {
		t.Errorf("%+v, want %s with %d of %d, %d failed", b, status, completed, total, failed)
	}
}

// A batch goes through its states by the server's clock, a line each 10 ms. Its output has a line for each request, in their order.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{t, newServer(t, llm.Config{Published: true}), "k"}
		b := k.batch(line("a", "") + line("b", `,"temperature":5`) + "\n" + line("c", `,"n":2`))
		expectBatch(t, b, "validating", 3, 0, 0)
		time.Sleep(25 * time.Millisecond)
		expectBatch(t, k.look(b), "in_progress", 3, 2, 0)
		time.Sleep(5 * time.Millisecond)
		expectBatch(t, k.look(b), "finalizing", 3, 3, 0)
		time.Sleep(10 * time.Millisecond)
		b = k.look(b)
		expectBatch(t, b, "completed", 3, 2, 1)
		_, output := k.do("GET", "/v1/files/"+b.Output+"/content", "", "", nil)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `"custom_id":"a"`) || !strings.Contains(lines[1], `"custom_id":"c"`) || strings.Count(lines[1], `"role":"assistant"`) != 2 {
			t.Errorf("%s", output)
		}
		if _, failed := k.do("GET", "/v1/files/"+b.Errors+"/content", "", "", nil); !strings.Contains(failed, `"custom_id":"b"`) || !strings.Contains(failed, "decimal_above_max_value") {
			t.Errorf("%s", failed)
		}
		if status, says := k.do("POST", "/v1/batches/"+b.ID+"/cancel", "", "", nil); status != http.StatusConflict {
			t.Errorf("%d %s", status, says)
		}
		if r := k.l.Report(); len(r.Verdicts) != 0 || len(r.Accounts) != 0 {
			t.Errorf("%+v: a batch counts in a limit", r)
		}
	})
}

// A batch that is canceled keeps what it had served, and one that is slow expires after a day.
func TestBatchEndsEarly(t *testing.T) {
	var all strings.Builder
	for n := range 40 {
		all.WriteString(line(fmt.Sprint(n), ""))
	}
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{t, newServer(t, llm.Config{Published: true, BatchPace: time.Hour}), "k"}
		canceled, expired := k.batch(all.String()), k.batch(all.String())
		time.Sleep(7*time.Hour + time.Minute)
		var now shown
		k.do("POST", "/v1/batches/"+canceled.ID+"/cancel", "", "", &now)
		expectBatch(t, now, "cancelling", 40, 7, 0)
		time.Sleep(time.Hour)
		now = k.look(canceled)
		expectBatch(t, now, "cancelled", 40, 7, 0)
		if _, failed := k.do("GET", "/v1/files/"+now.Errors+"/content", "", "", nil); strings.Count(failed, "batch_cancelled") != 33 {
			t.Errorf("%s", failed)
		}
		time.Sleep(16 * time.Hour)
		now = k.look(expired)
		expectBatch(t, now, "expired", 40, 24, 0)
		if _, failed := k.do("GET", "/v1/files/"+now.Errors+"/content", "", "", nil); strings.Count(failed, "batch_expired") != 16 {
			t.Errorf("%s", failed)
		}
	})
}

// Mistakes in the file of a batch are in the batch, each with its line.
func TestBatchOfMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{t, newServer(t, llm.Config{}), "k"}
		b := k.batch(line("a", "") + line("a", "") + "{\n" + line("", "") + strings.Replace(line("b", ""), "POST", "GET", 1) + strings.Replace(line("c", ""), "chat/completions", "responses", 1))
		time.Sleep(10 * time.Millisecond)
		_, says := k.do("GET", "/v1/batches/"+b.ID, "", "", nil)
		for number, code := range map[int]string{2: "duplicate_custom_id", 3: "invalid_json_line", 4: "missing_required_parameter", 5: "invalid_method", 6: "mismatched_url"} {
			if !strings.Contains(says, fmt.Sprintf(`{"code":%q,"line":%d,`, code, number)) {
				t.Errorf("no %s at line %d in %s", code, number, says)
			}
		}
		if empty := k.batch("\n"); k.look(empty).Status != "validating" {
			t.Errorf("%+v", empty)
		}
	})
}

// Each owner has files and batches of its own. Keys of one organization have them in common.
func TestOwners(t *testing.T) {
	l := newServer(t, llm.Config{Organizations: map[string]string{"a": "org", "b": "org"}})
	mine := &keeper{t, l, "a"}
	id := mine.upload("batch", "fig")
	for key, want := range map[string]int{"a": 200, "b": 200, "c": 404, "": 401} {
		k := &keeper{t, l, key}
		for _, path := range []string{"/v1/files/" + id, "/v1/files/" + id + "/content"} {
			if status, says := k.do("GET", path, "", "", nil); status != want {
				t.Errorf("%q: %d %s, want %d", key, status, says, want)
			}
		}
	}
	var list struct{ Data []struct{ ID string } }
	(&keeper{t, l, "c"}).do("GET", "/v1/files", "", "", &list)
	if len(list.Data) != 0 {
		t.Errorf("%+v", list)
	}
	(&keeper{t, l, "b"}).do("GET", "/v1/files?purpose=batch", "", "", &list)
	if len(list.Data) != 1 || list.Data[0].ID != id {
		t.Errorf("%+v", list)
	}
	if status, _ := mine.do("DELETE", "/v1/files/"+id, "", "", nil); status != 200 {
		t.Error(status)
	}
	if status, _ := mine.do("GET", "/v1/files/"+id, "", "", nil); status != 404 {
		t.Error(status)
	}
}

// What the endpoints without limits refuse, in the words of the provider.
func TestFreeRefusals(t *testing.T) {
	openai := newServer(t, llm.Config{Published: true})
	claude := newServer(t, llm.Config{Provider: llm.Anthropic, Published: true})
	for _, c := range []struct {
		l                  *llm.Server
		method, path, body string
		status             int
		says               string
	}{
		{openai, "GET", "/v1/models/gpt-nope", "", 404, `"code":"model_not_found"`},
		{openai, "GET", "/v1/models/gpt-4o", "", 200, `"object":"model"`},
		{openai, "POST", "/v1/files", "x", 400, `multipart`},
		{openai, "POST", "/v1/batches", "[]", 400, `could not parse`},
		{openai, "POST", "/v1/batches", `{"endpoint":"/v1/figs"}`, 400, `"param":"endpoint","code":"invalid_value"`},
		{openai, "POST", "/v1/batches", `{"endpoint":7}`, 400, `"param":"endpoint"`},
		{openai, "POST", "/v1/batches", `{"endpoint":"/v1/responses","completion_window":"1h"}`, 400, `"param":"completion_window"`},
		{openai, "POST", "/v1/batches", `{"endpoint":"/v1/responses","completion_window":"24h","input_file_id":"x"}`, 400, `"param":"input_file_id"`},
		{openai, "GET", "/v1/batches/x", "", 404, `No batch found`},
		{openai, "GET", "/v1/batches?limit=x", "", 400, `"param":"limit"`},
		{openai, "GET", "/v1/batches?after=x", "", 400, `"param":"after"`},
		{claude, "POST", "/v1/messages/count_tokens", `{"model":"claude-sonnet-5","messages":[{"role":"user","content":"Why?Why?"}]}`, 200, `{"input_tokens":2}`},
		{claude, "POST", "/v1/messages/count_tokens", `{"model":"claude-nope","messages":[{"role":"user","content":"Why?"}]}`, 404, `not_found_error`},
		{claude, "POST", "/v1/messages/count_tokens", `{"model":"claude-sonnet-5"}`, 400, `messages: field required`},
		{claude, "GET", "/v1/models?limit=2", "", 200, `"has_more":true`},
		{claude, "GET", "/v1/models?limit=2&before_id=claude-3-5-haiku", "", 200, `"data":[]`},
		{claude, "POST", "/v1/messages/batches", `{"requests":[]}`, 400, `List should have`},
		{claude, "POST", "/v1/messages/batches", `{"requests":[{"custom_id":"a","params":{}},{"custom_id":"a","params":{}}]}`, 400, `is there twice`},
		{claude, "POST", "/v1/messages/batches", `{"requests":[{"custom_id":"a"}]}`, 400, `params: Field required`},
		{claude, "POST", "/v1/messages/batches", `{"requests":[{"params":{}}]}`, 400, `custom_id`},
		{claude, "GET", "/v1/messages/batches/x/results", "", 404, `not_found_error`},
	} {
		k := &keeper{t, c.l, "k"}
		if status, says := k.do(c.method, c.path, "application/json", c.body, nil); status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", c.method, c.path, c.body, status, says, c.status, c.says)
		}
	}
}

// Anthropic's batch counts nothing until it has ended. Its results are in the order of the requests.
func TestMessageBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{t, newServer(t, llm.Config{Provider: llm.Anthropic, Published: true, BatchPace: time.Second}), "k"}
		params := `{"model":"claude-sonnet-5","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]`
		make := func() (b shown) {
			body := fmt.Sprintf(`{"requests":[{"custom_id":"a","params":%[1]s}},{"custom_id":"b","params":%[1]s,"temperature":5}},{"custom_id":"c","params":%[1]s}}]}`, params)
			k.do("POST", "/v1/messages/batches", "application/json", body, &b)
			return b
		}
		look := func(b shown) (now shown, results []string) {
			k.do("GET", "/v1/messages/batches/"+b.ID, "", "", &now)
			_, text := k.do("GET", "/v1/messages/batches/"+b.ID+"/results", "", "", nil)
			return now, strings.Split(strings.TrimSpace(text), "\n")
		}
		b, other := make(), make()
		time.Sleep(2500 * time.Millisecond)
		now, results := look(b)
		if now.Processing != "in_progress" || now.Counts["processing"] != 3 || now.Results != "" || !strings.Contains(results[0], "no results yet") {
			t.Errorf("%+v %s", now, results)
		}
		k.do("POST", "/v1/messages/batches/"+other.ID+"/cancel", "", "", &now)
		if now.Processing != "canceling" {
			t.Errorf("%+v", now)
		}
		if status, says := k.do("DELETE", "/v1/messages/batches/"+b.ID, "", "", nil); status != 400 {
			t.Errorf("%d %s", status, says)
		}
		time.Sleep(1500 * time.Millisecond)
		now, results = look(b)
		if now.Processing != "ended" || now.Counts["succeeded"] != 2 || now.Counts["errored"] != 1 || now.Counts["processing"] != 0 || now.Results != "http://example.com/v1/messages/batches/"+b.ID+"/results" {
			t.Errorf("%+v", now)
		}
		for i, want := range []string{`{"custom_id":"a","result":{"message":{`, `{"custom_id":"b","result":{"error":{`, `{"custom_id":"c","result":{"message":{`} {
			if len(results) != 3 || !strings.HasPrefix(results[i], want) {
				t.Errorf("%s", results)
			}
		}
		now, results = look(other)
		if now.Counts["succeeded"] != 1 || now.Counts["errored"] != 1 || now.Counts["canceled"] != 1 || !strings.Contains(results[2], `"type":"canceled"`) {
			t.Errorf("%+v %s", now, results)
		}
		if status, _ := k.do("DELETE", "/v1/messages/batches/"+b.ID, "", "", nil); status != 200 {
			t.Error(status)
		}
	})
}

// A server keeps so many bytes of files and no more, and room that a deleted file leaves is used again.
func TestFilesAreBounded(t *testing.T) {
	race.Without(t) // one call after another
	k := &keeper{t, newServer(t, llm.Config{}), "k"}
	large := strings.Repeat("x", 60<<20)
	var ids []string
	for range 4 {
		ids = append(ids, k.upload("batch", large))
	}
	full := func() int {
		status, _ := k.do("POST", "/v1/files", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"+large+"\r\n--b--\r\n", nil)
		return status
	}
	if status := full(); status != 400 {
		t.Errorf("%d, want 400", status)
	}
	k.do("DELETE", "/v1/files/"+ids[0], "", "", nil)
	if status := full(); status != 200 {
		t.Errorf("%d, want 200", status)
	}
}

// Structured answers have the usage of their text, with thoughts on top, and end with "length" where a bound cuts them.
func TestStructured(t *testing.T) {
	format := `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"city":{"type":"string"}}}}}`
	body := func(more string) string {
		return `{"model":"gpt-4o","messages":[{"role":"user","content":"Why?"}]` + format + more + `}`
	}
	for more, want := range map[string]string{"": `"content":"{\"city\":\"fig\"}"`, `,"max_tokens":2`: `"content":"{\"city\":"`, `,"max_tokens":4`: `"content":"{\"city\":\"fig\"}"`} {
		said := ask(newServer(t, llm.Config{Law: llm.Law{Reasoning: 0.5}}), chat, "k", body(more)).Body.String()
		cut := strings.Contains(said, `"finish_reason":"length"`)
		if !strings.Contains(said, want) || cut != (more != "") || more == "" && !strings.Contains(said, `"completion_tokens":6`) {
			t.Errorf("%s: %s", more, said)
		}
	}
	said := ask(newServer(t, llm.Config{Provider: llm.Anthropic}), messages, "k", `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"Why?"}],"output_config":{"format":{"type":"json_schema","schema":{"const":7}}}}`).Body.String()
	if !strings.Contains(said, `"text":"7"`) {
		t.Error(said)
	}
}

// FuzzBatch: no file breaks a batch, and each of its answers is JSON.
func FuzzBatch(f *testing.F) {
	f.Add(line("a", ""))
	f.Add(line("a", `,"n":128`) + "{\n\n" + line("a", ""))
	f.Add(`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":7}`)
	f.Add("\xff\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{t, newServer(t, llm.Config{}), "k"}
			b := k.batch(text)
			time.Sleep(time.Duration(b.Counts["total"]+2) * 10 * time.Millisecond)
			if b = k.look(b); b.Status != "failed" && b.Status != "completed" {
				t.Errorf("%+v", b)
			}
			answers := 0
			for _, id := range []string{b.Output, b.Errors} {
				if id == "" {
					continue
				}
				_, said := k.do("GET", "/v1/files/"+id+"/content", "", "", nil)
				for l := range strings.Lines(said) {
					if answers++; !json.Valid([]byte(l)) {
						t.Errorf("%q", l)
					}
				}
			}
			if b.Status == "completed" && answers != b.Counts["total"] {
				t.Errorf("%d answers: %+v", answers, b)
			}
		})
	})
}
