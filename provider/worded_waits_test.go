package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// now28 is a Saturday.
var now28 = time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)

// refusedWith returns the reading of a refusal with this message.
func refusedWith(t testing.TB, status int, message string) provider.Observation {
	t.Helper()
	body, err := json.Marshal(map[string]any{"error": map[string]any{"code": "429", "message": message}})
	if err != nil {
		t.Fatal(err)
	}
	return readBody(status, string(body))
}

func readBody(status int, body string) provider.Observation {
	r := provider.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	return provider.Detect(r).Read(now28, r)
}

// TestWordsThatSayWhen: a refusal in words says when to come back, whoever refuses.
func TestWordsThatSayWhen(t *testing.T) {
	for _, c := range []struct {
		message string
		want    string // a duration
	}{
		// As servers were seen to say it.
		{"Rate limit exceeded. Try again in 35 seconds.", "35s"},
		{"Rate limit is exceeded. Try again in 1 second.", "1s"},
		{"Please retry after 6 seconds.", "6s"},
		{"Rate limit reached for gpt-4o. Please try again in 6s.", "6s"},
		{"Please try again in 1m12.5s. Visit https://example.com/limits to learn more.", "1m12.5s"},
		{"Please try again in 23h47m36.648s.", "23h47m36.648s"},
		{"5-hour usage limit reached. Resets in 4hr 59min. To continue using this model now, enable usage", "4h59m"},
		{"Weekly usage limit reached. Resets in 2 days.", "48h"},
		{"Your token-plan 1-week quota has been exhausted. The quota will reset at 12-02 09:18:00 UTC.", "104h18m"},
		{"You've hit your limit · resets 8pm (UTC)", "19h"},
		{"5-hour limit reached ∙ resets 10:30am (Europe/Rome)", "8h30m"},
		{"Claude usage limit reached. Your limit will reset at 3pm (America/New_York).", "19h"},
		{"Weekly limit reached ∙ resets Dec 14", "383h"},
		{"Claude AI usage limit reached|1795834800", "2h"},
		{"You have exhausted your capacity on this model. Your quota will reset after 161h39m41s.", "161h39m41s"},
		{"No capacity is left (reset after 2m 13s)", "2m13s"},
		{"limit resets at: 2026-11-28T10:13:01+0000", "9h13m1s"},
		{"You've hit your usage limit. Try again at Nov 29th, 2026 10:23 PM.", "45h23m"},
		{"Rate limit exceeded, retry in 1 minute", "1m"},
		{"Request was throttled. Expected available in 43 seconds.", "43s"},
		{"Too Many Attempts. Please wait 7 minutes before trying again.", "7m"},
		{"IP banned. Please wait 90 seconds.", "1m30s"},
		{"You are being rate limited. retry_after: 12.5", "12.5s"},
		{"No deployments available for selected model, Try again in 5 seconds. Passed model=x. cooldown_list=[]", "5s"},
		{"You can resume using this model at 11/29/2026, 9:00:00 AM UTC.", ""}, // day or month first: nobody knows
		{"Account temporarily locked due to repeated attempts. Try again in a minute.", "1m"},
		{"已达到 5 小时的使用上限。您的限额将在 2026-11-28 10:51:51 重置。", "1h51m51s"},
		{"请求过于频繁，请 30 秒后重试", "30s"},
		{"请在 2 分钟后再试。", "2m"},
		// Cousins.
		{"Retry-After: 30", "30s"},
		{"please retry in 250ms", "250ms"},
		{"TRY AGAIN IN 2 HOURS", "2h"},
		{"Try again in approx. 30 seconds", "30s"},
		{"Wait at least another 1 hour, 2 minutes and 3 seconds", "1h2m3s"},
		{"try again in 30-60 seconds", "1m"},
		{"retry in 1 to 2 minutes", "2m"},
		{"Please wait up to 45 sec", "45s"},
		{"Quota resets in 00:12:34", "12m34s"},
		{"Retry after PT1M30S", "1m30s"},
		{"retry in P1DT2H", "26h"},
		{"Resets at 20:00:00", "19h"},
		{"Quota resets daily at midnight UTC", "23h"},
		{"Quota resets at midnight Pacific time", "7h"},
		{"The quota is back again at 5:00 a.m. PST", "12h"},
		{"resets tomorrow at 10:00 UTC", "33h"},
		{"Your limit renews on Monday at 9am UTC", "56h"},
		{"renews on 2026-12-01", "71h"},
		{"blocked until Sat, 28 Nov 2026 01:02:00 GMT", "2m"},
		{"blocked until Sat, 28 Nov 2026 02:02:00 +0100", "2m"},
		{"retry after 2026-11-28T01:00:30.5Z", "30.5s"},
		{"retry after 2026-11-28 03:00:30+02:00", "30s"},
		{"rate limited until 1795827660", "1m"},
		{"rate limited until 1795827660000", "1m"},
		{"5 minutes until your limit resets", "5m"},
		{"At most 10 per hour: 30 seconds before trying again", "30s"},
		{"cooldown remaining: 12s", "12s"},
		{"Next request allowed after 3 s; retry in 4 s", "4s"}, // the later counts
		{"Resets in 3 hours. Please try again in 20s.", "20s"}, // what it asks for counts first
		{"Try again in 3 months", "744h"},                      // no pause is longer
		{"You will be unblocked. Your ban expires in 1,800 seconds.", "30m"},
	} {
		want, _ := time.ParseDuration(c.want)
		if o := refusedWith(t, 429, c.message); o.RetryAfter != want {
			t.Errorf("%s\n\twait %v, want %v; %q %q", c.message, o.RetryAfter, want, o.Notes, o.Problems)
		}
	}
}

