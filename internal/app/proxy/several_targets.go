package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// Never as the After of a Target: requests go there only where all targets before it are shut.
const Never = transport.Never

// mostTargets is what transport takes.
const mostTargets = 64

// Servers are the upstream itself or, with targets, each of them as an upstream.
func (u *Upstream) Servers() (all []*Upstream) {
	for i := range u.Targets {
		all = append(all, u.at(i))
	}
	if all == nil {
		return []*Upstream{u}
	}
	return all
}

// at returns a target as an upstream of its own.
func (u *Upstream) at(i int) *Upstream {
	g := &u.Targets[i]
	x := &Upstream{
		Name: g.Name, To: g.To, H2C: u.H2C, Preset: g.Preset, PerSecond: g.PerSecond, Limits: g.Limits, InFlight: g.InFlight,
		Provider: g.Provider, Counting: g.Counting, Arrivals: u.Arrivals, Prices: u.Prices, RequestPrice: u.RequestPrice,
		Keys: g.Keys, Header: g.fields(g.Header, u.Header, http.CanonicalHeaderKey),
		Query: g.fields(g.Query, u.Query, func(name string) string { return name }),
	}
	if x.Numbers() {
		x.NonceGap, x.NonceUnit = u.NonceGap, u.NonceUnit
	}
	return x
}

// fields are those of the target, and those of the upstream that it does not have. A target without
// keys, or with fields for its keys, takes none with a key. One without keys takes none with a nonce.
func (g *Target) fields(own, all []Field, canonical func(string) string) []Field {
	fields := slices.Clone(own)
	takes := len(g.Keys) > 0 && !slices.ContainsFunc(slices.Concat(g.Header, g.Query), Field.usesKey)
	for _, f := range all {
		same := func(o Field) bool { return canonical(o.Name) == canonical(f.Name) }
		if !slices.ContainsFunc(own, same) && (takes || !f.usesKey()) && (len(g.Keys) > 0 || !f.usesNonce()) {
			fields = append(fields, f)
		}
	}
	return fields
}

// targetOf returns the index of the target of a partition; -1: it has none.
func (u *Upstream) targetOf(p transport.Partition) int {
	return slices.IndexFunc(u.Targets, func(g Target) bool { return p.Target != "" && g.Name == p.Target })
}

// target returns a target in transport's form, without its limits.
func (u *Upstream) target(i int) transport.Target {
	g, x := &u.Targets[i], u.at(i)
	host := strings.ToLower(g.To.Host)
	if isStandard(g.To) {
		host = strings.TrimSuffix(host, ":"+portOf(g.To))
	}
	models := g.Models
	if strings.Contains(g.Path, modelWord) && models == nil {
		models = map[string]string{}
	}
	return transport.Target{
		Name: g.Name, Host: host, Preset: g.Preset, PerSecond: g.PerSecond, Provider: g.Provider, Counting: g.Counting,
		Models: models, After: g.After, Apply: func(r *http.Request, model string) {
			if l := leaveOf(r); l != nil {
				l.Target = g.Name
				return // with another scheme the request would be sent
			}
			g.lead(r.URL, model)
			x.dress(r)
		},
	}
}

// The words of the path of a target.
const (
	modelWord = "{model}"
	pathWord  = "{path}"
	restWord  = "{rest}"
)

