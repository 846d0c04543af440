package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// keeping is a proxy that keeps batches, and can be killed and started again at one address.
type keeping struct {
	*process
	file string
}

// keeps starts a proxy before a fake that takes so much.
func keeps(t *testing.T, fake *process, limit string) *keeping {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	k := &keeping{file: filepath.Join(dir, "paceline.yaml")}
	text := fmt.Sprintf(`version: 1
listen: %s
admin: "off"
upstreams:
  - to: %s
    path: /llm
    limits: [%s]
    keys: [{name: main, secret: sk-upstream-0123456789}]
    header: {Authorization: "Bearer {key}", X-Api-Key: "{key}"}
    batches: {folder: %q}
`, address, fake.url, limit, filepath.Join(dir, "kept"))
	if err := os.WriteFile(k.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k.begin(t)
	return k
}

func (k *keeping) begin(t *testing.T) {
	t.Helper()
	k.process = start(t, "proxy", "--config", k.file, "--log", "off")
}

// killed ends the proxy as a crash does, once some of a batch are done by its own counts, and starts it again.
func (k *keeping) killed(t *testing.T, folder, served string, n int) {
	t.Helper()
	pattern := filepath.Join(filepath.Dir(k.file), "kept", "*", "batches", folder+"*", "run.jsonl")
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		files, _ := filepath.Glob(pattern)
		if len(files) == 1 {
			if text, err := os.ReadFile(files[0]); err == nil && strings.Count(string(text), served) >= n {
				break
			}
		}
		if time.Now().After(until) {
			t.Fatal("no batch comes so far")
		}
	}
	k.cmd.Process.Kill()
	k.said.Wait()
	_ = k.cmd.Wait() // it was killed
	k.begin(t)
}

