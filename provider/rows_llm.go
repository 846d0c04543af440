package provider

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

func llms() []*row {
	return []*row{
		anthropic(), groq(), azure(), openai(), gemini(),
	}
}

// OpenAI sends a limit, what remains and the time until the bucket is full again, per family:
// requests, tokens, and others for some accounts. Limits are an organization's or project's, per
// model.
func openai() *row {
	return &row{
		Provider: Provider{
			Name: "openai", Title: "OpenAI", AsOf: "2026-11",
			SDKs:   []Pattern{"openai.*", "com.openai.*", "openai"},
			Models: modelsOf("openai"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Requests: 50_000, Bytes: 200 << 20, Docs: "https://platform.openai.com/docs/guides/batch"},
			Tokens: countsReserved, PerSecond: true, Organization: "OpenAI-Organization", Shares: dated,
			Hosts:   []string{"api.openai.com", ".api.openai.com"},
			Docs:    "https://platform.openai.com/docs/guides/rate-limits",
			Limited: Model, Banned: Key, Refusers: families,
			Published: []Preset{
				// OpenAI's tiers differ by model; these are gpt-4o's. The headers of a tier 1
				// account state the same: 500 and 30,000.
				{"openai:tier1", "gpt-4o, tier 1", "https://platform.openai.com/docs/models/gpt-4o", "2024-07",
					[]Policy{per(500, Requests, time.Minute, Bucket, Model), per(30_000, Tokens, time.Minute, Bucket, Model)}},
				{"openai:tier2", "gpt-4o, tier 2", "https://platform.openai.com/docs/models/gpt-4o", "2024-06",
					[]Policy{per(5000, Requests, time.Minute, Bucket, Model), per(450_000, Tokens, time.Minute, Bucket, Model)}},
			},
		},
		// A refusal for want of credit has no such fields, and servers that speak as OpenAI does
		// have its code, too.
		is: func(r *Response) bool {
			return openAIFields(r.Header) || r.Status == http.StatusTooManyRequests && mentions(r, `"insufficient_quota"`)
		},
		read: func(r *reading) {
			r.families(func(string) time.Duration { return 0 })
			r.openAIError()
			r.worked("OpenAI-Processing-Ms")
		},
	}
}

// Groq speaks as OpenAI does; its documentation says that requests are always those of a day and
// tokens those of a minute.
func groq() *row {
	return &row{
		Provider: Provider{
			Name: "groq", Title: "Groq", AsOf: "2026-11",
			SDKs:   []Pattern{"groq.*", "groq-sdk"},
			Models: modelsOf("groq"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Requests: 50_000, Bytes: 200 << 20, Docs: "https://console.groq.com/docs/batch"},
			Tokens:  countsSum, // measured by many, documented nowhere
			Hosts:   []string{"api.groq.com"},
			Docs:    "https://console.groq.com/docs/rate-limits",
			Limited: Model, Banned: Key, Refusers: families,
			Published: []Preset{
				{"groq:free", "gpt-oss-120b, on demand", "https://console.groq.com/docs/rate-limits", "2026-10",
					[]Policy{named("requests per minute", per(30, Requests, time.Minute, Bucket, Model)), per(1000, Requests, day, Bucket, Model),
						per(8000, Tokens, time.Minute, Bucket, Model), named("tokens per day", per(200_000, Tokens, day, Bucket, Model))}},
			},
		},
		is: func(r *Response) bool {
			return r.Header.Get("X-Groq-Region") != "" || mentions(r, "console.groq.com") && openAIFields(r.Header)
		},
		read: func(r *reading) {
			r.families(func(family string) time.Duration {
				switch family {
				case "requests":
					return 24 * time.Hour
				case "tokens":
					return time.Minute
				}
				return 0
			})
			r.openAIError()
		},
	}
}

