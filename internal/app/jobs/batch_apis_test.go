package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Which paths are kept, of which upstreams. Others go to the upstream as they are.
func TestTakes(t *testing.T) {
	for path, want := range map[string][3]bool{ // any, OpenAI, Anthropic
		"/v1/files": {true, true, false}, "/files": {true, true, false}, "/v1/batches/x/cancel": {true, true, false},
		"/v1/messages/batches": {true, false, true}, "/v1/messages/batches/x/results": {true, false, true},
		"/v1/messages": {}, "/v1/chat/completions": {}, "/v1": {}, "/": {}, "": {}, "/v1/filesystem": {}, "/v2/files": {}, "/v1/messages/count_tokens": {},
	} {
		for f, is := range want {
			if got := Takes(Family(f), path); got != is {
				t.Errorf("%d %s: %v", f, path, got)
			}
		}
	}
}

func TestWindow(t *testing.T) {
	for s, want := range map[string]time.Duration{"24h": 24 * time.Hour, "7d": 168 * time.Hour, "1m": time.Minute, "90m": 90 * time.Minute,
		"": 0, "8d": 0, "169h": 0, "59s": 0, "-1h": 0, "d": 0, "0d": 0, "-1d": 0, "99999999999d": 0} {
		if d, ok := parseWindow(s); ok != (want > 0) || ok && d != want {
			t.Errorf("%q: %v %v", s, d, ok)
		}
	}
}

// Pages one after the other have every entry once, forwards and backwards, whatever their size.
func TestPages(t *testing.T) {
	id := func(n int) string { return fmt.Sprint("i", n) }
	for size := range 7 {
		for _, by := range []string{"after", "after_id", "before_id"} {
			got, at := map[int]int{}, ""
			if by == "before_id" {
				at, got[4] = id(4), 1
			}
			for range 10 {
				q := url.Values{"limit": {fmt.Sprint(size + 1)}}
				if at != "" {
					q.Set(by, at)
				}
				some, more, err := page(q, 20, 100, []int{0, 1, 2, 3, 4}, id)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range some {
					got[n]++
				}
				first, last := ends(some, id)
				if !more || len(some) == 0 {
					break
				}
				if at = last.(string); by == "before_id" {
					at = first.(string)
				}
			}
			for n := range 5 {
				if got[n] != 1 {
					t.Errorf("%s, pages of %d: %d is there %d times", by, size+1, n, got[n])
				}
			}
		}
	}
	for _, q := range []string{"limit=0", "limit=101", "limit=x", "after=no", "before_id=no"} {
		v, _ := url.ParseQuery(q)
		if _, _, err := page(v, 20, 100, []int{1}, id); err == nil || !strings.HasPrefix(err.Error(), strings.SplitN(q, "=", 2)[0]+":") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// Each error of the store has a status that says whose fault it is.
func TestStatuses(t *testing.T) {
	for want, err := range map[int]error{507: errNoRoom, 404: errNotThere, 413: errTooLarge, 429: errTooMany, 409: errEnded, 503: errStopping, 500: io.ErrUnexpectedEOF} {
		if got := statusOf(fmt.Errorf("x: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	if got := statusOf(&diskError{Err: errors.New("no space left on device")}); got != http.StatusInsufficientStorage {
		t.Error(got)
	}
}

// full fails as a disk that is full.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, &diskError{Err: errors.New("no space left on device")}
	}
	return len(p), nil
}

// A disk that is full in the middle is no mistake of the client's.
func TestInlineOnAFullDisk(t *testing.T) {
	body := `{"requests":[` + strings.Repeat(`{"custom_id":"a","params":{}},`, 1) + `{"custom_id":"b","params":{}}]}`
	err := inlineRequests(strings.NewReader(body), &full{40})
	if _, disk := errors.AsType[*diskError](err); !disk || statusOf(err) != 507 {
		t.Errorf("%v", err)
	}
	form, kind := formOf("x", strings.Repeat("y", 100))
	if _, bad := readForm(multipart.NewReader(bytes.NewReader(form), kind), &full{40}); bad == nil || statusOf(bad.err) != 507 {
		t.Errorf("%+v", bad)
	}
}

func formOf(purpose, text string) (form []byte, boundary string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", purpose)
	part, _ := w.CreateFormFile("file", "f")
	_, _ = part.Write([]byte(text))
	_ = w.Close()
	return b.Bytes(), w.Boundary()
}

// Whatever a body is, it is refused, or each of its requests is one line with an id of its own.
func FuzzInline(f *testing.F) {
	for _, s := range []string{`{"requests":[{"custom_id":"a","params":{"x":[1,"\u2028"]}},{"params":{},"custom_id":"b"}],"more":1}`, `{"requests":[]}`, `{"requests":[{"custom_id":"a","params":{}}`,
		`{"requests":[{"custom_id":"a","params":{}}],"requests":[{"custom_id":"b","params":{}}]}`, `[]`, `{`, `{"requests":{}}`, "\x00", `{"requests":[{"custom_id":"a","params":{}}]} {}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var out bytes.Buffer
		if err := inlineRequests(strings.NewReader(body), &out); err != nil {
			if _, bad := errors.AsType[badRequest](err); !bad {
				t.Fatalf("%v is not the client's mistake", err)
			}
			return
		}
		seen := map[string]bool{}
		for line := range bytes.Lines(out.Bytes()) {
			var l struct {
				ID     string          `json:"custom_id"`
				Params json.RawMessage `json:"params"`
			}
			if err := json.Unmarshal(line, &l); err != nil || seen[l.ID] || l.ID == "" || len(l.Params) == 0 || l.Params[0] != '{' {
				t.Fatalf("%q: %v", line, err)
			}
			seen[l.ID] = true
		}
		if len(seen) == 0 {
			t.Fatal("no request, and no error")
		}
	})
}

// Whatever a form is, its file is what was written, or the form is refused.
func FuzzForm(f *testing.F) {
	form, boundary := formOf("batch", "some text\n")
	f.Add(string(form), boundary)
	f.Add("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../x\"\r\n\r\ntext\r\n--b--\r\n", "b")
	f.Add("--b\r\nContent-Disposition: form-data; name=\"expires_after[seconds]\"\r\n\r\n-1\r\n--b--\r\n", "b")
	f.Fuzz(func(t *testing.T, form, boundary string) {
		var out bytes.Buffer
		got, bad := readForm(multipart.NewReader(strings.NewReader(form), boundary), &out)
		if bad == nil && !got.file && out.Len() > 0 || bad == nil && out.Len() > len(form) || bad != nil && bad.err == nil {
			t.Fatalf("%+v, %+v: %q", got, bad, out.String())
		}
	})
}
