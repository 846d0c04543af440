package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/provider"
)

// TestFieldsAlone reads each header field of a provider alone, with the value 7. It leaves out
// fields that mean the same for any server. Few published answers have them all, so a wrong unit,
// window or scope shows nowhere else. After a change: -update, and read the difference beside the
// page.
func TestFieldsAlone(t *testing.T) {
	generic, _ := provider.Lookup("generic")
	var b strings.Builder
	for _, p := range append(provider.Providers(), provider.Provider{Name: "generic"}) {
		d, ok := provider.Lookup(p.Name)
		if !ok {
			continue // it has a row for its figures, and no answers
		}
		fmt.Fprintf(&b, "%s\n", p.Name)
		for _, f := range provider.Fields(p.Name) {
			if says := alone(t, d, f); !strings.Contains(f, "*") && (d == generic || says != alone(t, generic, f)) {
				fmt.Fprintf(&b, "\t%s: 7\n%s", f, says)
			}
		}
	}
	golden.Compare(t, "alone.txt", b.String())
}

// alone is what d reads out of one header field, a line for each thing.
func alone(t *testing.T, d provider.Dialect, field string) string {
	t.Helper()
	o := read(t, d.Name(), noon, respond(200, "", field+": 7"))
	var b strings.Builder
	for _, p := range o.Policies {
		fmt.Fprintf(&b, "\t\t%q: %d %s, %d at once, per %v (%s) of the %s, %s, %s\n", p.Name, p.Limit, p.Unit, p.Burst, p.Window, p.WindowSource, p.Scope, p.Rule, p.Source)
	}
	for _, l := range o.Limits {
		fmt.Fprintf(&b, "\t\t%q: %v left and %v used of %s of the %s", l.Policy, l.Remaining, l.Used, l.Unit, l.Scope)
		if !l.Reset.IsZero() {
			fmt.Fprintf(&b, ", again in %v, whole %v", l.Reset.Sub(noon), l.Whole)
		}
		b.WriteString("\n")
	}
	if o.RetryAfter > 0 || o.Worked > 0 {
		fmt.Fprintf(&b, "\t\tretry after %v, worked %v\n", o.RetryAfter, o.Worked)
	}
	for _, s := range slices.Concat(o.Notes, o.Problems) {
		fmt.Fprintf(&b, "\t\t%s\n", s)
	}
	return b.String()
}

// TestNoResetIsAnInstantAway: a number too small for an instant is how long from now, in seconds or, of a few providers, milliseconds.
// So a reset of 30 is never taken for one that is over.
func TestNoResetIsAnInstantAway(t *testing.T) {
	read := 0
	for _, name := range provider.Names() {
		d, _ := provider.Lookup(name)
		for _, s := range corpus.Load(t, "testdata", name) {
			for field := range s.Response.Header {
				if !strings.Contains(strings.ToLower(field), "reset") {
					continue
				}
				r := s.Response
				r.Header = r.Header.Clone()
				r.Header.Set(field, "30")
				for _, l := range d.Read(s.Now, r).Limits {
					if after := l.Reset.Sub(s.Now); after > 0 && after < time.Microsecond {
						t.Errorf("%s, with %s of 30: %s is there again after %v", s.Name, field, l.Policy, after)
					}
					read++
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d resets were read", read)
	}
}

// TestProvidersAreTheCallers: a caller may change its copy, and the table stays as it is.
func TestProvidersAreTheCallers(t *testing.T) {
	text := func(name string) string {
		p, ok := provider.LookupProvider(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, p := range provider.Providers() {
		before := text(p.Name)
		clear(p.Hosts)
		clear(p.Refusers)
		clear(p.Shares)
		clear(p.Models)
		for _, v := range p.Published {
			clear(v.Policies)
		}
		clear(p.Published)
		if p.Batch != nil {
			*p.Batch = provider.BatchAPI{}
		}
		if after := text(p.Name); after != before {
			t.Errorf("%s was\n%s, and is now\n%s", p.Name, before, after)
		}
	}
}

// TestProblemsAreNamed: an unreadable value is ignored, and its problem names the field.
func TestProblemsAreNamed(t *testing.T) {
	for _, c := range []struct {
		dialect, field string
		policies       int
	}{
		{"ietf", "RateLimit: limit=-5, remaining=3", 0},
		{"ietf", "RateLimit: limit=5, remaining=-3", 1},
		{"ietf", `RateLimit-Policy: "a";q=-5;w=60`, 0},
		{"ietf", `RateLimit-Policy: "a";q=0;w=60`, 0},
		{"ietf", `RateLimit-Policy: "a";w=60`, 0},
		{"ietf", `RateLimit-Policy: 2.5;w=60, "b";q=9;w=60`, 1},
		{"ietf", `RateLimit-Policy: ("a" "b");q=5;w=60, "b";q=9;w=60`, 1},
		{"ietf", `RateLimit-Policy: "a";q=5;w=0`, 1},
		{"ietf", `RateLimit-Policy: "a";q=5;w=-60`, 1},
		{"generic", "X-RateLimit-Limit: 0", 0},
		{"generic", "X-RateLimit-Limit: -7", 0},
		{"generic", "X-RateLimit-Limit: plenty", 0},
		{"generic", "X-RateLimit-Reset: soon", 0},
		{"generic", "Retry-After: soon", 0},
		{"salesforce", "Sforce-Limit-Info: api-usage", 0},
	} {
		o := read(t, c.dialect, noon, respond(200, "", c.field))
		name, _, _ := strings.Cut(c.field, ":")
		if len(o.Problems) != 1 || !strings.HasPrefix(o.Problems[0], name) || len(o.Policies) != c.policies {
			t.Errorf("%s: %q: problems %q, policies %+v", c.dialect, c.field, o.Problems, o.Policies)
		}
	}
}

// TestWindowOfASecond: the shortest window that the draft can state is read as any other.
func TestWindowOfASecond(t *testing.T) {
	o := read(t, "ietf", noon, respond(200, "", `RateLimit-Policy: "a";q=5;w=1`))
	if len(o.Problems) != 0 || len(o.Policies) != 1 || o.Policies[0].Window != time.Second {
		t.Errorf("problems %q, policies %+v", o.Problems, o.Policies)
	}
}

// TestUsedOfNothing: for an unknown limit, the used amount does not mean that nothing is left.
func TestUsedOfNothing(t *testing.T) {
	for _, field := range []string{"Sforce-Limit-Info: api-usage=18/0", "Sforce-Limit-Info: api-usage=18/-1"} {
		for _, l := range read(t, "salesforce", noon, respond(200, "", field)).Limits {
			if l.Remaining.OK || l.Used != (provider.Count{N: 18, OK: true}) {
				t.Errorf("%s: %+v", field, l)
			}
		}
	}
}