// Azure OpenAI sends OpenAI's names with other values. Resets are in whole seconds. An unknown
// value is -1, or 0 where another field is -1. For a while it wrote x-rate-limit-reset-tokens.
// After an overdraft of tokens, their remainder is a negative number (measured in August 2026). The
// bucket then has some again one whole window before it is full. A stream that it refuses has
// status 200, and asks to wait.
func azure() *row {
	return &row{
		Provider: Provider{
			Name: "azure-openai", Title: "Azure OpenAI", AsOf: "2026-11",
			Batch:   &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Requests: 100_000, Bytes: 200 << 20, Docs: "https://learn.microsoft.com/azure/ai-services/openai/how-to/batch"},
			Tokens:  countsSum,
			Hosts:   []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"},
			Docs:    "https://learn.microsoft.com/azure/ai-services/openai/how-to/quota",
			Limited: Model, Banned: Key, Refusers: families,
			Published: []Preset{
				{"azure-openai", "a deployment, by its quota; answers state how many",
					"https://learn.microsoft.com/azure/ai-services/openai/quotas-limits", "2026-11",
					[]Policy{per(0, Requests, 0, "", Model), per(0, Tokens, time.Minute, "", Model)}},
			},
		},
		is: func(r *Response) bool {
			if r.refusedStatus() && (mentions(r, "Azure OpenAI") || mentions(r, "aka.ms/oai/quotaincrease")) {
				return true
			}
			return sends("Apim-Request-Id", "X-Ms-Region", "Azureml-Model-Session")(r) &&
				(openAIFields(r.Header) || r.refusedStatus() || sends("X-Rate-Limit-Reset-Tokens")(r))
		},
		read: func(r *reading) {
			for _, family := range []string{"requests", "tokens"} {
				p := Policy{Name: family, Unit: familyUnit(family), Scope: Model}
				limit, remaining, reset := "X-RateLimit-Limit-"+family, "X-RateLimit-Remaining-"+family, "X-RateLimit-Reset-"+family
				unknown := false
				for _, name := range []string{limit, remaining, reset} {
					if v, _ := r.field(name); v == "-1" {
						unknown = true
					}
				}
				if unknown {
					r.note("%s: the server does not know (-1)", family)
					continue
				}
				if family == "tokens" {
					p.Window, p.WindowSource = time.Minute, Documented
					if w := r.length("X-RateLimit-RenewalPeriod-"+family, 0); w > 0 {
						p.Window, p.WindowSource = w, Stated
					}
					if old := "X-Rate-Limit-Reset-Tokens"; !r.has(reset) && r.has(old) {
						reset = old
					}
				}
				var at time.Time
				if v, _ := r.field(reset); v != "0" { // a reset of 0 means now, or unknown: neither helps
					at = r.reset(reset, 0)
				}
				p.Limit = r.limit(limit).N
				l := ServiceLimit{Reset: at}
				if v, _ := r.field(remaining); strings.HasPrefix(v, "-") {
					l.Remaining = Count{0, true}
					if more := at.Add(-p.Window); more.After(r.now) {
						l.Next = more
					}
				} else {
					l.Remaining = r.count(remaining)
				}
				r.add(p, l)
			}
			r.worked("OpenAI-Processing-Ms")
			if r.Status == http.StatusOK && r.has("Retry-After") && strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
				r.refuse(RateLimited)
			}
			if r.Status != http.StatusTooManyRequests {
				return
			}
			r.openAIError()
			var body openAIBody
			if r.object(&body) {
				if _, rest, ok := strings.Cut(body.Error.Message, "retry after "); ok {
					n, unit, _ := strings.Cut(rest, " ")
					if d, err := seconds(n); err == nil && strings.HasPrefix(unit, "second") {
						r.orRetryAfter("body", n, d, nil)
					}
				}
			}
			if v, ok := r.field("Policy-Id"); ok {
				r.note("refused by %s", clip(v))
			}
		},
	}
}

// families are the names of limits in messages, and those in header fields.
var families = []Refuser{{"RPM", Model}, {"TPM", Model}, {"RPD", Model}, {"TPD", Model}, {"*", ""}}

// refusedStatus reports whether the status may be that of a refusal by a limit.
func (r *Response) refusedStatus() bool {
	return r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable
}

func openAIFields(h http.Header) bool {
	for _, prefix := range []string{"X-Ratelimit-Limit-", "X-Ratelimit-Remaining-", "X-Ratelimit-Reset-"} {
		for _, family := range []string{"Requests", "Tokens"} {
			if h.Get(prefix+family) != "" {
				return true
			}
		}
	}
	return false
}

