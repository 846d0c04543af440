package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/internal/text/table"
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
	Row    string         `json:"row,omitempty"`
	Source string         `json:"source,omitempty"`
	AsOf   string         `json:"as_of,omitempty"`
	Limits []publishedRow `json:"limits"`
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
	return v.write(e, p)
}

// charged finds the charge of a request, and those of the published limits in which it counts.
func charged(r *http.Request, p provider.Provider, published []provider.Preset, now time.Time) chargedRoute {
	v := chargedRoute{Route: r.Method + " " + r.URL.RequestURI(), Provider: p.Name, Cost: map[string]int64{string(provider.Requests): 1}}
	charge, resource := provider.ChargesOf(p.Name).Of(r)
	cost := map[provider.Unit]int64{}
	if charge != nil {
		cost, v.Resource, v.Row, v.Source, v.AsOf = charge.Cost, resource, charge.On, charge.Source, charge.AsOf
	}
	for unit, n := range cost {
		v.Cost[string(unit)] = n
	}
	byCost := []provider.Unit{provider.Weight, provider.Orders}
	v.Limits = []publishedRow{}
	for _, preset := range published {
		preset.Policies = slices.DeleteFunc(slices.Clone(preset.Policies), func(l provider.Policy) bool {
			return !l.Covers(resource) || slices.Contains(byCost, l.Unit) && cost[l.Unit] == 0
		})
		if len(preset.Policies) > 0 {
			v.Limits = append(v.Limits, publishedOf(provider.Provider{Published: []provider.Preset{preset}}, now)...)
		}
	}
	return v
}

func (v *chargedRoute) write(e *explanation, p provider.Provider) error {
	var t table.Table
	line := func(what, text string) { t.Row(what, sanitize.Text(text)) }
	line("request", v.Route+", to "+p.Title)
	line("costs", costWords(v.Cost))
	line("of", cmp.Or(v.Resource, "the key; no resource of its own"))
	if v.Row != "" {
		line("by the row", v.Row)
		line("documented", fmt.Sprintf("%s (as of %s)", v.Source, v.AsOf))
	} else {
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
		line(what, "no published limit")
	}
	return t.Write(e.out, table.Width)
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
		words = append(words, humanize.Thousands(cost[unit])+" "+word)
	}
	return strings.Join(words, ", ")
}