// lead turns the URL of a request to the target.
func (g *Target) lead(at *url.URL, model string) {
	path, query, _ := strings.Cut(cmp.Or(g.Path, pathWord), "?")
	whole := at.EscapedPath()
	rest, ok := strings.CutPrefix(whole, "/v1")
	if !ok || rest != "" && rest[0] != '/' {
		rest = whole
	}
	folder := strings.TrimSuffix(g.To.EscapedPath(), "/")
	raw := folder + strings.NewReplacer(modelWord, url.PathEscape(model), pathWord, whole, restWord, rest).Replace(path)
	if plain, err := url.PathUnescape(raw); err == nil {
		at.Path, at.RawPath = plain, raw // Go ignores RawPath if it says the same as Path
	}
	at.Scheme = g.To.Scheme
	if set, err := url.ParseQuery(query); err == nil {
		var all []Field
		for name := range set {
			all = append(all, Field{Name: name, Value: Secret(set.Get(name))})
		}
		slices.SortFunc(all, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		at.RawQuery = setQuery(at.RawQuery, all, words{}, false)
	}
}

// prefix is how much of a prompt makes a session: some 1,000 tokens, with which caches of prompts begin.
const prefix = 4 << 10

// affinity is the affinity in transport's form.
func (u *Upstream) affinity() transport.Affinity {
	a := u.Affinity
	of := map[string]func(r *http.Request, body []byte) string{
		"": nil,
		AffinityByHeader: func(r *http.Request, _ []byte) string {
			return visitOf(r.Context()).in.Header.Get(a.Header) // as it came: the upstream may not get this field
		},
		AffinityByPrefix: func(_ *http.Request, body []byte) string { return string(tokens.Beginning(body, prefix)) },
	}
	session, ok := of[a.By]
	if !ok {
		session = func(_ *http.Request, body []byte) string {
			text, _ := tokens.TextIn(body, a.By)
			return text
		}
	}
	return transport.Affinity{Session: session, Hold: a.Hold}
}

// checkAffinity finds an affinity that has no effect.
func (u *Upstream) checkAffinity() *ConfigError {
	a := u.Affinity
	switch {
	case a == Affinity{}:
	case len(u.Targets) < 2:
		return wrong(".Affinity", "there are no targets to choose from, expected two at least")
	case a.By == "":
		return wrong(".Affinity.By", "it is empty, expected what the session of a request is")
	case a.By == AffinityByHeader && !send.IsFieldName(a.Header):
		return wrong(".Affinity.Header", "%q is no name of a header field", a.Header)
	case a.By != AffinityByHeader && a.Header != "":
		return wrong(".Affinity.Header", "it is beside by: %s, expected by: %s", a.By, AffinityByHeader)
	case a.Hold < 0:
		return wrong(".Affinity.Hold", "%v is negative", a.Hold)
	}
	return nil
}

// routeOfTargets identifies the targets, apart from their limits.
func (u *Upstream) routeOfTargets() KeyHash {
	var all strings.Builder
	fmt.Fprintln(&all, u.Affinity)
	for i, g := range u.Targets {
		x := u.at(i)
		r := x.route()
		fmt.Fprintf(&all, "%q %q %q %q %t %t %t %t %v %v %v %q %d\n", g.Name, g.To.String(), g.Path, r.preset, r.perSecond,
			r.limited, r.keyed, r.numbers, r.nonceGap, r.nonceUnit, g.Counting, x.Seller(), g.After)
		for _, asked := range slices.Sorted(maps.Keys(g.Models)) {
			fmt.Fprintf(&all, "%q %q\n", asked, g.Models[asked])
		}
		for _, f := range slices.Concat(x.Header, x.Query) {
			fmt.Fprintf(&all, "%q %q\n", f.Name, string(f.Value))
		}
	}
	return HashKey(all.String())
}

// checkTargets checks the targets of u, and fills in their defaults. To is then the server of the first,
// without a path.
func (u *Upstream) checkTargets(c *Config) *ConfigError {
	if err := u.checkAffinity(); err != nil || len(u.Targets) == 0 {
		return err
	}
	if err := u.checkNoTarget(); err != nil {
		return err
	}
	u.Targets = slices.Clone(u.Targets)
	names, keys, first := map[string]bool{}, map[string]string{}, ""
	for i := range u.Targets {
		g, at := &u.Targets[i], fmt.Sprintf(".Targets[%d]", i)
		x := u.at(i)
		if err := x.check(c); err != nil {
			err.Field = at + err.Field
			return err
		}
		g.Name, g.Limits = x.Name, x.Limits
		for _, k := range g.Keys {
			if who := keys[k.Name]; who != "" {
				return wrong(at+".Keys", "the target %s has a key %q, too; expected another name", who, k.Name)
			}
			keys[k.Name] = g.Name
		}
		if names[g.Name] {
			return wrong(at+".Name", "there are two targets %q", g.Name)
		}
		names[g.Name] = true
		if err := g.check(at); err != nil {
			return err
		}
		switch family := families[x.Seller()]; {
		case first == "":
			first = family
		case family != "" && family != first:
			return wrong(at, "%s speaks %s API, and a target before it %s: a request cannot go to both; expected an upstream "+
				"for each", g.Name, family, first)
		}
	}
	u.To = &url.URL{Scheme: u.Targets[0].To.Scheme, Host: u.Targets[0].To.Host}
	if len(u.Targets) > mostTargets {
		return wrong(".Targets", "there are %d, expected %d at most", len(u.Targets), mostTargets)
	}
	return nil
}

// checkNoTarget finds settings of an upstream that are those of its targets.
func (u *Upstream) checkNoTarget() *ConfigError {
	first := u.Targets[0].To
	own := u.To != nil && (first == nil || *u.To != url.URL{Scheme: first.Scheme, Host: first.Host}) // Checked sets it
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"To", own}, {"Preset", u.Preset != ""}, {"PerSecond", u.PerSecond}, {"Limits", len(u.Limits) > 0}, {"Auto", u.Auto},
		{"Strangers", u.Strangers}, {"InFlight", u.InFlight > 0}, {"Provider", u.Provider != nil},
		{"Counting", u.Counting != tokens.Documented}, {"Keys", len(u.Keys) > 0}, {"KeepHost", u.KeepHost},
	} {
		if f.set {
			return wrong("."+f.name, "it is beside targets, which have it of their own; expected it there")
		}
	}
	return nil
}