// families reads x-ratelimit-{limit,remaining,reset}-{family} for every family that is there.
// window returns the documented window of a family.
func (r *reading) families(window func(family string) time.Duration) {
	for _, what := range []string{"Limit", "Remaining", "Reset"} {
		r.looked.at("X-RateLimit-" + what + "-*")
	}
	var names []string
	for name := range r.Header {
		name = http.CanonicalHeaderKey(name)
		for _, prefix := range [...]string{"X-Ratelimit-Limit-", "X-Ratelimit-Remaining-", "X-Ratelimit-Reset-"} {
			if family, ok := strings.CutPrefix(name, prefix); ok {
				if family = strings.ToLower(family); !slices.Contains(names, family) {
					names = append(names, family)
				}
				break
			}
		}
	}
	for _, family := range order(names, func(s string) string { return s })[:min(len(names), maxItems)] {
		p := Policy{Name: clip(family), Unit: familyUnit(family), Scope: Model, Rule: Bucket, Window: window(family)}
		limit := r.limit("X-Ratelimit-Limit-" + family)
		remaining := r.count("X-Ratelimit-Remaining-" + family)
		reset := r.reset("X-Ratelimit-Reset-"+family, 0)
		p.Limit = limit.N
		if p.Window > 0 {
			p.WindowSource = Documented
		} else if w := refillWindow(limit, remaining, reset.Sub(r.now)); !reset.IsZero() && w > 0 {
			p.Window, p.WindowSource = w, Inferred
		}
		r.add(p, ServiceLimit{Remaining: remaining, Reset: reset, Whole: true})
	}
}

// refillWindow returns the window of a bucket that is full again after reset. It fills at limit per
// window, so
//
//	window = reset · limit / (limit − remaining)
//
// The server rounds reset. If the result is not within 15% of a second, a minute, an hour or a day,
// it says nothing. (Observed answers give 60.0 s, 56.3 s and 86,189 s.)
func refillWindow(limit, remaining Count, reset time.Duration) time.Duration {
	if !limit.OK || !remaining.OK || remaining.N >= limit.N || reset <= 0 {
		return 0
	}
	w := reset.Seconds() * float64(limit.N) / float64(limit.N-remaining.N)
	for _, d := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if math.Abs(w-d.Seconds()) <= 0.15*d.Seconds() {
			return d
		}
	}
	return 0
}

func familyUnit(family string) Unit {
	switch {
	case strings.Contains(family, "input-tokens"):
		return Input
	case strings.Contains(family, "output-tokens"):
		return Output
	case strings.Contains(family, "tokens"):
		return Tokens
	case strings.Contains(family, "requests"):
		return Requests
	}
	return Other
}

type openAIBody struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	} `json:"error"`
}

// openAIError reads the body of a refusal. The message names the limit: "on tokens per min (TPM):
// Limit 30000, Used 28770, Requested 4351. Please try again in 6.242s".
func (r *reading) openAIError() {
	if r.Status < 400 {
		return
	}
	var body openAIBody
	if !r.object(&body) {
		return
	}
	code, _ := body.Error.Code.(string)
	switch m := body.Error.Message; {
	case code == "insufficient_quota" || body.Error.Type == "insufficient_quota" || code == "billing_hard_limit_reached" || strings.HasSuffix(code, "_spend_limit_exceeded") || code == "billing_not_active" ||
		strings.HasPrefix(m, "You have no credits remaining"):
		r.refuse(Unpaid)
		return
	case strings.Contains(m, "is currently overloaded") || code == "capacity_exceeded" || code == "resource_unavailable" || code == "slow_down" || code == "server_is_overloaded" || r.Status == 498: // 498: Groq's flex tier is full
		r.refuse(Overloaded)
		return
	case r.Status == http.StatusRequestEntityTooLarge, r.Status == http.StatusTooManyRequests && strings.HasPrefix(m, "Request too large"):
		r.refuse(TooLarge)
	}
	r.statedInWords(body.Error.Message)
}