// TestWordsThatSayNothing: a number that is no time to come back is not taken for one.
func TestWordsThatSayNothing(t *testing.T) {
	for _, message := range []string{
		"Too many requests. Limit: 20 requests per 10 minutes.",
		"You may retry 3 times in 5 minutes.",
		"You exceeded your current limit of concurrent requests.",
		"Try again later. The limit is 5 per 10 minutes.",
		"Please try again in a moment.",
		"Please try again in a few minutes.",
		"Please retry within 30 seconds.",
		"This model is available until 2026-12-24.",
		"Free trial: available for 30 days.",
		"Try it 30 days for free!",
		"rate limited to 5 minutes of audio",
		"retry after 3 attempts",
		"The limit resets every 24 hours.",
		"Your password reset link expires in 30 minutes",
		"Resets in 0 seconds.",
		"blocked until 1999-01-01",
		"try again in 40 years",
		"retry after 2031-01-01",
		"try again at 99:99",
		"try again in 5 parsecs",
		"resets 13pm",
		"again 5 minutes", "waitlist 5 minutes",
		strings.Repeat("x", 3000) + " try again in 35 seconds",
	} {
		if o := refusedWith(t, 429, message); o.RetryAfter != 0 {
			t.Errorf("%.80s\n\twait %v, want none; %q", message, o.RetryAfter, o.Notes)
		}
	}
}

