package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// prompts returns n requests of a batch, of different sizes.
func prompts(p format.Provider, n int, from int) string {
	rng := rand.New(rand.NewPCG(7, uint64(from)))
	var b strings.Builder
	for i := from; i < from+n; i++ {
		text := strings.Repeat("rain falls on ", 1+rng.IntN(60))
		most := 50 + rng.IntN(400)
		if p == format.Anthropic {
			fmt.Fprintf(&b, `{"custom_id":"p%d","params":{"model":"claude-sonnet-4","max_tokens":%d,"messages":[{"role":"user","content":%q}]}}`+"\n", i, most, text)
			continue
		}
		switch i % 5 {
		case 3:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/responses","body":{"model":"gpt-4o","max_output_tokens":%d,"input":%q}}`+"\n", i, most, text)
		case 4:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/embeddings","body":{"model":"gpt-4o","input":%q}}`+"\n", i, text)
		default:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"system","content":"Be terse."},{"role":"user","name":"ann","content":%q}]}}`+"\n", i, most, text)
		}
	}
	return b.String()
}

func embeddings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/embeddings","body":{"model":"text-embedding-3-small","input":%q}}`+"\n", i, strings.Repeat("international cooperation ", 20+i%60))
	}
	return b.String()
}

func minutely(n int64, unit limit.Unit, bucket bool) format.Rate {
	return format.Rate{N: n, Per: time.Minute, Unit: unit, Bucket: bucket, Text: fmt.Sprintf("%d/m %v", n, unit)}
}

// virtually runs a batch against a server in virtual time: call it in a bubble.
type virtually struct {
	t      *testing.T
	server llm.Config
	config Config
	llm    format.LLMConfig
	tamper func(*Run)
	lines  bool // its input is lines of its own, and no batch

	plan   Plan
	opened Plan // after Open
	totals tally.Totals
	report llm.Report
	err    error
	took   time.Duration
}

func (v *virtually) run(input string) {
	v.t.Helper()
	l, err := llm.New(v.server)
	if err != nil {
		v.t.Fatal(err)
	}
	network := fakeconn.New()
	srv := &http.Server{Handler: l}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(network) }()
	v.send(network, input)
	_ = srv.Close()
	<-served
	_ = l.Close()
	v.report = l.Report()
}

func (v *virtually) send(network *fakeconn.Network, input string) {
	t := v.t
	t.Helper()
	v.llm.BaseURL = "http://server/v1"
	v.llm.Limits = v.config.Limits
	batch, err := format.NewLLM(v.llm)
	if err != nil {
		t.Fatal(err)
	}
	c := v.config
	if !v.lines {
		c.Format = batch
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	header := []string{v.llm.Provider.KeyHeader()}
	if v.lines && v.llm.Provider == format.Anthropic {
		header = append(header, "anthropic-version: 2023-06-01")
	}
	if c.Header, err = format.ParseHeaders(header); err != nil {
		t.Fatal(err)
	}
	if c.Keys == nil {
		c.Keys = []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}
	}
	c.UserAgent = "test"
	c.clock, c.Dial = bubbleClock, network.Dial
	notice := c.Notice
	c.Notice = func(s string) {
		t.Log(s)
		if notice != nil {
			notice(s)
		}
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Peek(), r.Check("in", strings.NewReader(input))); err != nil {
		t.Fatal(err)
	}
	v.plan = r.Plan(time.Now())
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	v.opened = r.Plan(time.Now())
	if v.tamper != nil {
		v.tamper(r)
	}
	began := time.Now()
	v.err = r.Send(context.Background(), "in", strings.NewReader(input))
	v.took = time.Since(began)
	if v.totals, err = r.Close(); err != nil {
		t.Error(err)
	}
}

// ends returns how often each custom_id is in the results and in the errors.
func (v *virtually) ends() map[string]int {
	all := map[string]int{}
	for _, path := range []string{v.config.Out, strings.TrimSuffix(v.config.Out, ".jsonl") + ".errors.jsonl"} {
		text, err := os.ReadFile(path)
		if err != nil {
			v.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var r struct {
				ID string `json:"custom_id"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID == "" {
				v.t.Fatalf("%s: %v in %q", path, err, line)
			}
			all[r.ID]++
		}
	}
	return all
}

func (v *virtually) once(n int) {
	v.t.Helper()
	ends := v.ends()
	for i := range n {
		if id := fmt.Sprint("p", i); ends[id] != 1 {
			v.t.Errorf("%s has %d lines in the results and the errors", id, ends[id])
		}
	}
	if len(ends) != n || v.totals.Lost != 0 {
		v.t.Errorf("%d ids ended, want %d; %+v", len(ends), n, v.totals)
	}
}

// bubbleClock is the clock of a machine in a synctest bubble: the real one's is not that of the
// bubble.
func bubbleClock() (time.Time, boottime.Reading) {
	up := time.Since(time.Unix(0, 0))
	return time.Now(), boottime.Reading{Boot: "b", Up: up, Awake: up}
}