// statedInWords reads what a message says: how long to wait, and the limit, where the header fields
// do not have it.
func (r *reading) statedInWords(m string) {
	if _, wait, ok := strings.Cut(m, "try again in "); ok {
		wait, _, _ = strings.Cut(wait, " ")
		wait = strings.TrimRight(wait, ".")
		d, err := goDuration(wait)
		r.orRetryAfter("body", wait, d, err)
	}
	_, rest, ok := strings.Cut(m, " on ")
	if !ok {
		return
	}
	what, numbers, ok := strings.Cut(rest, "Limit")
	if !ok {
		return
	}
	p := Policy{Scope: Model, Rule: Bucket}
	for _, v := range []Policy{
		{Name: "RPM", Unit: Requests, Window: time.Minute}, {Name: "TPM", Unit: Tokens, Window: time.Minute},
		{Name: "RPD", Unit: Requests, Window: 24 * time.Hour}, {Name: "TPD", Unit: Tokens, Window: 24 * time.Hour},
	} {
		if strings.Contains(what, "("+v.Name+")") {
			p.Name, p.Unit, p.Window = v.Name, v.Unit, v.Window
		}
	}
	limit, used, requested := wordNumber(numbers, ""), wordNumber(numbers, "Used "), wordNumber(numbers, "Requested ")
	if p.Name != "" && limit.OK && limit.N == 0 {
		r.by(p.Name)
		r.noQuota()
	}
	if p.Name == "" || !limit.OK || limit.N == 0 {
		return
	}
	if requested.OK && requested.N > limit.N {
		r.refuse(TooLarge)
		r.note("it asked for %d of a limit of %d: it never fits", requested.N, limit.N)
	}
	for i, h := range r.Policies {
		if h.Unit == p.Unit && h.Limit == limit.N {
			r.by(h.Name)
			r.Policies[i].Window, r.Policies[i].WindowSource = p.Window, Stated
			return
		}
	}
	r.by(p.Name)
	p.Limit = limit.N
	l := ServiceLimit{Used: used}
	if used.OK {
		l.Remaining = Count{max(0, limit.N-used.N), true}
	}
	r.add(p, l)
	if p.Window >= 24*time.Hour {
		r.refuse(QuotaExhausted)
	}
}

// wordNumber returns the number after a word, as in "Used 28770," or "Requested ~12903.".
func wordNumber(s, word string) Count {
	if word != "" {
		_, rest, ok := strings.Cut(s, word)
		if !ok {
			return Count{}
		}
		s = rest
	}
	s = strings.TrimLeft(s, " :~")
	n, any := int64(0), false
	for _, c := range s {
		if c < '0' || c > '9' {
			break
		}
		n, any = min(n*10+int64(c-'0'), MaxCount), true
	}
	return Count{n, any}
}

