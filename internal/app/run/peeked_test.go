package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// Open reads the lines that another run wrote between the plan and the start. It cuts off an
// incomplete line.
func TestPeekedAndChanged(t *testing.T) {
	const line = `{"id":"batch_req_1","custom_id":"p%d","response":{"status_code":200,"request_id":"","body":{}},"error":null}` + "\n"
	for _, c := range []struct {
		before, after string // in the results: when peeked at, and what comes then
		want          int    // requests that are left
	}{
		{"", "", 3}, {"0", "", 2}, {"01", "2", 0}, {"torn0", "", 2}, {"torn", "", 3}, {"", "01", 1},
	} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		text := func(ids string) string {
			torn := strings.TrimPrefix(ids, "torn")
			var b strings.Builder
			for _, id := range torn {
				fmt.Fprintf(&b, line, id-'0')
			}
			if torn != ids {
				b.WriteString(line[:30])
			}
			return b.String()
		}
		if err := os.WriteFile(out, []byte(text(c.before)), 0o644); err != nil {
			t.Fatal(err)
		}
		batch, err := format.NewLLM(format.LLMConfig{BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{Out: out, Format: batch})
		if err != nil {
			t.Fatal(err)
		}
		input := prompts(format.OpenAI, 3, 0)
		if err := errors.Join(r.Peek(), r.Check("in", strings.NewReader(input))); err != nil {
			t.Fatal(err)
		}
		if c.after != "" {
			if err := os.WriteFile(out, []byte(text(c.before)+text(c.after)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		r.Drain()
		_ = r.Send(context.Background(), "in", strings.NewReader(input))
		totals, err := r.Close()
		text2, _ := os.ReadFile(out)
		if err != nil || totals.Left != c.want || totals.Lost != 0 || strings.Count(string(text2), "\n")*(len(line)-1) != len(text2) {
			t.Errorf("%+v: %v, %+v\n%s", c, err, totals, text2)
		}
	}
}
