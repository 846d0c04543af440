package transport_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

const inJSON = "application/json"

var inASecond = backoff.Policy{Base: time.Second, Jitter: -1}

// refusing answers the first n requests with a body, and all others well.
func refusing(n int, kind, body string) *base {
	return newBase(0, func(i int, _ *http.Request) *http.Response {
		if i <= n {
			return reply(200, body, "Content-Type", kind)
		}
		return reply(200, `{"ok":true}`, "Content-Type", inJSON)
	})
}

// A refusal in an answer 200 is one, whoever the server is: the request goes again when the pause
// is over, and so do those after it.
func TestRefusalWithin200(t *testing.T) {
	const words = `{"error":{"message":"Rate limit reached, please try again in 3s","type":"rate_limit_error","code":"rate_limit_exceeded"}}`
	for _, c := range []struct {
		name, provider, kind, body string
		length                     bool // the answer states its length
		again                      time.Duration
	}{
		{"OpenAI's words", "openai", inJSON, words, true, 3 * time.Second},
		{"of unknown length", "openai", inJSON, words, false, 3 * time.Second},
		{"a stream", "openai", "text/event-stream", "data: " + words + "\n\ndata: [DONE]\n\n", false, 3 * time.Second},
		{"a stream, after a comment", "openai", "text/event-stream", ": wait\n\ndata: " + words + "\n\n", false, 3 * time.Second},
		{"a number", "", inJSON, `{"code":429,"msg":"Too many requests","retry_after":5}`, true, 5 * time.Second},
		{"JSON-RPC, nobody known", "", inJSON, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit exceeded","data":{}}}`, true, time.Second},
		{"in no window's words", "github", inJSON, `{"success":false,"message":"You are being rate limited"}`, true, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(i int, _ *http.Request) *http.Response {
					r := reply(200, `{"ok":true}`, "Content-Type", inJSON)
					if i == 1 {
						r = reply(200, c.body, "Content-Type", c.kind)
					}
					if !c.length {
						r.ContentLength = -1
					}
					return r
				})
				config := transport.Config{Base: b, Limiter: rolling(t, 100, time.Second, 0), Backoff: inASecond}
				if c.provider != "" {
					config.Provider, _ = provider.Lookup(c.provider)
				}
				tr := mustNew(t, config)
				var all sync.WaitGroup
				for i := range 2 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						if _, body, err := do(t, tr, request(t, "POST", "http://a.test/v1/chat/completions", prompt)); err != nil || body != `{"ok":true}` {
							t.Errorf("%q, %v", body, err)
						}
					})
				}
				all.Wait()
				sent := b.at()
				if len(sent) != 3 || sent[1] < c.again-time.Millisecond || sent[2] < c.again-time.Millisecond || sent[2] > c.again*3/2 {
					t.Errorf("sent at %v, want again after %v", sent, c.again)
				}
				if s := tr.Stats(); s.Refused != 1 || s.Pauses != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

const (
	twoParts  = `{"responses":[{"id":"1","status":201},{"id":"2","status":429,"headers":{"Retry-After":"7"}}]}`
	noPart    = `{"responses":[{"id":"1","status":429,"headers":{"Retry-After":"7"}},{"id":"2","status":429,"headers":{"Retry-After":"3"}}]}`
	mixed     = `{"requests":[{"id":"1","method":"POST","url":"/a"},{"id":"2","method":"GET","url":"/b"}]}`
	reading   = `{"requests":[{"id":"1","method":"GET","url":"/a"},{"id":"2","method":"GET","url":"/b"}]}`
	mutation  = `{"query":"mutation { a: create { id } b: create { id } }"}`
	query     = `{"query":"query { a { id } b { id } }"}`
	halfGraph = `{"data":{"a":{"id":1},"b":null},"errors":[{"type":"RATE_LIMITED","path":["b"]}]}`
)

