package provider

import (
	"slices"
	"strconv"
	"strings"
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