// TestWordsOfRefusalsAlone: what a model wrote, what a client asked and what failed for another
// reason never make anybody wait.
func TestWordsOfRefusalsAlone(t *testing.T) {
	const words = "Rate limit exceeded. Try again in 35 seconds."
	for _, c := range []struct {
		status int
		body   string
		want   time.Duration
	}{
		{200, `{"choices":[{"message":{"content":"` + words + `"}}],"message":"` + words + `"}`, 0},
		{200, words, 0},
		{404, `{"error":{"message":"` + words + `"}}`, 0},
		{500, `{"error":{"message":"` + words + `"}}`, 0},
		{400, `{"error":{"message":"no such model","param":"` + words + `"}}`, 0},
		{429, `{"error":{"message":"slow down","prompt":"` + words + `"},"request":{"message":"` + words + `"}}`, 0},
		{429, `{"error":"slow down","input":[{"detail":"` + words + `"}]}`, 0},
		{429, `{"detail":[{"msg":"` + words + `","input":"try again in 3 hours"}]}`, 35 * time.Second},
		{429, `[{"error":{"message":"` + words + `"}}]`, 35 * time.Second},
		{429, `{"errors":[{"title":"no","detail":"` + words + `"}]}`, 35 * time.Second},
		{429, `{"error":{"metadata":{"raw":"{\"error\":{\"message\":\"` + words + `\"}}"}}}`, 35 * time.Second},
		{429, `{"error":{"message":"{'error': {'message': '` + words + `'}}"}}`, 35 * time.Second},
		{429, words, 35 * time.Second},
		{429, "<html><head><script>retry after 900 s</script></head><body><h1>Slow down</h1><p>Please wait <b>35</b> seconds</p></body></html>", 35 * time.Second},
		{429, `<?xml version="1.0"?><Error><Code>Throttling</Code><Message>` + words + `</Message></Error>`, 35 * time.Second},
		{503, words, 35 * time.Second},
		{429, `{"error":{"type":"usage_limit_reached","message":"The limit is reached","resets_at":1795827635,"resets_in_seconds":35}}`, 35 * time.Second},
		{429, `{"error":{"message":"The limit is reached","resets_at":"2026-11-28T01:00:35Z"}}`, 35 * time.Second},
		{429, `{"message":"no","retryAfterMs":35000}`, 35 * time.Second},
		{429, `{"error":{"message":"insufficient_quota. ` + words + `","code":"insufficient_quota"}}`, 0}, // no wait brings credit
		{429, `{"message":"` + words, 35 * time.Second},                                                   // it breaks off
		{429, ``, 0},
	} {
		if o := readBody(c.status, c.body); o.RetryAfter != c.want {
			t.Errorf("%d %s\n\twait %v, want %v; %q", c.status, c.body, o.RetryAfter, c.want, o.Notes)
		}
	}
}

// TestWordsAfterFields: a header field, or what a row knows, counts before the words.
func TestWordsAfterFields(t *testing.T) {
	for fields, want := range map[string]time.Duration{
		"Retry-After: 7":    7 * time.Second,
		"Retry-After-Ms: 7": 7 * time.Millisecond,
		"X-RateLimit-Limit: 10|X-RateLimit-Remaining: 0|X-RateLimit-Reset: 9": 0, // at its reset
		"X-RateLimit-Limit: 10|X-RateLimit-Remaining: 4|X-RateLimit-Reset: 9": 35 * time.Second,
	} {
		h := http.Header{}
		for f := range strings.SplitSeq(fields, "|") {
			name, v, _ := strings.Cut(f, ": ")
			h.Set(name, v)
		}
		d, _ := provider.Lookup("generic")
		o := d.Read(now28, provider.Response{Status: 429, Header: h, Body: []byte("Try again in 35 seconds.")})
		if o.RetryAfter != want {
			t.Errorf("%s: wait %v, want %v", fields, o.RetryAfter, want)
		}
	}
}

