package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/provider"
)

// saved calls each with every answer that is kept, by the name of its file.
func saved(t *testing.T, each func(name string, d provider.Dialect, s corpus.Saved)) {
	t.Helper()
	for _, dialect := range provider.Names() {
		d, _ := provider.Lookup(dialect)
		for _, s := range corpus.Load(t, "testdata", dialect) {
			each(strings.TrimPrefix(s.Name, "testdata/"), d, s)
		}
	}
}

// TestOtherStatuses reads each kept answer with another status. Some servers refuse with 200, and
// others send refusals with the status of their gateway. After a change: -update, and read the
// difference beside the page.
func TestOtherStatuses(t *testing.T) {
	var b strings.Builder
	saved(t, func(name string, d provider.Dialect, s corpus.Saved) {
		before := ""
		fmt.Fprintf(&b, "%s\n", name)
		for _, status := range []int{200, 400, 402, 403, 404, 418, 423, 429, 430, 500, 503} {
			r := s.Response
			r.Status = status
			o := d.Read(s.Now, r)
			check(t, name, s.Now, o)
			now := refusal(&o)
			if at, ok := o.ComeBack(s.Now); ok {
				now += fmt.Sprintf(", again in %v", at.Sub(s.Now))
			}
			if who := provider.Detect(r).Name(); who != d.Name() {
				now += ", taken for " + who
			}
			if now != before {
				fmt.Fprintf(&b, "  %d %s\n", status, now)
			}
			before = now
		}
	})
	golden.Compare(t, "statuses.txt", b.String())
}

func refusal(o *provider.Observation) string {
	text := "served"
	if o.Refusal != provider.None {
		text = string(o.Refusal)
	}
	if o.Sure {
		text += ", surely"
	}
	if len(o.RefusedBy) > 0 {
		text += fmt.Sprintf(" by %q", o.RefusedBy)
	}
	return text
}

var aNumber = regexp.MustCompile(`\d+(\.\d+)?`)

// TestOddFields reads each field of a provider with nothing, more than any limit, a fraction, or no
// number, while the others stay. Nothing is left of an overdrawn limit, no wait is below nothing,
// and an unreadable value is a problem. After a change: -update, and read the difference.
func TestOddFields(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	saved(t, func(name string, d provider.Dialect, s corpus.Saved) {
		was := strings.SplitAfter(reading(d.Read(s.Now, s.Response), s), "\n")
		for _, field := range slices.Sorted(maps.Keys(s.Response.Header)) {
			if key := d.Name() + " " + field; seen[key] || field == "Date" || field == "Link" {
				continue
			} else if seen[key] = true; !aNumber.MatchString(s.Response.Header.Get(field)) {
				continue
			}
			value := s.Response.Header.Get(field)
			odd := []string{aNumber.ReplaceAllString(value, "0"), aNumber.ReplaceAllString(value, "99999999"), aNumber.ReplaceAllString(value, "soon")}
			if one := aNumber.FindStringIndex(value); aNumber.MatchString(value[one[1]:]) {
				odd = append(odd, value[:one[0]]+"99999999"+value[one[1]:])
			}
			for _, value := range odd {
				r := s.Response
				r.Header = r.Header.Clone()
				r.Header.Set(field, value)
				o := d.Read(s.Now, r)
				check(t, name, s.Now, o)
				now := strings.SplitAfter(reading(o, s), "\n")
				if slices.Equal(now, was) {
					continue
				}
				fmt.Fprintf(&b, "%s %s: %s\n", name, field, value)
				for _, line := range now {
					if !slices.Contains(was, line) {
						b.WriteString("  " + line)
					}
				}
			}
		}
	})
	golden.Compare(t, "odd.txt", b.String())
}

// reading is what an answer says, a line for each thing.
func reading(o provider.Observation, s corpus.Saved) string {
	var b strings.Builder
	for _, p := range o.Policies {
		fmt.Fprintf(&b, "%q: %d %s per %v\n", p.Name, p.Limit, p.Unit, p.Window)
	}
	for _, l := range o.Limits {
		fmt.Fprintf(&b, "%q: %v left and %v used of %s", l.Policy, l.Remaining, l.Used, l.Unit)
		if !l.Reset.IsZero() {
			fmt.Fprintf(&b, ", again in %v", l.Reset.Sub(s.Now))
		}
		if !l.Next.IsZero() {
			fmt.Fprintf(&b, ", the next in %v", l.Next.Sub(s.Now))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s, wait %v, worked %v\n", refusal(&o), o.RetryAfter, o.Worked)
	for _, text := range o.Problems {
		fmt.Fprintf(&b, "%s\n", text)
	}
	return b.String()
}

// TestWhoSendsAField detects a provider by each field of a kept answer alone, or with one other of
// that answer. Fields that detect none are left out. After a change: -update, and read the
// difference.
func TestWhoSendsAField(t *testing.T) {
	tells := map[string]string{}
	who := func(h http.Header, names ...string) string {
		some := http.Header{}
		for _, n := range names {
			some[n] = h[n]
		}
		return provider.Detect(provider.Response{Status: 200, Header: some}).Name()
	}
	saved(t, func(_ string, _ provider.Dialect, s corpus.Saved) {
		h := s.Response.Header
		names := slices.Sorted(maps.Keys(h))
		alone := map[string]string{}
		for _, a := range names {
			if alone[a] = who(h, a); alone[a] != "generic" {
				tells[a] = alone[a]
			}
		}
		for i, a := range names {
			for _, b := range names[:i] {
				if it := who(h, a, b); it != "generic" && it != alone[a] && it != alone[b] {
					tells[b+" and "+a] = it
				}
			}
		}
	})
	var b strings.Builder
	for _, a := range slices.Sorted(maps.Keys(tells)) {
		fmt.Fprintf(&b, "%s: %s\n", a, tells[a])
	}
	golden.Compare(t, "tells.txt", b.String())
}

// TestSpeaksOfWhatIsRead: a statement of one field of an unknown server is never ignored for its
// name.
func TestSpeaksOfWhatIsRead(t *testing.T) {
	silent := 0
	saved(t, func(name string, _ provider.Dialect, s corpus.Saved) {
		for field, values := range s.Response.Header {
			r := provider.Response{Status: 200, Header: http.Header{field: values}}
			o := provider.Detect(r).Read(s.Now, r)
			says := len(o.Limits) > 0 || o.RetryAfter > 0
			for _, p := range o.Policies {
				says = says || p.Source == provider.Stated
			}
			switch speaks := provider.Speaks(r.Header); {
			case says && !speaks:
				t.Errorf("%s: %s says %+v", name, field, o)
			case !speaks:
				silent++
			}
		}
	})
	if silent == 0 {
		t.Error("every field is taken for one of limits")
	}
}
