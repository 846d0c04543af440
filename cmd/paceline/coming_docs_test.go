package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/pages"
	"github.com/paceline-go/paceline/ratetest/llm"
)

const comingFrom = "coming-from.md"

// TestComingFromRuns runs the commands of blocks of sh, in order, each block in a folder of its own that has the files it speaks of.
func TestComingFromRuns(t *testing.T) {
	n := 0
	text, err := os.ReadFile("../../docs/" + comingFrom)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range pages.Read(comingFrom, string(text)).Blocks {
		if b.Language != "sh" || b.Word != "" {
			continue
		}
		n++
		t.Run(fmt.Sprintf("line %d", b.Line), func(t *testing.T) {
			served := 0
			things := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
			defer things.Close()
			model, err := llm.New(llm.Config{Provider: llm.OpenAI})
			if err != nil {
				t.Fatal(err)
			}
			models := httptest.NewServer(model)
			defer models.Close()
			t.Setenv("OPENAI_API_KEY", "sk-test")
			t.Chdir(t.TempDir())
			body := `{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"Why?"}]}`
			prompts := strings.Contains(b.Text, "OPENAI")
			for name, line := range map[string]string{
				"requests.jsonl": fmt.Sprintf(`{"id":"1","url":%q}`, things.URL),
				"prompts.jsonl":  `{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":` + body + `}`,
			} {
				if prompts && name == "requests.jsonl" {
					line = body
				}
				if err := os.WriteFile(name, []byte(line+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for command := range strings.Lines(b.Text) {
				args := strings.Fields(command)
				if args[0] == "jq" {
					filter(t, command)
					continue
				}
				if args[0] != "paceline" {
					t.Fatalf("%q is not a command that this test knows", command)
				}
				args = args[1:]
				if prompts {
					args = append(args, "--base-url", models.URL)
				}
				var out, errs bytes.Buffer
				if code := execute(t.Context(), args, strings.NewReader(""), &out, &errs); code != cli.ExitOK {
					t.Fatalf("%v: exit %d: %s", args, code, errs.String())
				}
				if slices.Contains(args, "--dry-run") {
					continue
				}
				results, err := os.ReadFile(args[slices.Index(args, "--out")+1])
				if err != nil || strings.Count(string(results), "\n") != 1 || strings.Contains(string(results), `"error":{`) {
					t.Errorf("%v: %v, want one result: %s", args, err, results)
				}
				served++
			}
			if served == 0 {
				t.Error("nothing was sent")
			}
		})
	}
	if n < 5 {
		t.Errorf("%d blocks of sh, want 5 at least", n)
	}
}

var jq = regexp.MustCompile(`^jq -c '(.*)' (\S+) > (\S+)\n$`)

// filter does what a line with jq does, for a file of one line.
func filter(t *testing.T, command string) {
	t.Helper()
	m := jq.FindStringSubmatch(command)
	if m == nil {
		t.Fatalf("%q is not as this test knows jq", command)
	}
	query, err := gojq.Parse(m[1])
	if err != nil {
		t.Fatal(err)
	}
	code, err := gojq.Compile(query, gojq.WithFunction("input_line_number", 0, 0, func(any, []any) any { return 1 }))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(m[2])
	if err != nil {
		t.Fatal(err)
	}
	var in any
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	got, _ := code.Run(in).Next()
	line, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m[3], append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
