package format

import (
	"strings"
	"testing"
)

// The forms of a template, and the values in it.
func TestParsedTemplates(t *testing.T) {
	for line, want := range map[string]string{
		"A: {key}-{token}-{nonce}-{id}-{attempt}-{row.a b}-{{key}}": `A=k-t-7-i-3-<a b>-{k}`,
		" a :  x{y ": "a=x{y", "A:": "A=", "A: {}": "A={}", "A: {KEY}": "A={KEY}",
		"A: {secret}": `"A: {secret}": unknown {secret}, expected {key}, {token}, {nonce}, {id}, {attempt} or {row.COLUMN}`,
		"A b: c":      `"A b: c": "A b" is no header name, expected "Name: value"`,
		"A":           `"A", expected "Name: value"`,
		"A: \x01":     `"A: \x01": the value has a control character, expected "Name: value"`,
		"host: x":     "",

		"content-length: 3": `"content-length: 3": the header Content-Length is set by paceline itself, expected "Name: value"`,
	} {
		all, err := ParseHeaders([]string{line})
		if err != nil {
			if err.Error() != want {
				t.Errorf("%q: %v, expected %s", line, err, want)
			}
			continue
		}
		v := &Values{Key: "k", Token: "t", Nonce: 7, ID: "i", Attempt: 3, Cells: func(column string) string { return "<" + column + ">" }}
		if got := all[0].Name() + "=" + all[0].Fill(v); got != want && want != "" {
			t.Errorf("%q: %q, expected %q", line, got, want)
		}
		v.IsShown = true
		if got := all[0].Fill(v); strings.Contains(line, "{nonce}") != strings.Contains(got, "{nonce}") {
			t.Errorf("%q is shown as %q", line, got)
		}
	}
	for line, want := range map[string]string{
		"a=b=c": "", "a=1&b=2": `"a=1&b=2": a second parameter needs a --query of its own, expected "name=value"`, "=b": `"=b": the name is empty, expected "name=value"`, "a": `"a", expected "name=value"`,
	} {
		all, err := ParseQuery([]string{line})
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%q: %s, expected %s", line, got, want)
			}
		} else if want != "" || all[0].Name() != "a" || all[0].Fill(&Values{}) != "b=c" {
			t.Errorf("%q: %+v, expected %s", line, all, want)
		}
	}
	all, err := ParseHeaders([]string{"A: {row.x}{row.y}{id}", "B: {row.x}{nonce}", "C: c"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Columns(all...), " "); got != "x y" {
		t.Errorf("columns %q", got)
	}
	for word, want := range map[string]bool{"id": true, "nonce": true, "key": false, "c": false, "C: c": false} {
		if Uses(all, word) != want {
			t.Errorf("%s is used: %v", word, !want)
		}
	}
	if _, err := ParseDead("outage,none"); err == nil || err.Error() != `"none", expected all, or some of outage, failed, limited, nonce, expired, refused, invalid, redirect, held, model, loop, partly, length, unselected` {
		t.Error(err)
	}
	if _, err := ParseDead(""); err == nil {
		t.Error("the empty set is taken")
	}
}