// Anthropic sends four families, each a bucket per minute, with the instant at which it is full
// again. The family "tokens" is the most restrictive of the others. For most models, tokens that
// are read from its cache do not count as input.
func anthropic() *row {
	return &row{
		Provider: Provider{
			Name: "anthropic", Title: "Anthropic", AsOf: "2026-11",
			SDKs:   []Pattern{"anthropic.*", "com.anthropic.*", "@anthropic-ai/*"},
			Models: modelsOf("anthropic"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Requests: 100_000, Bytes: 256 << 20, Docs: "https://platform.claude.com/docs/en/build-with-claude/batch-processing"},
			Tokens: countsProduced, Organization: "Anthropic-Organization-Id",
			// https://platform.claude.com/docs/en/api/rate-limits: all of Opus 4 have one limit,
			// all of Sonnet 4 another.
			Shares: append([]Family{
				{"claude-opus-4", []Pattern{"claude-opus-4", "claude-opus-4-*", "claude-4-opus*"}},
				{"claude-sonnet-4", []Pattern{"claude-sonnet-4", "claude-sonnet-4-*", "claude-4-sonnet*"}},
			}, dated...),
			Hosts:   []string{"api.anthropic.com"},
			Docs:    "https://docs.anthropic.com/en/api/rate-limits",
			Limited: Model, Banned: Key,
			Published: []Preset{
				// Anthropic's tiers differ by model; these are of Claude Fable 5.
				{"anthropic:start", "Claude Fable 5, Start tier", "https://platform.claude.com/docs/en/api/rate-limits", "2026-10",
					[]Policy{per(1000, Requests, time.Minute, Bucket, Model), per(500_000, Input, time.Minute, Bucket, Model), per(100_000, Output, time.Minute, Bucket, Model)}},
				{"anthropic:build", "Claude Fable 5, Build tier", "https://platform.claude.com/docs/en/api/rate-limits", "2026-10",
					[]Policy{per(2000, Requests, time.Minute, Bucket, Model), per(1_500_000, Input, time.Minute, Bucket, Model), per(300_000, Output, time.Minute, Bucket, Model)}},
				{"anthropic:scale", "Claude Fable 5, Scale tier", "https://platform.claude.com/docs/en/api/rate-limits", "2026-10",
					[]Policy{per(4000, Requests, time.Minute, Bucket, Model), per(4_000_000, Input, time.Minute, Bucket, Model), per(800_000, Output, time.Minute, Bucket, Model)}},
			},
		},
		is: func(r *Response) bool { return sendsPrefix(r.Header, "Anthropic-Ratelimit-") },
		read: func(r *reading) {
			for _, family := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
				name := "Anthropic-Ratelimit-" + family
				p := Policy{Name: family, Unit: familyUnit(family), Scope: Model, Rule: Bucket, Window: time.Minute, WindowSource: Documented, Limit: r.limit(name + "-Limit").N}
				r.add(p, ServiceLimit{Remaining: r.count(name + "-Remaining"), Reset: r.reset(name+"-Reset", 0), Whole: true})
			}
			if v, _ := r.field("X-Should-Retry"); v == "false" {
				r.note("the server asks not to retry")
			}
			if v, _ := r.field("Anthropic-RateLimit-Unified-Status"); v == "rejected" && r.Status == http.StatusTooManyRequests {
				r.refuse(QuotaExhausted) // the allowance of a subscription is used up
				if t := r.reset("Anthropic-RateLimit-Unified-Reset", 0); r.RetryAfter == 0 && t.After(r.now) {
					r.RetryAfter = t.Sub(r.now)
				}
			}
			var body struct {
				Error struct {
					Type    string `json:"type"`
					Message string `json:"message"`
				} `json:"error"`
			}
			if r.Status < 400 || !r.object(&body) {
				return
			}
			if _, rest, ok := strings.Cut(body.Error.Message, "regain access on "); ok {
				// The month's money is spent: a bound of the provider's, or the customer's own.
				r.refuse(QuotaExhausted)
				if t, err := time.Parse("2006-01-02 at 15:04 MST", strings.TrimRight(rest, ".")); err == nil && r.RetryAfter == 0 {
					r.RetryAfter, r.Sure = r.instant("body", rest, t).Sub(r.now), true
				}
			}
			switch body.Error.Type {
			case "rate_limit_error":
				r.refuse(RateLimited)
			case "overloaded_error":
				r.refuse(Overloaded)
			case "billing_error":
				r.refuse(Unpaid)
			case "request_too_large":
				r.refuse(TooLarge)
			case "invalid_request_error":
				if strings.Contains(body.Error.Message, "credit balance is too low") {
					r.refuse(Unpaid)
				}
			}
		},
	}
}

// Gemini, like other APIs of Google, states everything in the body: the exceeded limit, and how
// long to wait. For a quota of a day it may still ask for a wait of seconds. Such a quota is back
// at midnight Pacific time, which the reading reports.
func gemini() *row {
	return &row{
		Provider: Provider{
			Name: "gemini", Title: "Gemini", AsOf: "2026-11",
			SDKs:   []Pattern{"google.genai.*", "google.generativeai.*", "@google/genai", "@google/generative-ai"},
			Models: modelsOf("gemini"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Bytes: 2 << 30, Docs: "https://ai.google.dev/gemini-api/docs/batch-api"},
			Tokens: countsInput,
			Hosts:  []string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"},
			Docs:   "https://ai.google.dev/gemini-api/docs/rate-limits",
			Published: []Preset{
				{"gemini", "a project and a model; how many is in AI Studio alone",
					"https://ai.google.dev/gemini-api/docs/rate-limits", "2026-11",
					[]Policy{per(0, Requests, time.Minute, "", Model), per(0, Input, time.Minute, "", Model),
						local(pacificTime, named("day", per(0, Requests, day, Calendar, Model)))}},
			},
			Silent: true, Limited: Model, Banned: Key, Refusers: []Refuser{{"*PerModel*", Model}, {"Gemini*", Model}, {"*", ""}},
		},
		is: func(r *Response) bool {
			return r.Status >= 400 && mentions(r, `RESOURCE_EXHAUSTED`) || mentions(r, "google.rpc.QuotaFailure")
		},
		read: func(r *reading) { r.google() },
	}
}

