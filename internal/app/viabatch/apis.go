package viabatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// api is the batch API of a provider.
type api interface {
	// bounds are those of a batch.
	bounds() (lines int, bytes int64)
	// head, line, between and foot make the body that has the requests.
	head(name string) []byte
	line(id string, q *format.Request) []byte
	// wire is an id as the API takes it. The same id is always the same there.
	wire(id string) string
	between() []byte
	foot(name string) []byte
	// create makes a batch. It fails with errUnclear if that may have been done.
	create(ctx context.Context, c *chunk) (id string, err error)
	// find returns the id of a batch that may have been made; empty: it was not.
	find(ctx context.Context, e *entry, l *ledger) (id string, err error)
	// look returns the state of a batch.
	look(ctx context.Context, id string) (state, error)
}

// state is the state of a batch at the provider.
type state struct {
	ended   bool
	done    int      // requests, as the provider counts
	results []string // paths of the files with results
	why     string   // why it failed as a whole
	isFull  bool     // it failed since too much is enqueued
}

func apiOf(r *remote, p format.Provider) api {
	if p == format.Anthropic {
		return anthropic{r}
	}
	return openAI{r}
}

// Before is the address of the API of which u is an endpoint, before /v1. nil: u has no version.
func Before(u *url.URL) *url.URL {
	before, endpoint := split(u.Path)
	if !strings.HasPrefix(endpoint, version) {
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: before}
}

const version = "/v1/"

// split splits the path of a request into what is before the version, and the endpoint.
func split(path string) (before, endpoint string) {
	i := max(strings.LastIndex(path, version), 0)
	return path[:i], path[i:]
}

// Line is a request as a line of a batch file of the provider, without its line break.
func Line(of format.Provider, q *format.Request) []byte { return apiOf(nil, of).line(q.ID, q) }

// made is a batch as either API shows it, as far as it matters here.
type made struct {
	ID       string
	Status   string
	Metadata map[string]string
	Output   string `json:"output_file_id"`
	Errors   string `json:"error_file_id"`
	Mistakes struct {
		Data []struct {
			Code, Message string
			Line          int
		}
	} `json:"errors"`
	Processing string   `json:"processing_status"`
	Created    any      `json:"created_at"` // a number, or a text
	Counts     countsOf `json:"request_counts"`
}

// countsOf are the counts of Anthropic, and those of OpenAI.
type countsOf struct {
	Processing, Succeeded, Errored, Canceled, Expired int
	Completed, Failed                                 int
}

func (n countsOf) all() int { return n.Processing + n.done() }
func (n countsOf) done() int {
	return n.Succeeded + n.Errored + n.Canceled + n.Expired + n.Completed + n.Failed
}

