package llm_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// With random requests and every Counting, no verdict breaks the rule. The log gives the same
// report as the server.
func TestLLMJudge(t *testing.T) {
	for seed := range fewer(48) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			var log bytes.Buffer
			c := llm.Config{
				Provider: llm.Provider(seed % 2), Rolling: seed%3 > 0, RefusedCount: seed%3 > 1, Count: []string{"", "reserved", "corrected", "true"}[seed%4], Seed: seed,
				Limits:      llm.Limits{Requests: 1 + rng.Int64N(30), Input: rng.Int64N(900), Output: rng.Int64N(900), Tokens: rng.Int64N(2000), TokensPerDay: rng.Int64N(9000)},
				ModelLimits: map[string]llm.Limits{"n": {Requests: 2, Window: 3 * time.Second}},
				Law:         llm.Law{Spread: 0.5, OutputMedian: 30, OutputP99: 300, Cached: 0.3, Reasoning: 0.2},
				Before:      latency.Uniform(0, 300*time.Millisecond), First: latency.Uniform(0, time.Second), TokensPerSecond: 50,
				Faults: map[string]float64{"429": 0.05, "500": 0.05, "502": 0.05, "overloaded": 0.05, "ended": 0.05,
					"error-event": 0.05, "lying-headers": 0.05, "unpaid": 0.02},
				LogTo: &log,
			}
			path := []string{chat, messages}[seed%2]
			l := newServer(t, c)
			var all sync.WaitGroup
			for range 300 {
				body := prompt(1+rng.IntN(60), 1+rng.IntN(150))
				if rng.IntN(5) == 0 {
					body = strings.Replace(body, `"m"`, `"n"`, 1)
				}
				if rng.IntN(2) == 0 {
					body = strings.Replace(body, "{", `{"stream":true,`, 1)
				}
				r := llmRequest(path, strconv.Itoa(rng.IntN(2)), body)
				if rng.IntN(4) == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(3*time.Second))))
					defer cancel()
					r = r.WithContext(ctx)
				}
				all.Go(func() { l.ServeHTTP(httptest.NewRecorder(), r) })
				time.Sleep(time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond)))
			}
			all.Wait()
			l.Close()
			report := l.Report()
			if report.Wrong > 0 || report.Verdicts["accepted"] < 10 || report.Verdicts["limited"] < 5 {
				t.Errorf("seed %d: %+v", seed, report)
			}
			for _, a := range report.Accounts {
				for _, w := range a.Limits {
					// With one rolling window of true usage the limit cannot be exceeded. A bucket
					// lets through twice as much.
					sure := c.Rolling && !c.RefusedCount && c.Count == "true"
					if w.Counted > w.Limit || sure && w.Worst != w.Counted || w.Sent < w.Worst || (w.Name == "requests") && w.Worst > 2*w.Limit {
						t.Errorf("seed %d: %+v", seed, w)
					}
				}
			}
			text := log.String()
			again, err := llm.Judge(c, strings.NewReader(text))
			if again.Elapsed = report.Elapsed; err != nil || !reflect.DeepEqual(again, report) {
				t.Fatalf("seed %d: by the log %+v, %v\nwant %+v", seed, again, err, report)
			}
			// The judge finds a wrong verdict in both directions.
			for from, to := range map[string]string{`"verdict":"limited"`: `"verdict":"accepted"`, `"verdict":"accepted"`: `"verdict":"limited"`} {
				i := strings.Index(text, from)
				wrong, err := llm.Judge(c, strings.NewReader(text[:i]+to+text[i+len(from):]))
				if err != nil || wrong.Wrong == 0 {
					t.Errorf("seed %d: %s was not found: %+v, %v", seed, to, wrong, err)
				}
			}
		})
	}
}

func TestJudgeLLMBadLog(t *testing.T) {
	for want, log := range map[string]string{
		"line 1 of the log: unexpected end": `{"event":`,
		`line 2 of the log: event "x"`:      `{"event":"request","verdict":"malformed"}` + "\n" + `{"event":"x"}`,
		"line 1 of the log: -1 tokens":      `{"event":"request","verdict":"accepted","used":{"input":-1}}`,
		"-9223372036854775808 tokens":       `{"event":"amended","counted":[0,-9223372036854775808,0,0]}`,
	} {
		if _, err := llm.Judge(llm.Config{}, strings.NewReader(log)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", log, err, want)
		}
	}
}