// google reads the errors of Google's newer APIs.
func (r *reading) google() {
	if r.Status < 400 {
		return
	}
	body, ok := r.googleError()
	if !ok {
		return
	}
	if strings.Contains(body.Message, "credits are depleted") {
		r.refuse(Unpaid)
	}
	if r.limitOfZero() {
		r.noQuota()
	}
	daily, asked := false, r.RetryAfter > 0
	for _, d := range body.Details {
		switch {
		case strings.HasSuffix(d.Type, "google.rpc.QuotaFailure"):
			for _, v := range d.Violations[:min(len(d.Violations), maxItems)] {
				daily = r.violation(v.ID, v.Metric, v.Value) || daily
			}
		case strings.HasSuffix(d.Type, "google.rpc.ErrorInfo"):
			if name := d.Metadata.QuotaLimit; name != "" {
				daily = r.violation(name, d.Metadata.QuotaMetric, d.Metadata.QuotaLimitValue) || daily
			}
		case strings.HasSuffix(d.Type, "google.rpc.RetryInfo"):
			wait, err := goDuration(d.RetryDelay)
			r.orRetryAfter("retryDelay", d.RetryDelay, wait, err)
		}
	}
	switch {
	case r.Refusal == NoQuota:
		r.RetryAfter = 0 // what it asks for is said of every quota
	case daily:
		r.refuse(QuotaExhausted)
		if wait := r.RetryAfter; wait > 0 && !asked {
			r.RetryAfter = 0
			r.note("the server asks for %v, and would refuse again: that is said of every quota, whatever its length", wait)
		}
		r.note("a quota of a day is exhausted; the documentation says it is back at midnight Pacific time, and that holds")
	case body.Status == "RESOURCE_EXHAUSTED":
		r.refuse(RateLimited)
	case body.Status == "UNAVAILABLE":
		r.refuse(Overloaded)
	}
}

type googleStatus struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Details []struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			Metric string `json:"quotaMetric"`
			ID     string `json:"quotaId"`
			Value  string `json:"quotaValue"`
		} `json:"violations"`
		Metadata struct {
			QuotaLimit      string `json:"quota_limit"`
			QuotaLimitValue string `json:"quota_limit_value"`
			QuotaMetric     string `json:"quota_metric"`
		} `json:"metadata"`
	} `json:"details"`
}

// googleError reads an error; streaming calls put it into a list.
func (r *reading) googleError() (googleStatus, bool) {
	type wrapped struct {
		Error googleStatus `json:"error"`
	}
	if strings.HasPrefix(strings.TrimSpace(string(r.Body)), "[") {
		var list []wrapped
		if !r.object(&list) || len(list) == 0 {
			return googleStatus{}, false
		}
		return list[0].Error, true
	}
	var w wrapped
	ok := r.object(&w)
	return w.Error, ok
}

// violation records a quota that is exceeded, and reports whether it is one of a day.
func (r *reading) violation(id, metric, value string) (daily bool) {
	p, l := Policy{Name: clip(id), Unit: Requests, Scope: Key}, ServiceLimit{Remaining: Count{0, true}}
	switch {
	case strings.Contains(metric, "input_token"):
		p.Unit = Input
	case strings.Contains(metric, "output_token"):
		p.Unit = Output
	case strings.Contains(metric, "token"):
		p.Unit = Tokens
	}
	if strings.Contains(id, "PerModel") || strings.HasPrefix(id, "Gemini") { // such as Gemini25ProRequestsPerDay
		p.Scope = Model
	}
	switch {
	case strings.Contains(id, "PerDay"):
		daily, p.Window, p.Rule, p.Zone = true, 24*time.Hour, Calendar, pacificTime
		l.Reset, l.Whole = r.now.Add(pacificMidnight(r.clock).Sub(r.clock)), true
	case strings.Contains(id, "PerMinute"):
		p.Window = time.Minute
	}
	if value != "" {
		c := r.number("quotaValue", value)
		if p.Limit = c.N; c.OK && c.N == 0 {
			r.noQuota()
		}
	}
	if id != "" && !slices.Contains(r.RefusedBy, p.Name) {
		r.by(p.Name)
	}
	if r.Refusal == NoQuota {
		l.Reset = time.Time{}
	}
	r.add(p, l)
	return daily
}