// FuzzWordedWaits: no message makes a reading panic, or wait for a time that is not to be believed;
// and in no answer that was served does it make anybody wait.
func FuzzWordedWaits(f *testing.F) {
	for _, m := range []string{"Try again in 35 seconds.", "resets at 12-02 09:18:00 UTC", "resets 8pm (Europe/Rome)", "retry after PT1M30S", "wait 1-2 weeks", "retry_after_ms=5e3",
		"limit reached|1795834800", "resets Dec 14th, 2026 at 24:00 +99:99", "请在 2 分钟后再试", "again in 00:00:60.", "5 minutes until reset", "<b>wait</b> 3 s", "retry in 99999999999999999999 d"} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m string) {
		for _, name := range []string{"generic", "openai", "gemini"} {
			d, _ := provider.Lookup(name)
			for _, body := range []string{m, `{"error":{"message":` + string(must(json.Marshal(m))) + `}}`} {
				r := provider.Response{Status: 429, Header: http.Header{}, Body: []byte(body)}
				check(t, name, now28, d.Read(now28, r))
			}
			r := provider.Response{Status: 200, Header: http.Header{}, Body: must(json.Marshal(map[string]any{"message": m, "choices": []any{map[string]string{"text": m}}}))}
			if o := d.Read(now28, r); o.RetryAfter != 0 || o.Refusal != provider.None {
				t.Errorf("%q of a served answer: %v, %v", m, o.Refusal, o.RetryAfter)
			}
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestRetryAfterForms: Retry-After is read in each form that servers send; of several the longest
// counts.
func TestRetryAfterForms(t *testing.T) {
	for _, c := range []struct {
		values string // one field each
		want   string
	}{
		{"30", "30s"}, {"30.5", "30.5s"}, {"0", "0s"}, {"-1", "0s"}, {"soon", "0s"}, {"", "0s"}, {`"30"`, "30s"},
		{"30s", "30s"}, {"30 seconds", "30s"}, {"30 sec", "30s"}, {"in 30 seconds", "30s"}, {"1 minute", "1m"}, {"1 hour, 2 minutes", "1h2m"}, {"PT30S", "30s"}, {"00:00:30", "30s"}, {"2m30s", "2m30s"},
		{"30, 30", "30s"}, {"30, 60", "1m"}, {"60,30", "1m"}, {"30|60", "1m"}, {"60|30", "1m"}, {"soon|30", "30s"}, {"30|", "30s"},
		{"Sat, 28 Nov 2026 01:00:30 GMT", "30s"}, {"Sat, 28 Nov 2026 01:00:30 +0000", "30s"}, {"Sat, 28 Nov 2026 01:00:30 UTC", "30s"},
		{"Sat, 28 Nov 2026 02:00:30 +0100", "30s"}, {"28 Nov 2026 01:00:30 GMT", "30s"}, {"Saturday, 28-Nov-26 01:00:30 GMT", "30s"}, {"Sat Nov 28 01:00:30 2026", "30s"},
		{"2026-11-28T01:00:30Z", "30s"}, {"2026-11-28T01:00:30+0000", "30s"}, {"2026-11-28 01:00:30 UTC", "30s"}, {"1795827630", "30s"}, {"1795827630000", "30s"},
		{"Fri, 27 Nov 2026 01:00:30 +0000", "0s"}, {"Sat, 28 Nov 2026 01:00:30 +0000|10", "30s"}, {"30 parsecs", "0s"}, {"2030-01-01", "0s"},
	} {
		h := http.Header{"Date": {"Sat, 28 Nov 2026 01:00:00 GMT"}}
		for v := range strings.SplitSeq(c.values, "|") {
			h.Add("Retry-After", v)
		}
		want, err := time.ParseDuration(c.want)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := provider.Lookup("generic")
		if o := d.Read(now28, provider.Response{Status: 429, Header: h}); o.RetryAfter != want {
			t.Errorf("Retry-After: %s: wait %v, want %v; %q", c.values, o.RetryAfter, want, o.Problems)
		}
	}
	for _, c := range []struct {
		ms, seconds string
		want        time.Duration
	}{{"8646", "9", 8646 * time.Millisecond}, {"500", "60", time.Minute}, {"0", "12", 12 * time.Second}, {"x", "12", 12 * time.Second}, {"70000", "9", 70 * time.Second}} {
		d, _ := provider.Lookup("generic")
		if o := d.Read(now28, provider.Response{Status: 429, Header: http.Header{"Retry-After-Ms": {c.ms}, "Retry-After": {c.seconds}}}); o.RetryAfter != c.want {
			t.Errorf("%s ms, %s s: wait %v, want %v", c.ms, c.seconds, o.RetryAfter, c.want)
		}
	}
	d, _ := provider.Lookup("generic")
	h := http.Header{"Date": {"Sat, 28 Nov 2026 03:00:00 +0000"}, "Retry-After": {"Sat, 28 Nov 2026 03:00:30 +0000"}} // a clock that is ahead
	if o := d.Read(now28, provider.Response{Status: 429, Header: h}); o.RetryAfter != 30*time.Second {
		t.Errorf("both dates as mail has them: wait %v, want 30s; %q", o.RetryAfter, o.Problems)
	}
}
