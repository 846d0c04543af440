package config

import (
	"cmp"
	"errors"
	"hash"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// reader reads a file. sum is a checksum of all that it has read.
type reader struct {
	*yamlfile.Reader
	source Source
	file   *File
	sum    hash.Hash
}

var aSize = form{"type": []string{"string", "integer"}, "pattern": `^[0-9]+ *(B|kB|MB|GB|KiB|MiB|GiB)?$`,
	"minimum": 1, "examples": []string{"64KiB", "16MiB"}}

func (r *reader) size(n *node, what string) int64 {
	v, err := text.ParseBytes(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.Refuse(n, "%s: %s is no size: want a whole number of bytes below 2 GiB such as 65536, 64KiB or 16MiB", what,
			yamlfile.Show(n))
	}
	return v
}

// large is a size of what is on a disk.
func (r *reader) large(n *node, what string) int64 {
	v, err := text.ParseDiskBytes(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.Refuse(n, "%s: %s is no size: want a whole number of bytes such as 500MB or 10GiB", what, yamlfile.Show(n))
	}
	return v
}

func (r *reader) sizeOrNone(n *node, what string) int64 {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return -1
	}
	return r.size(n, what)
}

func (r *reader) positive(n *node, what string) float64 {
	v := r.Number(n, what)
	if v <= 0 && r.Ok() {
		r.Refuse(n, "%s: %s is not above 0, want a number such as 0.5 or 2", what, yamlfile.Show(n))
	}
	return v
}

func (r *reader) part(n *node, what string) float64 {
	v, err := rate.ParsePart(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.Refuse(n, "%s: %s is no part of a whole: want %s", what, yamlfile.Show(n), rate.PartForms)
	}
	return v
}

func (r *reader) partOrZero(n *node, what string) float64 {
	if v := r.part(n, what); v != 0 {
		return v
	}
	return -1
}

// texts reads a list of texts.
func (r *reader) texts(n *node, what string) (all []string) {
	for item := range yamlfile.Items(r, n, what) {
		all = append(all, r.Text(item, what))
	}
	return all
}

func (r *reader) above(n *node, what string) time.Duration {
	d := r.Duration(n, what)
	if n.Kind == yaml.ScalarNode && d == 0 && strings.Trim(n.Value, "+0.smhdnuµμ") == "" && n.Value != "" {
		r.Refuse(n, "%s: %s is not above 0", what, yamlfile.Show(n))
	}
	return d
}

func (r *reader) spanOrZero(n *node, what string) time.Duration {
	if d := r.Duration(n, what); d != 0 {
		return d
	}
	return -1
}

func (r *reader) spanOrNone(n *node, what string) time.Duration {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return -1
	}
	return r.above(n, what)
}

// afterOrNever is the time of a target. No time is that of all others without one.
func (r *reader) afterOrNever(n *node, what string) time.Duration {
	if n.Kind == yaml.ScalarNode && n.Value == "never" {
		return proxy.Never
	}
	return r.Duration(n, what)
}

// models reads names of models, by their names in requests.
func (r *reader) models(n *node, what string) map[string]string {
	all := map[string]string{}
	for _, f := range r.templates(n, what, func(_, _ string) bool { return false }) {
		all[f.Name] = string(f.Value)
	}
	return all
}

func (r *reader) address(n *node, what string) *url.URL {
	text := r.Text(n, what)
	if text == "" {
		return &url.URL{}
	}
	u, err := secret.ParseAddress(text)
	if errors.Is(err, secret.ErrScheme) {
		r.Refuse(n, "%s: %q: %v", what, secret.SanitizeAddress(text), err)
		return &url.URL{}
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.Refuse(n, "%s: %q is no address of a server: want one such as https://api.example.com", what,
			secret.SanitizeAddress(text))
		return &url.URL{}
	}
	return u
}

func (r *reader) addresses(n *node, what string) (all []netip.Prefix) {
	for item := range yamlfile.Items(r, n, what) {
		text := item.Value
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
		p, err := netip.ParsePrefix(text)
		switch {
		case item.Kind != yaml.ScalarNode || err != nil:
			r.Refuse(item, "addresses: %s is no address: want one such as 192.0.2.7, or a range such as 10.1.0.0/16",
				yamlfile.Show(item))
		case p != p.Masked():
			r.Refuse(item, "addresses: %s is not the beginning of its range, which is %v", yamlfile.Show(item), p.Masked())
		default:
			all = append(all, p)
		}
	}
	return all
}

func (r *reader) modelNames(n *node, what string) (all []string) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Refuse(n, "models: none: want one such as gpt-4o, or no models, for all")
	}
	for item := range yamlfile.Items(r, n, what) {
		if item.Kind != yaml.ScalarNode || strings.TrimSpace(item.Value) == "" {
			r.Refuse(item, "models: %s is no name of a model: want one such as gpt-4o, or gpt-4o*", yamlfile.Show(item))
			continue
		}
		all = append(all, item.Value)
	}
	return all
}

// upstreamNames are those of a client. An empty list is one, since it would be refused as none.
func (r *reader) upstreamNames(n *node, what string) []string {
	return append([]string{}, r.texts(n, what)...)
}

// keyIn reads the places of clients' keys.
func (r *reader) keyIn(n *node, what string) *secret.Where {
	w, err := proxy.ParseKeyIn(r.texts(n, what))
	if err != nil {
		r.Refuse(n, "key_in: %v", err)
	}
	return w
}

// scopeNames are the scopes of limits in files.
var scopeNames = []string{"key", "all", "model", "resource", "route"}

var scopes = map[string]provider.Scope{"key": provider.Key, "all": provider.IP, "model": provider.Model,
	"resource": provider.Resource, "route": provider.Route}

