package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/internal/testkit/coded"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// spoken is the coding of all answers; nil: none.
var spoken *coded.Coding

// plainly returns a reader of an answer as its client understands it.
func plainly(resp *http.Response) io.Reader {
	if spoken == nil || resp.Header.Get("Content-Encoding") != spoken.Field {
		return resp.Body
	}
	return decode.Of(resp.Header).NewReader(resp.Body)
}

// Whatever the answers are coded in, their verdicts, usage and money are the same.
func TestInEachCoding(t *testing.T) {
	race.Without(t) // each of these tests has run with it, in no coding
	defer func() { spoken = nil }()
	for i := range coded.All {
		spoken = &coded.All[i]
		t.Run(spoken.Name, func(t *testing.T) {
			type test struct {
				name string
				run  func(*testing.T)
			}
			all := []test{
				{"tokens", TestTokens}, {"units", TestUnitsThatDoNotCount}, {"learning", TestLearnsOnce}, {"arrival", TestArrivalOfAStream},
				{"larger", TestLargerThanTheLimit}, {"documented", TestCountedAsDocumented}, {"rows", TestCountingsOfTheRows}, {"vendors", TestVendorsAreCounted}, {"in two", TestCountedAsShownInTwo},
				{"price", TestPriceIsReservedAndSettled}, {"price rounded", TestPriceIsRoundedUp}, {"price by scope", TestPriceForEachScope}, {"price of newcomers", TestPriceOfNewcomers},
				{"no price", TestNoPrice}, {"price of a cache", TestPriceOfACache},
				{"key out", TestKeyIsOut}, {"key denied", TestKeyIsDenied}, {"keys away", TestKeysThatStayAway}, {"account", TestKeysOfAnAccount}, {"whose ban", TestWhoseBan},
				{"keys", TestKeysOfRequests},
				{"retry-after", TestRetryAfterOfAFailure}, {"forbidden", TestRefusalThatForbidsToTryAgain}, {"unexplained", TestUnexplainedRefusal}, {"refills", TestRefills}, {"gateway", TestGateway},
				{"quota of a day", TestDailyQuota}, {"again", TestSendsAgain}, {"last answer", TestLastAnswerIsReturned}, {"log", TestLog}, {"check", TestCheckRetry},
				{"scope", TestRefusalPausesItsScope}, {"hints", TestHintsTighten}, {"adopt", TestAdopt}, {"every path", TestSettledOnEveryPath}, {"strangers", TestWhoseLimitsAStrangersAre},
				{"hedge", TestHedgeRefusalOfTheOther}, {"refused streams", TestStreamRefusedWith200}, {"snapshot", TestSnapshotOfAPause}, {"forgotten", TestForgottenBody}, {"words", TestAcceptEncodingMakesNoDifference},
			}
			if i < len(coded.All)-1 { // the last is of two codings
				all = all[:need.Fewer(4, len(all))]
			}
			for _, test := range all {
				t.Run(test.name, test.run)
			}
		})
	}
}