// What was served in part is not sent again, unless all of it may be. Its pause is kept by others.
func TestPartly(t *testing.T) {
	for _, c := range []struct {
		name, provider, body, answer string
		fields                       []string
		sent                         []float64 // the last is another request's
		partly                       bool
	}{
		{"Microsoft Graph", "microsoft-graph", mixed, twoParts, nil, []float64{0, 7}, true},
		{"Microsoft Graph, nobody known", "", mixed, twoParts, nil, []float64{0, 7}, true},
		{"all parts are reads", "microsoft-graph", reading, twoParts, nil, []float64{0, 7, 7}, false},
		{"no part was served", "microsoft-graph", mixed, noPart, nil, []float64{0, 7, 7}, false},
		{"a mutation", "github", mutation, halfGraph, nil, []float64{0, 1}, true},
		{"a mutation, nobody known", "", mutation, halfGraph, nil, []float64{0, 1}, true},
		{"a query", "", query, halfGraph, nil, []float64{0, 1, 1}, false},
		{"a mutation with a key", "", mutation, halfGraph, []string{"Idempotency-Key", "k"}, []float64{0, 1, 1}, false},
		{"bulk", "", `{"index":{}}` + "\n{}\n", `{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}}]}`, nil, []float64{0, 1}, true},
		{"DynamoDB writes", "aws", `{"RequestItems":{}}`, `{"UnprocessedItems":{"T":[{}]}}`, []string{"X-Amz-Target", "DynamoDB_20120810.BatchWriteItem"}, []float64{0, 1}, true},
		{"DynamoDB reads", "aws", `{"RequestItems":{}}`, `{"Responses":{"T":[{}]},"UnprocessedKeys":{"T":{"Keys":[{}]}}}`, []string{"X-Amz-Target", "DynamoDB_20120810.BatchGetItem"}, []float64{0, 1, 1}, false},
		{"a list of calls", "", `[{"jsonrpc":"2.0","method":"eth_sendRawTransaction"}]`, `[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"x"}}]`, nil, []float64{0, 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := refusing(1, inJSON, c.answer)
				var ended []transport.Attempt
				config := transport.Config{
					Base: b, Limiter: rolling(t, 100, time.Second, 0), Backoff: inASecond,
					Ended: func(a transport.Attempt) { ended = append(ended, a) },
				}
				if c.provider != "" {
					config.Provider, _ = provider.Lookup(c.provider)
				}
				tr := mustNew(t, config)
				_, body, err := do(t, tr, request(t, "POST", "http://a.test/x", c.body, c.fields...))
				if err != nil || (body == c.answer) != c.partly {
					t.Errorf("%q, %v", body, err)
				}
				do(t, tr, request(t, "POST", "http://a.test/x", c.body, c.fields...))
				var rounded []time.Duration
				for _, at := range b.at() {
					rounded = append(rounded, at.Round(100*time.Millisecond))
				}
				if want := seconds(c.sent...); !slices.Equal(rounded, want) {
					t.Errorf("sent at %v, want %v", rounded, want)
				}
				first := ended[0]
				if served := c.answer != noPart; first.Said.Partly != served || (tr.Stats().Refused == 0) != served || c.partly == (first.Why == "") {
					t.Errorf("%+v; %+v", first, tr.Stats())
				}
			})
		})
	}
}

// What was served in part three times is handed on as it came.
func TestPartlyToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(100, inJSON, twoParts)
		tr := mustNew(t, transport.Config{Base: b, Backoff: inASecond})
		if status, body, err := do(t, tr, request(t, "POST", "http://a.test/x", reading)); status != 200 || body != twoParts || err != nil || len(b.at()) != 3 {
			t.Errorf("%d, %q, %v, sent at %v", status, body, err, b.at())
		}
	})
}

// gated is a body whose pieces come one by one.
type gated struct {
	pieces []string
	every  time.Duration
	read   int
}

func (g *gated) Read(p []byte) (int, error) {
	if len(g.pieces) == 0 {
		return 0, io.EOF
	}
	if g.read > 0 {
		time.Sleep(g.every)
	}
	g.read++
	n := copy(p, g.pieces[0])
	if g.pieces[0] = g.pieces[0][n:]; g.pieces[0] == "" {
		g.pieces = g.pieces[1:]
	}
	return n, nil
}

func (*gated) Close() error { return nil }

// No answer that comes in pieces is held up for what may be a refusal: its header is there with its
// first piece, and each piece when it comes.
func TestGlanceHoldsUpNothing(t *testing.T) {
	for kind, pieces := range map[string][]string{
		inJSON:              {`{"choices":`, `["rate limit exceeded"`, `,429]}`},
		"text/event-stream": {": the limit\n\n", "data: {\"error\":0}\n\n", "data: {\"error\":{\"code\":429}}\n\n"},
		"text/plain":        {"429 Too", " Many", " Requests"},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				r := reply(200, "", "Content-Type", kind)
				r.Body, r.ContentLength = &gated{pieces: slices.Clone(pieces), every: time.Second}, -1
				return r, nil
			})})
			began := time.Now()
			resp, err := tr.RoundTrip(request(t, "POST", "http://a.test/v1/chat/completions", prompt))
			if err != nil || time.Since(began) != 0 {
				t.Fatalf("%s: %v, after %v", kind, err, time.Since(began))
			}
			var got strings.Builder
			for i := range pieces {
				p := make([]byte, 100)
				n, err := resp.Body.Read(p)
				got.Write(p[:n])
				if err != nil || time.Since(began) != time.Duration(i)*time.Second {
					t.Errorf("%s: piece %d came after %v, %v", kind, i, time.Since(began), err)
				}
			}
			if resp.Body.Close(); got.String() != strings.Join(pieces, "") {
				t.Errorf("%s: read %q", kind, got.String())
			}
		})
	}
}
