package provider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// worded describes a limit that a refusal states in its words, and nowhere else.
type worded struct {
	// says is a part of the body, with {limit}, {left}, {used}, {window} and {wait} in place of its
	// figures: counts, and seconds.
	says string
	// is has the documented facts about the limit; the figures are preferred.
	is Policy
}

// wordings takes the first of a provider's sentences that is in the body of a refusal. If header
// fields state the same limit, the words add only the length of its window.
func (r *reading) wordings(all []worded) {
	if r.Refusal == None {
		return
	}
	for i := range all {
		if f, ok := figures(string(r.Body), all[i].says); ok {
			r.worded(all[i].is, f)
			return
		}
	}
}

func (r *reading) worded(p Policy, f map[string]float64) {
	if s, ok := f["wait"]; ok {
		r.orRetryAfter("body", formatFloat(s)+" s", time.Duration(min(s, MaxWait.Seconds()+1)*float64(time.Second)), nil)
	}
	if s := f["window"]; s > 0 && s <= MaxWait.Seconds() {
		p.Window, p.WindowSource = time.Duration(s*float64(time.Second)), Stated
	}
	p.Limit, p.Source = count(f, "limit").N, Stated
	if p.Limit == 0 {
		return
	}
	same := func(h Policy) bool { return h.Unit == p.Unit && h.Limit == p.Limit }
	if i := slices.IndexFunc(r.Policies, same); i >= 0 {
		if r.Policies[i].Window == 0 {
			r.Policies[i].Window, r.Policies[i].WindowSource = p.Window, p.WindowSource
		}
		return
	}
	l := ServiceLimit{Remaining: count(f, "left"), Used: count(f, "used")}
	if l.Used.OK && !l.Remaining.OK {
		l.Remaining = Count{max(0, p.Limit-l.Used.N), true}
	}
	if s, ok := f["wait"]; ok && s > 0 && r.RetryAfter > 0 {
		l.Reset = r.now.Add(r.RetryAfter)
	}
	r.add(p, l)
}

func count(f map[string]float64, name string) Count {
	n, ok := f[name]
	return Count{int64(min(n, MaxCount)), ok}
}

// figures finds the first place of a text that fits says, and returns its figures by their names.
func figures(text, says string) (map[string]float64, bool) {
	before, rest, _ := strings.Cut(says, "{")
	for {
		_, after, ok := strings.Cut(text, before)
		if !ok {
			return nil, false
		}
		text = after
		if f, ok := figuresHere(text, rest); ok {
			return f, true
		}
	}
}

// figuresHere reads a text that must begin with the figure whose name rest begins with.
func figuresHere(text, rest string) (map[string]float64, bool) {
	f := map[string]float64{}
	for rest != "" {
		name, next, _ := strings.Cut(rest, "}")
		literal, following, _ := strings.Cut(next, "{")
		digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789,."))]
		digits = strings.TrimRight(digits, ",.") // a point or a comma may end the sentence
		n, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		if err != nil {
			return nil, false
		}
		f[name] = n
		if text, rest = text[len(digits):], following; !strings.HasPrefix(text, literal) {
			return nil, false
		}
		text = text[len(literal):]
	}
	return f, true
}

// rates finds rates in a message: "600 RPM", "180,000 TPM", "20 requests per minute", "5
// calls/second", "100 requests per 10 minutes".
var rates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\d[\d,]*(?:\.\d+)?)\s*(?:([RQT]P[SMHD])\b|(requests?|queries|query|calls?|tokens?)\s*(?:per|/|an?|every|each)\s*(\d{1,4})?[ -]?(second|sec|minute|min|hour|hr|day)s?\b)`)
})

// allowing are words before a rate that make it a limit; others make it something else, such as
// what was used, or what another plan would allow.
var (
	allowing = regexpOnce(`(?i)\b(limit(?:s|ed)?|maximum|max|quota|allow(?:s|ed)?|exceed(?:ed|s)?)\b`)
	others   = regexpOnce(`(?i)\b(used|current(?:ly)? (?:usage|rate|at)|requested|upgrade|increase|higher|plans?|tiers?|would|up to)\b`)
)

func regexpOnce(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// ratesInWords adds the limits that a refusal by anybody states in its words, if it states none in
// another way: "The maximum rate limit for this model is 600 RPM (10 QPS) and 180000 TPM".
func (r *reading) ratesInWords(scope Scope) {
	if r.Refusal != RateLimited && r.Refusal != QuotaExhausted || len(r.Policies)+len(r.Limits) > 0 {
		return
	}
	for _, m := range r.messages() {
		for _, at := range rates().FindAllStringSubmatchIndex(m, maxItems) {
			sentence := m[strings.LastIndexAny(m[:at[0]], ".!?\n")+1 : at[0]]
			if !allowing().MatchString(sentence) || others().MatchString(sentence) {
				continue
			}
			group := func(i int) string {
				if at[2*i] < 0 {
					return ""
				}
				return m[at[2*i]:at[2*i+1]]
			}
			n := written(group(1))
			f, ok := n.number()
			p := Policy{Unit: Requests, Scope: scope, Window: units[strings.ToLower(group(5))]}
			if short := strings.ToLower(group(2)); short != "" {
				p.Window = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day}[short[2]]
			}
			if every, err := strconv.Atoi(group(4)); err == nil {
				p.Window *= time.Duration(every)
			}
			if strings.HasPrefix(strings.ToLower(group(2)+group(3)), "t") {
				p.Unit = Tokens
			}
			if f > 0 && f < 1 { // 0.6 a minute is one in 100 s
				p.Window, f = time.Duration(float64(p.Window)/f), 1
			}
			p.Limit = int64(min(f, MaxCount))
			if p.Name = strings.TrimSpace(group(0)); ok && p.Limit > 0 && p.Window > 0 && p.Window <= MaxWait {
				p.Name = clip(p.Name)
				r.add(p, ServiceLimit{})
			}
		}
	}
}
