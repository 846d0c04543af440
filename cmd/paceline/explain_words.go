package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/explain"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// explained is the output in JSON. Later versions only add fields.
type explained struct {
	From   string `json:"from"`
	Status int    `json:"status"`
	// Assumed means that the text had no status.
	Assumed bool   `json:"status_assumed,omitempty"`
	Host    string `json:"host,omitempty"`
	// ToldBy is the part of the text that names the provider, if neither a host nor the header
	// fields do. Others are providers that refuse in the same words.
	ToldBy string    `json:"told_by,omitempty"`
	Others []string  `json:"others,omitempty"`
	At     time.Time `json:"at"`
	// ComeBack is missing if the server does not state it, or if coming back does not help.
	ComeBack        *time.Time           `json:"come_back,omitempty"`
	ComeBackSeconds *float64             `json:"come_back_seconds,omitempty"`
	Advice          string               `json:"advice"`
	Observation     provider.Observation `json:"observation"`
	// Published are limits from the table of providers, if the response states none.
	Published []publishedRow `json:"published,omitempty"`
}

// saying is the whole explanation of an answer.
type saying struct {
	from      string
	now       time.Time
	answer    explain.Answer
	who       answerer
	o         provider.Observation
	provider  provider.Provider
	published []publishedRow // only if the answer states no limit
	stranger  bool           // the provider is not in the table
}

func (s *saying) json() explained {
	v := explained{From: s.from, Status: s.answer.Status, Assumed: !s.answer.Said, Host: s.answer.Host, ToldBy: s.who.by,
		Others: s.who.others, At: s.now.UTC(), Advice: s.advice(), Observation: s.o,
		Published: s.published}
	if at, ok := s.o.ComeBack(s.now); ok {
		at = at.UTC()
		seconds := at.Sub(s.now).Seconds()
		v.ComeBack, v.ComeBackSeconds = &at, &seconds
	}
	return v
}

// banned reports whether the body speaks of a ban, in an answer that no row of the table explains.
func (s *saying) banned() bool {
	return s.o.Refusal == provider.None && s.answer.Status >= http.StatusBadRequest &&
		provider.SaysBanned(provider.Message(s.answer.Body))
}

// advice says when to come back.
func (s *saying) advice() string {
	if !s.banned() {
		return classify.Advice(s.now, s.answer.Status, s.o)
	}
	const stop = "It is a ban, by its words: stop using this key or address, since more requests may make it longer. "
	keyOut := provider.SaysKeyOut(provider.Message(s.answer.Body))
	switch status := s.answer.Status; {
	case status == http.StatusUnauthorized || status == http.StatusTeapot || status == http.StatusForbidden && keyOut:
		return stop + "paceline run takes such a key of --key-env out of use."
	case !s.answer.Said:
		return stop + "The flag --ban-status of paceline run, such as 401,403, takes such a key out of use."
	default:
		return fmt.Sprintf("%sWith --ban-status 401,%d, paceline run takes such a key of --key-env out of use.",
			stop, status)
	}
}

// words is the output in text.
func (s *saying) words() string {
	var b strings.Builder
	o, now, status := s.o, s.now, s.answer.Status
	assumed := ""
	if s.answer.Bare && !s.answer.Said {
		assumed = " (assumed)"
	}
	fmt.Fprintf(&b, "%d %s%s, read as %s at %s\n", status, cmp.Or(http.StatusText(status), "(no status of RFC 9110)"),
		assumed, o.Dialect, now.UTC().Format("2006-01-02 15:04:05 MST"))
	if o.Refusal != provider.None {
		fmt.Fprintf(&b, "Refused: %s", o.Refusal)
		if len(o.RefusedBy) > 0 {
			fmt.Fprintf(&b, ", by %s", strings.Join(o.RefusedBy, ", "))
		}
		b.WriteString("\n")
	}
	if o.Partly {
		fmt.Fprintf(&b, "Served in part: %v. Send all of it again only if it does nothing but read.\n", o.Parts)
	}
	if message := provider.Message(s.answer.Body); message != "" && status >= http.StatusBadRequest {
		const most = 300
		if r := []rune(message); len(r) > most {
			message = string(r[:most]) + "…"
		}
		fmt.Fprintf(&b, "It says: %s\n", text.Sanitize(message))
	}
	b.WriteString("\n")
	if len(o.Policies)+len(o.Limits) == 0 {
		b.WriteString("  The response says nothing of limits.\n")
	}
	seen := make([]bool, len(o.Limits))
	for _, p := range o.Policies {
		fmt.Fprintf(&b, "  %s%s", classify.PolicyName(p.Name, p.Unit), classify.DescribePolicy(p))
		for i, l := range o.Limits {
			if l.Policy == p.Name && l.Unit == p.Unit && !seen[i] {
				seen[i] = true
				fmt.Fprintf(&b, ", %s", classify.DescribeLeft(now, l, p.Limit))
			}
		}
		b.WriteString("\n")
	}
	for i, l := range o.Limits {
		if !seen[i] {
			fmt.Fprintf(&b, "  %s%s: %s\n", classify.PolicyName(l.Policy, l.Unit), l.Unit, classify.DescribeLeft(now, l, 0))
		}
	}
	s.fromTheTable(&b)
	fmt.Fprintf(&b, "\n%s\n", s.advice())
	if s.who.by != "" {
		fmt.Fprintf(&b, "Note: that it is of %s is told by %s; if it is not, --provider NAME.\n", s.provider.Title, s.who.by)
	}
	if len(s.who.others) > 0 {
		fmt.Fprintf(&b, "Note: refusals of %s look the same.\n", strings.Join(s.who.others, ", "))
	}
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	for _, n := range o.Problems {
		fmt.Fprintf(&b, "Odd: %s.\n", n)
	}
	for _, n := range o.Unread {
		fmt.Fprintf(&b, "Not read: %s\n", n)
	}
	if s.stranger && !s.banned() { // a row would not help
		who := "This server"
		if s.answer.Host != "" {
			who = s.answer.Host
		}
		fmt.Fprintf(&b, "\n%s is not in the table, and is read as any server is.\n"+
			"If it is one that paceline explain --providers lists: --provider NAME.\n"+
			"To add it: a row in package provider, in the file of its kind, and an answer of its in provider/testdata; or a "+
			"provider.Dialect of your own, "+
			"as transport.Config.Provider.\n", who)
	}
	return b.String()
}

// fromTheTable writes the provider's published limits, if its answer states none.
func (s *saying) fromTheTable(b *strings.Builder) {
	p := s.provider
	if len(s.o.Policies) == 0 && p.Silent {
		fmt.Fprintf(b, "  %s documents its limits, and does not send them: %s (as of %s)\n", p.Title, p.Docs, p.AsOf)
	}
	if len(s.published) == 0 {
		return
	}
	b.WriteString("  From the table, and not from the response (an account may have others):\n")
	const most = 6
	for _, v := range s.published[:min(most, len(s.published))] {
		fmt.Fprintf(b, "    %s\n", v.words())
	}
	if more := len(s.published) - most; more > 0 {
		fmt.Fprintf(b, "    and %d more: paceline explain --provider %s\n", more, p.Name)
	}
}