// A client that accepts compressed answers is served as one that does not: the time that a refusal
// names is kept, a quota of a day is asked for once, a key without credit is out, and money that was
// reserved is given back.
func TestAcceptEncodingMakesNoDifference(t *testing.T) {
	const (
		gemini  = "http://a.test/v1beta/models/gemini-2.5-flash:generateContent"
		ask     = `{"contents":[{"parts":[{"text":"hi"}]}]}`
		refusal = `{"error":{"code":429,"message":"Please retry in 6s.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"Generate%sPerProjectPerModel","quotaValue":"20"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"6s"}]}}`
		noCredit = `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	)
	dialect := func(name string) provider.Dialect { d, _ := provider.Lookup(name); return d }
	json := func(status int, body string) *http.Response {
		return reply(status, body, "Content-Type", "application/json")
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return json(429, fmt.Sprintf(refusal, "RequestsPerMinute"))
			}
			return json(200, `{}`)
		})
		if status, _, err := do(t, mustNew(t, transport.Config{Base: b, Provider: dialect("gemini")}), request(t, "POST", gemini, ask)); status != 200 || err != nil || !slices.Equal(b.at(), seconds(0, 6)) {
			t.Errorf("a minute: %d %v, sent at %v", status, err, b.at())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return json(429, fmt.Sprintf(refusal, "RequestsPerDay")) })
		status, body, err := do(t, mustNew(t, transport.Config{Base: b, Provider: dialect("gemini")}), request(t, "POST", gemini, ask))
		if status != 429 || err != nil || len(b.at()) != 1 || body != fmt.Sprintf(refusal, "RequestsPerDay") {
			t.Errorf("a day: %d %v, sent at %v: %s", status, err, b.at(), body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		bad := 0
		b := newBase(0, func(_ int, r *http.Request) *http.Response {
			if r.Header.Get("Authorization") == "Bearer bad" {
				bad++
				return json(429, noCredit)
			}
			return json(200, usage7and5)
		})
		var keys []transport.Key
		for _, name := range []string{"bad", "good"} {
			keys = append(keys, transport.Key{Name: name, Apply: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+name) }})
		}
		tr := mustNew(t, transport.Config{Base: b, Provider: dialect("openai"), Keys: keys})
		for range 12 {
			if status, _, err := do(t, tr, request(t, "POST", chat, prompt)); status != 200 || err != nil {
				t.Error(status, err)
			}
		}
		if bad != 1 {
			t.Errorf("the key without credit was used %d times", bad)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// Nine answers cost 57 each, and the most that one may cost is more than half of the budget.
		money := newTill(t, 1800)
		tr := sells(t, money, nil, newBase(0, func(int, *http.Request) *http.Response { return json(200, usage7and5) }), func(c *transport.Config) { c.MaxRetryAfter = -1 })
		for range 9 {
			if status, _, err := do(t, tr, request(t, "POST", chat, prompt)); status != 200 || err != nil {
				t.Error(status, err)
			}
		}
	})
}

// An answer that cannot be read counts as was reserved, which is said once for each route.
func TestUnreadIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		spy := &spy{}
		bomb := string(coded.All[0].Encode(make([]byte, 2<<20)))
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n%4 == 0 {
				return reply(200, bomb, "Content-Encoding", "gzip")
			}
			return reply(200, "\x1f\x9d\x90\x00", "Content-Encoding", []string{"compress", "secret", "gzip, br, gzip"}[n%3])
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: spy, Tokens: estimator(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 6 {
			for _, url := range []string{chat, messages} {
				if status, body, err := do(t, tr, request(t, "POST", url, prompt)); status != 200 || body != "\x1f\x9d\x90\x00" && body != bomb || err != nil {
					t.Errorf("the client got %d %q, %v", status, body, err)
				}
			}
		}
		for _, o := range spy.ended {
			if o.Result != limit.Accepted || o.Metered {
				t.Errorf("settled as %+v", o)
			}
		}
		if n := strings.Count(log.String(), "answers cannot be read"); n != 2 || !strings.Contains(log.String(), "/v1/messages") || len(spy.ended) != 12 {
			t.Errorf("%d of %d settled, said %d times:\n%s", len(spy.ended), 12, n, log.String())
		}
	})
}

// An answer in a coding that is neither read to its end nor closed leaves no goroutine behind, and is
// settled, when it is garbage.
func TestForgottenCodedBody(t *testing.T) {
	settled := make(chan limit.Outcome, 1)
	tr := mustNew(t, transport.Config{Limiter: &noted{settled: settled}, Tokens: estimator(t), Base: newBase(0, func(int, *http.Request) *http.Response {
		return reply(200, string(coded.All[0].Encode([]byte(events("data: [DONE]\n\n")))), "Content-Type", "text/event-stream", "Content-Encoding", "gzip")
	})})
	resp, err := tr.RoundTrip(request(t, "POST", chat, prompt))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	resp = nil
	for deadline := time.Now().Add(20 * time.Second); ; {
		runtime.GC()
		select {
		case o := <-settled:
			if o.Result != limit.Unknown {
				t.Errorf("settled as %+v", o)
			}
			return // TestMain looks for goroutines
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("it is not settled")
		}
	}
}

// noted is a spy that says at once how an attempt ended.
type noted struct {
	spy
	settled chan limit.Outcome
}

func (n *noted) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	n.spy.Settle(now, l, o)
	n.settled <- *o
}

// trade is how one answer was understood.
type trade struct {
	Outcome  limit.Outcome
	Money    int64
	Attempts int
	Body     string
	Err      string
}

// understood sends a request, and reads the answer in pieces.
func understood(t *testing.T, status int, kind, field string, raw []byte, end error, seed uint64) (got trade) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 7))
		spy, money := &spy{}, newTill(t, 1e9)
		n := 0
		tr := sells(t, money, spy, roundTripper(func(*http.Request) (*http.Response, error) {
			n++
			r := reply(status, "", "Content-Type", kind)
			if field != "" {
				r.Header.Set("Content-Encoding", field)
			}
			rest := io.Reader(bytes.NewReader(raw))
			if end != nil {
				rest = io.MultiReader(rest, iotest.ErrReader(end))
			}
			r.Body, r.ContentLength = io.NopCloser(readFunc(func(p []byte) (int, error) { return rest.Read(p[:min(len(p), 1+rng.IntN(60))]) })), -1
			return r, nil
		}), func(c *transport.Config) {
			c.MaxRetryAfter = -1
			c.Provider, _ = provider.Lookup("gemini")
		})
		resp, err := tr.RoundTrip(request(t, "POST", chat, prompt))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		got = trade{Attempts: n, Body: string(body), Err: fmt.Sprint(err)}
		if len(spy.ended) == 1 && len(money.ended) == 1 {
			got.Outcome, got.Money = spy.ended[0], money.ended[0].Actual[limit.Money]
		}
	})
	return got
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Whole, cut or damaged, in any pieces: an answer in a coding is understood as the text in it, or
// counts as was reserved. The client gets the bytes that came.
func FuzzCodings(f *testing.F) {
	answers := []struct {
		status int
		kind   string
		text   []string
	}{
		{200, "application/json", []string{`{"choices":[{"message":{"content":"hi"}}],`, usage7and5[1:]}},
		{200, "text/event-stream", []string{"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n", events("")[50:], "data: [DONE]\n\n"}},
		{200, "text/event-stream", []string{events("")}},
		{429, "application/json", []string{`{"error":{"code":429,"message":"Please retry in 6s.","details":[`, `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"6s"}]}}`}},
	}
	for i := range uint8(len(answers)) {
		for c := range uint8(len(coded.All)) {
			f.Add(i, c, uint64(i), uint16(1<<15), uint16(0), uint8(0), false) // whole
			f.Add(i, c, uint64(i), uint16(60), uint16(0), uint8(0), true)     // cut
			f.Add(i, c, uint64(i), uint16(1<<15), uint16(25), uint8(4), false)
		}
	}
	f.Fuzz(func(t *testing.T, which, how uint8, seed uint64, cut, at uint16, damage uint8, broken bool) {
		a, c := answers[int(which)%len(answers)], coded.All[int(how)%len(coded.All)]
		raw := bytes.Join(c.Events(a.text...), nil)
		whole := int(cut) >= len(raw)
		raw = bytes.Clone(raw[:min(int(cut), len(raw))])
		if len(raw) > 0 {
			raw[int(at)%len(raw)] ^= damage
		}
		var end error
		if broken {
			end = errors.New("connection reset")
		}
		got := understood(t, a.status, a.kind, c.Field, raw, end, seed)
		if got.Body != string(raw) || broken != (got.Err != "<nil>") {
			t.Fatalf("%s: the client got %q, %s", c.Name, got.Body, got.Err)
		}
		text, err := io.ReadAll(decode.Of(http.Header{"Content-Encoding": {c.Field}}).NewReader(bytes.NewReader(raw)))
		if err == nil {
			end = nil // the end of the coding proves that all is there, however the connection ends
		}
		want := understood(t, a.status, a.kind, "", text, end, seed)
		got.Body, want.Body, got.Err, want.Err = "", "", "", ""
		if got == want {
			return
		}
		switch {
		case damage == 0:
			t.Errorf("%s, whole %v: understood as\n%+v, want\n%+v", c.Name, whole, got, want)
		case got.Outcome.Result != want.Outcome.Result && got.Outcome.Result != limit.Accepted && got.Outcome.Result != limit.Unknown:
			t.Errorf("%s, damaged: understood as\n%+v, want\n%+v", c.Name, got, want)
		case got.Outcome.Metered && got.Outcome.Actual != want.Outcome.Actual:
			t.Errorf("%s, damaged: metered as\n%+v, want\n%+v", c.Name, got, want)
		}
	})
}
