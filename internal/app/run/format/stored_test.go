package format

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
)

// stored reads a text in a form, and returns each request as a backlog keeps it.
func stored(t *testing.T, f Format, s *Secrets, text string, c Storing) (lines []string, err error) {
	t.Helper()
	for r := NewReader(f, "in", strings.NewReader(text), InputLimits{}); ; {
		q, rerr := r.Next()
		if rerr != nil {
			return lines, err
		}
		line, serr := s.Stored(q, c)
		if serr != nil {
			err = serr
			continue
		}
		back, berr := NewReader(Plain{}, "backlog", strings.NewReader(string(line)), InputLimits{}).Next()
		if berr != nil || back.ID != q.ID || back.Method != q.Method || back.Cost[limit.Requests] != q.Cost[limit.Requests] || string(back.Body) != string(q.Body) {
			t.Errorf("%s reads back as %+v (%v), expected %+v", line, back, berr, q)
		}
		lines = append(lines, string(line))
	}
}

func TestStoredFormsAreLinesOfPlain(t *testing.T) {
	header, err := ParseHeaders([]string{"X-Row: {row.b}", "Authorization: Bearer {key}", "Cookie: abcdefgh12345", "X-All: 1"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := ParseQuery([]string{"q=2", "api_key=abcdefgh12345", "r={row.a}"})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := NewLLM(LLMConfig{Provider: Anthropic, BaseURL: "http://h/v1", MaxTokens: 9})
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewItems(ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "http://h/{row.a}",
		Body: `{"b": "{row.b}"}`, HasBody: true, ID: "{row.a}", Header: header, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := NewItems(ItemsConfig{Read: input.Config{Form: input.Curl}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 7, 3, 14, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		f      Format
		text   string
		how    Storing
		expect string
	}{
		"plain": {Plain{}, `{"id":"a","url":"http://h/","cost":3,"priority":2}`, Storing{Read: at},
			`{"id":"a","url":"http://h/","cost":3,"priority":2}`},
		"no id": {Plain{}, `{"url":"http://h/"}`, Storing{Read: at}, `{"id":"line-1-26d4a0c1c4a7","url":"http://h/"}`},
		"a duration begins": {Plain{}, `{"id":"a","url":"http://h/","deadline":"1m"}`, Storing{Read: at},
			`{"created":"2026-07-03T14:00:00Z","id":"a","url":"http://h/","deadline":"1m"}`},
		"--ttl": {Plain{}, `{"id":"a","url":"http://h/"}`, Storing{Read: at, TTL: time.Hour},
			`{"created":"2026-07-03T14:00:00Z","deadline":"1h0m0s","id":"a","url":"http://h/"}`},
		"an instant stays": {Plain{}, `{"id":"a","url":"http://h/","deadline":"2026-07-03T15:00:00Z"}`,
			Storing{Read: at, TTL: time.Hour}, `{"id":"a","url":"http://h/","deadline":"2026-07-03T15:00:00Z"}`},
		"table": {table, "a,b\n7,x\n", Storing{Read: at},
			`{"id":"7","method":"POST","url":"http://h/7?q=2&r=7","headers":{"Content-Type":"application/json","X-All":"1","X-Row":"x"},` +
				`"body":"{\"b\": \"x\"}"}`},
		"batch": {batch, `{"custom_id":"m","params":{"model":"claude-haiku-4-5","max_tokens":1,"messages":[]}}`, Storing{Read: at},
			`{"id":"m","method":"POST","url":"http://h/v1/messages?q=2","headers":{"Anthropic-Version":"2023-06-01",` +
				`"Content-Type":"application/json","X-All":"1"},"body":"{\"model\":\"claude-haiku-4-5\",\"max_tokens\":9,\"messages\":[]}"}`},
		"curl": {commands, `curl -X PUT http://h/a -d x=1`, Storing{Read: at}, ""},
		"secrets on purpose": {commands, `curl http://h/a -H 'Authorization: Bearer abcdefgh12345'`, Storing{Read: at, Secrets: true},
			""},
	} {
		header, query := header, query
		if c.f == batch { // which has no rows
			header, query = WithoutRows(header), WithoutRows(query)
		}
		s := NewSecrets([]secret.Key{{Name: "K", Value: "s3cret-Of-9a7Kq"}}, header, query, c.f)
		lines, err := stored(t, c.f, s, c.text, c.how)
		if err != nil || len(lines) != 1 {
			t.Errorf("%s: %q, %v; expected a line", name, lines, err)
			continue
		}
		if name == "no id" {
			c.expect = lines[0]
		}
		if c.expect != "" && lines[0] != c.expect {
			t.Errorf("%s:\n%s, expected\n%s", name, lines[0], c.expect)
		}
	}
}

// No secret gets into a backlog by accident.
func TestStoredSecretsAreRefused(t *testing.T) {
	mixed, err := ParseHeaders([]string{"X-Mixed: {row.a}-{key}"})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := NewItems(ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "http://h/{row.a}", Header: mixed})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := NewItems(ItemsConfig{Read: input.Config{Form: input.Curl}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f              Format
		header         []Template
		text, expected string
	}{
		{Plain{}, nil, `{"url":"http://h/","headers":{"Authorization":"Bearer abcdefgh12345"}}`, "header Authorization"},
		{Plain{}, nil, `{"url":"http://ann:abcdefgh12345@h/"}`, "url"},
		{Plain{}, nil, `{"url":"http://h/?api_key=abcdefgh12345"}`, "url"},
		{Plain{}, nil, `{"url":"http://h/","body":{"note":"s3cret-Of-9a7Kq"}}`, "the value of a key"},
		{commands, nil, `curl http://h/a -H 'Cookie: session=abcdefgh12345'`, "header Cookie"},
		{rows, mixed, "a\n7\n", "{row.a}"},
	} {
		s := NewSecrets([]secret.Key{{Name: "K", Value: "s3cret-Of-9a7Kq"}}, c.header, nil, c.f)
		lines, err := stored(t, c.f, s, c.text, Storing{})
		if err == nil || !strings.Contains(err.Error(), c.expected) || len(lines) > 0 {
			t.Errorf("%s: stored %q, %v; expected a refusal that names %q", c.text, lines, err, c.expected)
		}
	}
}

// A stored request is the same request: another process sends what this one would have sent.
func FuzzStored(f *testing.F) {
	for _, line := range []string{
		`{"id":"a","url":"http://h/","cost":3,"priority":2}`,
		`{"url":"http://h/é?a=b","headers":{"X":["1","2"]},"body":{"a":[1,"\u2028"]},"deadline":"1m"}`,
		`{"id":null,"created":null,"deadline":null,"url":"https://h","body":"text","method":"PUT"}`,
		`{ "url":"http://h/","deadline":"2026-07-03T15:00:00Z"}`,
	} {
		f.Add(line, int64(0))
		f.Add(line, int64(time.Hour))
	}
	s := NewSecrets(nil, nil, nil, Plain{})
	f.Fuzz(func(t *testing.T, line string, ttl int64) {
		q, err := NewReader(Plain{}, "in", strings.NewReader(line), InputLimits{}).Next()
		if err != nil {
			return
		}
		how := Storing{Read: time.Date(2026, 7, 3, 14, 0, 0, 0, time.UTC), TTL: time.Duration(max(ttl, 0)), Secrets: true}
		stored, err := s.Stored(q, how)
		if err != nil {
			t.Fatalf("%q is read, and not stored: %v", line, err)
		}
		back, err := NewReader(Plain{}, "backlog", strings.NewReader(string(stored)), InputLimits{}).Next()
		if err != nil {
			t.Fatalf("%q is stored as %q: %v", line, stored, err)
		}
		lasts := q.TTL
		if lasts == 0 && q.At.IsZero() {
			lasts = how.TTL
		}
		if back.ID != q.ID || back.Digest != q.Digest || back.Cost != q.Cost || back.Priority != q.Priority || !back.At.Equal(q.At) ||
			back.TTL != lasts || lasts > 0 && back.Created.IsZero() || !q.Created.IsZero() && !back.Created.Equal(q.Created) {
			t.Errorf("%q is stored as %q: %+v, expected %+v", line, stored, back, q)
		}
	})
}