var ruleNames = []string{"rolling", "bucket"}

var aRateOf = form{"type": "string", "pattern": `^\s*[$0-9]`,
	"examples": []string{"500/m", "200000 tokens/d", "5USD/d"}}

var aLimitOrAuto = form{"anyOf": []form{{"const": "auto"}, aRateOf, yamlfile.Object(limitFields)}}

var aLimit = form{"anyOf": []form{aRateOf, yamlfile.Object(limitFields)}}

// rate reads a limit with its unit.
func (r *reader) rate(n *node, what string) (l rate.Limit) {
	if n.Kind != yaml.ScalarNode {
		r.Refuse(n, "%s: %s is no limit: want one such as %s", what, yamlfile.Show(n), rate.CountedForms)
		return l
	}
	l, err := rate.ParseCounted(n.Value)
	if err != nil {
		r.Refuse(n, "%s: %v", what, err)
	}
	return l
}

func (r *reader) rates(n *node, what string) (all []rate.Limit) {
	for item := range yamlfile.Items(r, n, what) {
		l := r.rate(item, what)
		if slices.Contains(all, l) && r.Ok() {
			r.Refuse(item, "%s: %s is there already", what, yamlfile.Show(item))
		}
		all = append(all, l)
	}
	return all
}

// upstreamLimits reads none, auto, or a list, which may have auto beside limits.
func (r *reader) upstreamLimits(n *node, what string, u *proxy.Upstream) {
	if n.Kind == yaml.ScalarNode && (n.Value == "none" || n.Value == "auto") {
		u.Auto = n.Value == "auto"
		return
	}
	if n.Kind == yaml.ScalarNode {
		r.Refuse(n, "limits: %s is no list: want items that begin with \"- \", none or auto", yamlfile.Show(n))
		return
	}
	isAuto := func(item *node) bool { return item.Kind == yaml.ScalarNode && item.Value == "auto" }
	if n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, isAuto) {
		rest := *n
		rest.Content = slices.DeleteFunc(slices.Clone(n.Content), isAuto)
		n, u.Auto = &rest, true
	}
	u.Limits = r.targetLimits(n, what)
}

// targetLimits reads a list of limits.
func (r *reader) targetLimits(n *node, what string) (all []proxy.Limit) {
	for item := range yamlfile.Items(r, n, what) {
		var l proxy.Limit
		if item.Kind == yaml.MappingNode {
			yamlfile.Mapping(r, item, what, limitFields, &l)
			if burst := yamlfile.Member(item, "burst"); burst != nil && !l.Bucket {
				r.Refuse(burst, "burst: of a limit that is no bucket: want rule: bucket beside it")
			}
		} else {
			l.Limit = r.rate(item, what)
		}
		if slices.Contains(all, l) && r.Ok() {
			r.Refuse(item, "limits: this limit is there already")
		}
		all = append(all, l)
	}
	return all
}

// limit reads the rate of a limit. It keeps Bucket and Burst, which have keys of their own.
func (r *reader) limit(n *node, what string, l *proxy.Limit) {
	was := l.Limit
	l.Limit = r.rate(n, what)
	l.Bucket, l.Burst = was.Bucket, was.Burst
}

func (r *reader) scope(n *node, what string, l *proxy.Limit) {
	scope := scopes[r.OneOf(n, what, scopeNames)]
	if l.Only != "" && scope != l.Scope && scope != "" {
		r.Refuse(n, "scope: %s of a limit of one %s: want %s, or no scope", yamlfile.Show(n), l.Scope, l.Scope)
		return
	}
	l.Scope = scope
}

// only reads the one model, resource or route of a limit. That is its scope, too.
func (r *reader) only(n *node, key string, l *proxy.Limit) {
	text := r.Text(n, key)
	switch {
	case l.Only != "":
		r.Refuse(n, "%s: of a limit of one %s: want one of them", key, l.Scope)
	case l.Scope != "" && l.Scope != scopes[key]:
		r.Refuse(n, "%s: of a limit whose scope is not %s", key, key)
	default:
		l.Only, l.Scope = text, scopes[key]
	}
}

func (r *reader) isBucket(n *node, what string) bool { return r.OneOf(n, what, ruleNames) == "bucket" }

func countings() (names []string) {
	for c := tokens.Documented; ; c++ {
		if _, err := tokens.ParseCounting(c.String()); err != nil {
			return names
		}
		names = append(names, c.String())
	}
}

func (r *reader) counting(n *node, what string) tokens.Counting {
	c, _ := tokens.ParseCounting(cmp.Or(r.OneOf(n, what, countings()), "documented"))
	return c
}

func (r *reader) provider(n *node, what string) provider.Dialect {
	name := r.Text(n, what)
	d, ok := provider.Lookup(name)
	if !ok && name != "" {
		var names []string
		for _, p := range provider.Providers() {
			names = append(names, p.Name)
		}
		r.Refuse(n, "provider: %s is not in the table%s", yamlfile.Show(n),
			cmp.Or(text.DidYouMean(name, names), ": paceline explain --providers lists it"))
	}
	return d
}

// most is the largest size of a file with a secret or certificates, in bytes.
const most = 1 << 20

func (r *reader) read(n *node, what string) []byte {
	name := r.Text(n, what)
	if name == "" {
		return nil
	}
	if r.source.Open == nil {
		r.Refuse(n, "%s: %s: files cannot be opened here", what, yamlfile.Show(n))
		return nil
	}
	r.file.Names = append(r.file.Names, beside(r.source.Name, name))
	text, err := r.content(name)
	if err != nil {
		r.Refuse(n, "%s: %v", what, err)
	}
	_, _ = r.sum.Write(append([]byte(name), text...))
	return text
}
