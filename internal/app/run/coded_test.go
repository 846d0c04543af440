package run

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/testkit/coded"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// spoken is the coding of all answers; nil: none.
var spoken *coded.Coding

// Whatever the answers are coded in, their verdicts and results are the same, and secrets are hidden.
func TestInEachCoding(t *testing.T) {
	race.Without(t) // each of these tests has run with it, in no coding
	need.NotShort(t, "package transport has this test, and an answer is decoded in one place")
	defer func() { spoken = nil }()
	type test struct {
		name string
		run  func(*testing.T)
	}
	all := []test{
		{"secrets", TestSecretsStaySecret}, {"users", TestUserStaysAtItsHost}, {"success", TestSuccess}, {"budget", TestBudgetOfARun}, {"batch", TestLLMGolden},
		{"bans of a model", TestLLMEachModelHearsOfBans}, {"denied", TestDeniedAgain}, {"banned", TestBannedKeys}, {"cursors", TestStoryOfCursors}, {"bodies", TestStoryOfBodies},
	}
	for i := range coded.All {
		spoken = &coded.All[i]
		some := all
		if i == 0 { // these take longer, and what they read is decoded in the same place
			some = append(some, test{"run", TestRun}, test{"rows", TestStoryOfRows}, test{"unpaid", TestLLMUnpaid}, test{"a budget", TestStoryOfABudget})
		}
		if i > 0 && i < len(coded.All)-1 { // the last is of two codings
			some = some[:need.Fewer(2, len(some))]
		}
		t.Run(spoken.Name, func(t *testing.T) {
			for _, test := range some {
				t.Run(test.name, test.run)
			}
		})
	}
}

// echoCoded repeats the key of a request, in the coding that the request accepts.
func echoCoded(w http.ResponseWriter, q *http.Request) {
	text := fmt.Appendf(nil, `{"you sent":%q,"more":%q}`, q.Header.Get("Key"), strings.Repeat("x", 500))
	field := q.Header.Get("Accept-Encoding")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", field)
	for _, c := range coded.All {
		if c.Field == field {
			text = c.Encode(text)
			break
		}
	}
	switch q.URL.Path {
	case "/part":
		w.WriteHeader(http.StatusPartialContent)
		text = text[10:]
	case "/damaged":
		text[len(text)/2] ^= 0xff
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = w.Write(text)
}

// A line may ask for a coding itself. Its result has the text, as if it had not, and no key.
func TestOwnAcceptEncoding(t *testing.T) {
	const value = "s3cr/et+v4lueX9"
	srv := httptest.NewServer(http.HandlerFunc(echoCoded))
	defer srv.Close()
	line := func(id, path, field string) string {
		return fmt.Sprintf(`{"id":%q,"url":%q,"headers":{"Accept-Encoding":%q}}`, id, srv.URL+path, field)
	}
	files := filepath.Join(t.TempDir(), "answers")
	for _, dir := range []string{"", files} {
		b := newBench(t)
		if b.config.OutDir = dir; dir != "" {
			b.config.Out = output.IndexOf(dir)
		}
		b.config.Keys = []format.Key{{Name: "A", Secret: value}}
		b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
		b.config.Attempts, b.config.Concurrency, b.config.MaxResponse = 1, 1, 300 // so that files are written as they arrive
		if dir == "" {
			b.config.MaxResponse = 1000
		}
		lines := []string{line("gzip", "/", "gzip"), line("deflate", "/", "deflate"), line("br", "/", "br"), line("zstd", "/", "zstd"), line("two", "/", "gzip, br"), line("text", "/", "utf-8")}
		got := b.run(lines...)
		if got.Done != len(lines) || got.err != nil {
			t.Fatalf("%+v %v\n%s", got.Totals, got.err, got.notices)
		}
		if dir != "" {
			for _, id := range []string{"gzip", "deflate", "br", "zstd", "two"} {
				if text, err := os.ReadFile(filepath.Join(dir, id+".json")); err != nil || string(text) != fmt.Sprintf(`{"you sent":"[A]","more":%q}`, strings.Repeat("x", 500)) {
					t.Errorf("%s: the file has %.100q, %v", id, text, err)
				}
			}
			continue
		}
		for id, r := range got.results {
			if r.Body == nil || !strings.HasPrefix(*r.Body, `{"you sent":"[A]","more":"xxx`) || r.Hidden != 1 || r.Headers["content-encoding"] != "" && id != "text" {
				t.Errorf("%s: %+v", id, r)
			}
		}
	}
}

// A coding that is not read stays as it came, with its name beside it, and that is said once. Nor is
// a part of a body read, since it may begin anywhere. A body that is damaged is no answer.
func TestCodingThatIsNotRead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/other" {
			echoCoded(w, q)
			return
		}
		w.Header().Set("Content-Encoding", "compress")
		_, _ = w.Write([]byte("\x1f\x9d\x90\xff\x00"))
	}))
	defer srv.Close()
	b := newBench(t)
	b.config.Attempts, b.config.Concurrency = 1, 1
	line := func(id, path string) string {
		return fmt.Sprintf(`{"id":%q,"url":%q,"headers":{"Accept-Encoding":"gzip"}}`, id, srv.URL+path)
	}
	got := b.run(line("other", "/other"), line("again", "/other"), line("part", "/part"), line("damaged", "/damaged"))
	for _, id := range []string{"other", "again"} {
		if r := got.results[id]; string(r.BodyBase64) != "\x1f\x9d\x90\xff\x00" || r.Headers["content-encoding"] != "compress" {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if r := got.results["part"]; len(r.BodyBase64) == 0 || r.Headers["content-encoding"] != "gzip" {
		t.Errorf("part: %+v", r)
	}
	if r := got.dead["damaged"]; !strings.Contains(r.Error, "content coding is damaged") {
		t.Errorf("damaged: %+v", r)
	}
	if n := strings.Count(got.notices, "Content-Encoding: "); n != 1 || !strings.Contains(got.notices, `"compress"`) {
		t.Errorf("said %d times:\n%s", n, got.notices)
	}
}