// list reads the newest batches, page after page, until f returns true.
func (r *remote) list(ctx context.Context, path, after string, f func(m *made) bool) error {
	const pages, each = 10, "100"
	query := url.Values{"limit": {each}}
	for range pages {
		var page struct {
			Data []made
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		if err := r.get(ctx, path+"?"+query.Encode(), &page); err != nil {
			return err
		}
		for i := range page.Data {
			if f(&page.Data[i]) {
				return nil
			}
		}
		if !page.More || page.Last == "" {
			return nil
		}
		query.Set(after, page.Last)
	}
	return nil
}

// openAI speaks /v1/files and /v1/batches.
type openAI struct{ *remote }

func (openAI) bounds() (lines int, bytes int64) { return 50_000, 190 << 20 }

// tag is the metadata that names a batch.
const tag = "paceline"

func boundary(name string) string { return "paceline-" + name }

func (openAI) head(name string) []byte {
	return fmt.Appendf(nil, "--%[1]s\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--%[1]s\r\n"+
		"Content-Disposition: form-data; name=\"file\"; filename=\"%[2]s.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n",
		boundary(name), name)
}

func (openAI) line(id string, q *format.Request) []byte {
	_, endpoint := split(q.URL.Path)
	return fmt.Appendf(nil, `{"custom_id":%s,"method":"POST","url":%s,"body":%s}`, quoted(id), quoted(endpoint),
		q.Body)
}

func (openAI) wire(id string) string   { return id }
func (openAI) between() []byte         { return []byte("\n") }
func (openAI) foot(name string) []byte { return fmt.Appendf(nil, "\n\r\n--%s--\r\n", boundary(name)) }

func (a openAI) create(ctx context.Context, c *chunk) (id string, err error) {
	var f, b made
	// A file that is uploaded twice does no harm.
	if err := a.object(ctx, &call{http.MethodPost, "/v1/files", "multipart/form-data; boundary=" + boundary(c.Name), c.body,
		false}, &f); err != nil {
		return "", err
	}
	text := fmt.Appendf(nil, `{"input_file_id":%s,"endpoint":%s,"completion_window":"24h","metadata":{%q:%s}}`,
		quoted(f.ID), quoted(c.Path), tag, quoted(c.Name))
	err = a.object(ctx, &call{http.MethodPost, "/v1/batches", "application/json", func() (io.ReadCloser, int64) {
		return io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}, true}, &b)
	return b.ID, err
}

func (a openAI) find(ctx context.Context, e *entry, _ *ledger) (id string, err error) {
	err = a.list(ctx, "/v1/batches", "after", func(m *made) bool {
		if m.Metadata[tag] == e.Name {
			id = m.ID
		}
		return id != ""
	})
	return id, err
}

func (a openAI) look(ctx context.Context, id string) (s state, err error) {
	var m made
	if err := a.get(ctx, "/v1/batches/"+url.PathEscape(id), &m); err != nil {
		return s, err
	}
	switch s.done = m.Counts.done(); m.Status {
	case "failed":
		s.ended, s.why = true, "the provider does not say why"
		for i, e := range m.Mistakes.Data {
			if i == 0 {
				s.why = fmt.Sprintf("%s (line %d)", e.Message, e.Line)
			}
			s.isFull = s.isFull || e.Code == "token_limit_exceeded"
		}
	case "completed", "expired", "cancelled":
		s.ended = true
		for _, id := range []string{m.Output, m.Errors} {
			if id != "" {
				s.results = append(s.results, "/v1/files/"+url.PathEscape(id)+"/content")
			}
		}
	}
	return s, nil
}

// anthropic speaks /v1/messages/batches.
type anthropic struct{ *remote }

func (anthropic) bounds() (lines int, bytes int64) { return 100_000, 250 << 20 }

func (anthropic) head(string) []byte { return []byte(`{"requests":[`) }

func (anthropic) line(id string, q *format.Request) []byte {
	return fmt.Appendf(nil, `{"custom_id":%s,"params":%s}`, quoted(id), q.Body)
}

// ids are those that Anthropic takes. One other makes it refuse the whole batch.
var ids = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (anthropic) wire(id string) string {
	if ids.MatchString(id) {
		return id
	}
	return fmt.Sprintf("hash-%x", sha256.Sum256([]byte(id)))[:64]
}

func (anthropic) between() []byte    { return []byte(",") }
func (anthropic) foot(string) []byte { return []byte("]}") }

func (a anthropic) create(ctx context.Context, c *chunk) (id string, err error) {
	var b made
	err = a.object(ctx, &call{http.MethodPost, "/v1/messages/batches", "application/json", c.body, true}, &b)
	return b.ID, err
}

// find takes a batch of as many requests, made since then, that is no other one of ours. Merge looks
// at its ids.
func (a anthropic) find(ctx context.Context, e *entry, l *ledger) (id string, err error) {
	const skew = time.Minute // of two clocks
	err = a.list(ctx, "/v1/messages/batches", "after_id", func(m *made) bool {
		text, _ := m.Created.(string)
		at, err := time.Parse(time.RFC3339, text)
		if err == nil && at.Before(e.Began.Add(-skew)) {
			return true // all others are older
		}
		if err == nil && m.Counts.all() == len(e.Requests) && !l.knows(m.ID) {
			id = m.ID // the oldest of them
		}
		return false
	})
	return id, err
}

func (a anthropic) look(ctx context.Context, id string) (s state, err error) {
	var m made
	if err := a.get(ctx, "/v1/messages/batches/"+url.PathEscape(id), &m); err != nil {
		return s, err
	}
	s.done = m.Counts.done()
	if s.ended = m.Processing == "ended"; s.ended {
		s.results = []string{"/v1/messages/batches/" + url.PathEscape(id) + "/results"}
	}
	return s, nil
}