func (g *Target) check(at string) *ConfigError {
	path, query, _ := strings.Cut(g.Path, "?")
	words := strings.NewReplacer(modelWord, "", pathWord, "", restWord, "").Replace(path)
	switch {
	case g.After < 0:
		return wrong(at+".After", "%v is negative", g.After)
	case strings.ContainsAny(words, "{}#"):
		return wrong(at+".Path", "%q, expected a path with %s, %s or %s in it", g.Path, modelWord, pathWord, restWord)
	case g.Path != "" && !slices.ContainsFunc([]string{"/", pathWord, restWord}, func(begin string) bool {
		return strings.HasPrefix(path, begin)
	}):
		return wrong(at+".Path", "%q, expected it to begin with a slash, %s or %s", g.Path, pathWord, restWord)
	}
	if _, err := url.PathUnescape(words); err != nil {
		return wrong(at+".Path", "%q: %w", g.Path, err)
	}
	if _, err := url.ParseQuery(query); err != nil {
		return wrong(at+".Path", "%q: %w", g.Path, err)
	}
	for asked, name := range g.Models {
		if asked == "" || name == "" {
			return wrong(at+".Models", "%q is called %q there; expected names", asked, name)
		}
	}
	return nil
}

// families are whose API providers of language models speak.
var families = map[string]string{
	"anthropic": "Anthropic's", "gemini": "Gemini's", "vertex": "Gemini's", "bedrock": "Bedrock's", "cohere": "Cohere's",
	"ollama": "Ollama's",

	"openai": openAIs, "azure-openai": openAIs, "groq": openAIs, "mistral": openAIs, "cerebras": openAIs,
	"sambanova": openAIs, "together": openAIs, "fireworks": openAIs, "openrouter": openAIs, "xai": openAIs, "deepseek": openAIs,
	"perplexity": openAIs, "huggingface": openAIs,
}

const openAIs = "OpenAI's"