// Official SDKs of Node make a batch of 700 lines, in the middle of which the proxy is killed, and cancel another one. Each id has one
// result, the fake refuses nothing, and people beside it get their answers in a second.
func TestNodeBatches(t *testing.T) {
	need.LongOnly(t, "a batch of 700 lines takes a minute, twice; TestGoBatches is the short form")
	node := need.Node(t, "../node")
	for _, c := range []struct{ sdk, folder, served, whole, cancelled string }{
		{"openai", "batch_", `"status_code":200`, "completed", "cancelled"}, {"anthropic", "msgbatch_", `"succeeded"`, "ended", "ended"},
	} {
		t.Run(c.sdk, func(t *testing.T) {
			const lines, people = 700, 30
			fake := serve(t, c.sdk, "--limit", "20/s", "--first", "constant:200ms", "--tokens-per-second", "0")
			k := keeps(t, fake, "20/s")
			env := bases(k.url+"/llm", k.url+"/llm")
			var beside []told
			var all sync.WaitGroup
			if c.sdk == "openai" {
				all.Go(func() {
					var err error
					if beside, err = said(3*time.Minute, nil, "../node", env, node, "batches.mjs", "people", fmt.Sprint(people)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				results, err := said(5*time.Minute, nil, "../node", env, node, "batches.mjs", c.sdk, fmt.Sprint(lines))
				if err != nil || len(results) != 3 {
					t.Errorf("%+v: %v", results, err)
					return
				}
				whole, cancelled := results[0], results[1]
				if whole.Error != nil || whole.Text != c.whole || whole.Size != lines || whole.Input != lines || whole.Output != lines/100 {
					t.Errorf("%+v %+v", whole, whole.Error)
				}
				if cancelled.Error != nil || cancelled.Text != c.cancelled || cancelled.Size != lines || cancelled.Input != lines {
					t.Errorf("%+v %+v", cancelled, cancelled.Error)
				}
			})
			k.killed(t, c.folder, c.served, lines/4)
			all.Wait()
			var took []int64
			for _, l := range beside {
				if l.Error != nil {
					t.Errorf("%+v", l.Error)
				}
				took = append(took, l.MS)
			}
			slices.Sort(took)
			if len(took) > 0 {
				t.Logf("people: median %d ms, p95 %d ms, most %d ms of %d", took[len(took)/2], took[len(took)*95/100], took[len(took)-1], len(took))
				if len(took) != 2*people || took[len(took)*95/100] > 1000 {
					t.Errorf("%v", took)
				}
			}
			k.stopped(t)
			if r := fake.ended(t); r.Verdicts["limited"] != 0 || r.Verdicts["accepted"] < lines-lines/100 {
				t.Errorf("%v", r.Verdicts)
			}
		})
	}
}

// The same with the SDKs of Go, as short as it can be: a batch of each, with a kill in its middle.
func TestGoBatches(t *testing.T) {
	t.Parallel()
	const lines = 60
	for _, c := range []struct {
		sdk, folder, served string
		run                 func(ctx context.Context, url string, n int) (ids []string, err error)
	}{{"openai", "batch_", `"status_code":200`, openAIBatch}, {"anthropic", "msgbatch_", `"succeeded"`, messageBatch}} {
		t.Run(c.sdk, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			fake := serve(t, c.sdk, "--limit", "40/s", "--first", "constant:50ms", "--tokens-per-second", "0")
			k := keeps(t, fake, "40/s")
			var all sync.WaitGroup
			all.Go(func() {
				ids, err := c.run(ctx, k.url+"/llm", lines)
				slices.Sort(ids)
				if err != nil || len(ids) != lines || len(slices.Compact(ids)) != lines {
					t.Errorf("%d results: %v", len(ids), err)
				}
			})
			k.killed(t, c.folder, c.served, 5)
			all.Wait()
			k.stopped(t)
			if r := fake.ended(t); r.Verdicts["limited"] != 0 {
				t.Errorf("%v", r.Verdicts)
			}
		})
	}
}

// again asks until there is what is wanted. While the proxy is away it is asked again.
func again(ctx context.Context, ask func() (ended bool, err error)) error {
	for {
		ended, err := ask()
		if ended && err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func openAIBatch(ctx context.Context, url string, n int) (ids []string, err error) {
	c := openai.NewClient(openaiopt.WithBaseURL(url+"/v1/"), openaiopt.WithAPIKey("sk-newcomer"))
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]}}`+"\n", i)
	}
	f, err := c.Files.New(ctx, openai.FileNewParams{File: openai.File(&text, "prompts.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
	if err != nil {
		return nil, err
	}
	b, err := c.Batches.New(ctx, openai.BatchNewParams{InputFileID: f.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h})
	if err != nil {
		return nil, err
	}
	if err := again(ctx, func() (bool, error) {
		now, err := c.Batches.Get(ctx, b.ID)
		if err == nil {
			b = now
		}
		return b.Status == openai.BatchStatusCompleted, err
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Status, err)
	}
	var resp *http.Response
	if resp, err = c.Files.Content(ctx, b.OutputFileID); err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	for {
		var line struct {
			ID string `json:"custom_id"`
		}
		if err := d.Decode(&line); err != nil {
			if err == io.EOF {
				return ids, nil
			}
			return ids, err
		}
		ids = append(ids, line.ID)
	}
}

func messageBatch(ctx context.Context, url string, n int) (ids []string, err error) {
	c := anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("sk-ant-newcomer"))
	var p anthropic.MessageBatchNewParams
	for i := range n {
		p.Requests = append(p.Requests, anthropic.MessageBatchNewParamsRequest{CustomID: fmt.Sprint("p", i), Params: anthropic.MessageBatchNewParamsRequestParams{
			Model: "claude-sonnet-5", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Why?"))},
		}})
	}
	b, err := c.Messages.Batches.New(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := again(ctx, func() (bool, error) {
		now, err := c.Messages.Batches.Get(ctx, b.ID, anthropic.MessageBatchGetParams{})
		if err == nil {
			b = now
		}
		return b.ProcessingStatus == anthropic.MessageBatchProcessingStatusEnded, err
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", b.ProcessingStatus, err)
	}
	s := c.Messages.Batches.ResultsStreaming(ctx, b.ID, anthropic.MessageBatchResultsParams{})
	for s.Next() {
		if r := s.Current(); r.Result.Type == "succeeded" {
			ids = append(ids, r.CustomID)
		}
	}
	return ids, s.Err()
}
