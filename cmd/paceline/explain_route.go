package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
)

// chargedRoute is what a request costs, in JSON. Later versions only add fields.
type chargedRoute struct {
	Route    string           `json:"route"`
	Provider string           `json:"provider"`
	Cost     map[string]int64 `json:"cost"`
	// Resource is missing if the request counts in none but the key's quota.
	Resource string `json:"resource,omitempty"`
	// Row is the row of the table that fits, with its source. It is missing if none does.
	Row    string `json:"row,omitempty"`
	Source string `json:"source,omitempty"`
	AsOf   string `json:"as_of,omitempty"`
	// Body and Answer are expressions, by unit.
	Body   map[string]string `json:"body,omitempty"`
	Answer map[string]string `json:"answer,omitempty"`
	Limits []publishedRow    `json:"limits"`
	// First means that the request goes before others of its client. A proxy file alone says so. Otherwise Leaves
	// is the part of each limit that it leaves for such requests.
	First  bool    `json:"-"`
	Leaves float64 `json:"-"`
}

// routeOf reads "GET /path?query", or a URL in place of the path.
func routeOf(s string) (*http.Request, error) {
	method, target, ok := strings.Cut(strings.TrimSpace(s), " ")
	u, err := url.Parse(strings.TrimSpace(target))
	if !ok || err != nil || method == "" || strings.ToUpper(method) != method || !strings.HasPrefix(u.Path, "/") {
		return nil, fmt.Errorf("--route %q: want a method and a path, such as 'GET /search/code?q=x'", s)
	}
	return &http.Request{Method: method, URL: u}, nil
}

// charge prints what the request of --route costs.
func (e *explanation) charge() error {
	r, err := routeOf(e.route)
	if err != nil {
		return err
	}
	p, _ := provider.LookupProvider(e.provider)
	published := p.Published
	if e.preset != "" {
		preset, _ := provider.LookupPreset(e.preset)
		p, _ = provider.Publisher(e.preset)
		published = []provider.Preset{preset}
	}
	v := charged(r, p, published, e.when(time.Time{}))
	if e.output == "json" {
		return e.encode(v)
	}
	return v.write(e.out, p.Title)
}

// chargeOf finds what a request costs by its charge; nil: none fits.
func chargeOf(r *http.Request, c *provider.Charge, resource string) chargedRoute {
	v := chargedRoute{Route: r.Method + " " + r.URL.RequestURI(), Limits: []publishedRow{}}
	v.Cost = map[string]int64{string(provider.Requests): 1}
	if c == nil {
		return v
	}
	v.Resource, v.Row, v.Source, v.AsOf = resource, c.On, c.Source, c.AsOf
	for unit, n := range c.Cost {
		v.Cost[string(unit)] = n
	}
	v.Body, v.Answer = expressions(c.Body), expressions(c.Answer)
	return v
}

// expressions are the texts of expressions, by unit; nil: there are none.
func expressions(all map[provider.Unit]provider.Expression) (texts map[string]string) {
	for unit, e := range all {
		if texts == nil {
			texts = map[string]string{}
		}
		texts[string(unit)] = fmt.Sprint(e)
	}
	return texts
}

// charged finds the charge of a request, and those of the published limits in which it counts.
func charged(r *http.Request, p provider.Provider, published []provider.Preset, now time.Time) chargedRoute {
	charge, resource := provider.ChargesOf(p.Name).Of(r)
	v := chargeOf(r, charge, resource)
	v.Provider = p.Name
	v.counts(published, now)
	return v
}

// counts finds the published limits in which the request counts.
func (v *chargedRoute) counts(published []provider.Preset, now time.Time) {
	byCost := []provider.Unit{provider.Weight, provider.Orders}
	for _, preset := range published {
		preset.Policies = slices.DeleteFunc(slices.Clone(preset.Policies), func(l provider.Policy) bool {
			return !l.Covers(v.Resource) || slices.Contains(byCost, l.Unit) && v.Cost[string(l.Unit)] == 0
		})
		if len(preset.Policies) > 0 {
			v.Limits = append(v.Limits, publishedOf(provider.Provider{Published: []provider.Preset{preset}}, now)...)
		}
	}
}

// write prints it. to is where the request goes.
func (v *chargedRoute) write(out io.Writer, to string) error {
	var t screen.Table
	line := func(what, said string) { t.Row(what, text.Sanitize(said)) }
	line("request", v.Route+", to "+to)
	line("costs", costWords(v.Cost))
	for _, unit := range slices.Sorted(maps.Keys(v.Body)) {
		line("", fmt.Sprintf("or, in %s, by the body: %s", unit, v.Body[unit]))
	}
	for _, unit := range slices.Sorted(maps.Keys(v.Answer)) {
		line("", fmt.Sprintf("in the end, in %s, by the answer: %s", unit, v.Answer[unit]))
	}
	line("of", cmp.Or(v.Resource, "the key; no resource of its own"))
	switch {
	case v.Row != "" && v.Source == "":
		line("by the row", v.Row+", of the configuration")
	case v.Row != "":
		line("by the row", v.Row)
		line("documented", fmt.Sprintf("%s (as of %s)", v.Source, v.AsOf))
	default:
		line("by the row", "none: no row of the table fits, so it is one request")
	}
	what := "counts in"
	for _, l := range v.Limits {
		for _, text := range l.Limits {
			line(what, l.Preset+": "+text)
			what = ""
		}
	}
	if len(v.Limits) == 0 {
		line(what, "no limit that is known")
	}
	switch {
	case v.First:
		line("goes", "first: before other requests of its client")
	case v.Leaves > 0:
		line("leaves", fmt.Sprintf("%g %% of each limit, for requests that go first", v.Leaves*100))
	}
	return t.Write(out, screen.TableWidth)
}

// costWords writes "1 request, 250 weight", requests first.
func costWords(cost map[string]int64) string {
	words := []string{"1 request"}
	for _, unit := range slices.Sorted(maps.Keys(cost)) {
		if unit == string(provider.Requests) {
			continue
		}
		word := unit
		if cost[unit] == 1 {
			word = strings.TrimSuffix(unit, "s")
		}
		words = append(words, text.Thousands(cost[unit])+" "+word)
	}
	return strings.Join(words, ", ")
}
