package config

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/internal/text/rate"
)

type (
	node         = yaml.Node
	field[T any] = yamlfile.Field[*reader, T]
)

// Required keys.
var (
	configMust   = []string{"version", "upstreams"}
	upstreamMust = []string{"to"}
	clientMust   = []string{"name"}
	keyMust      = []string{"name"}
	priceMust    = []string{"input", "output"}
)

func configFields() []field[proxy.Config] {
	return []field[proxy.Config]{
		yamlfile.Key("version", "of this format", yamlfile.Form{"const": Version}, func(r *reader, n *node, _ *proxy.Config) {
			if n.Value != strconv.Itoa(Version) || n.Kind != yaml.ScalarNode {
				r.Refuse(n, "version: %s is not %d, the only one there is", yamlfile.Show(n), Version)
			}
		}),
		text("listen", "where clients connect, HOST:PORT (default 127.0.0.1:7878)",
			func(c *proxy.Config) *string { return &c.Listen }),
		text("admin", "where people and tools look, HOST:PORT on loopback (default 127.0.0.1:7879); off: nowhere",
			func(c *proxy.Config) *string { return &c.Admin }),
		yes("open", "anybody who reaches listen may send, without a key and from elsewhere than this machine",
			func(c *proxy.Config) *bool { return &c.Open }),
		yamlfile.Key("tls", "of listen; without it that is plain HTTP", yamlfile.Object(listenTLSFields()),
			func(r *reader, n *node, c *proxy.Config) { c.TLS = r.listenTLS(n) }),
		spanOrNone("max_wait",
			"the longest that a request waits; one that would wait longer is refused at once (default 60s); 0: nobody waits",
			"0", func(c *proxy.Config) *time.Duration { return &c.MaxWait }),
		span("grace", "how long those that wait may go on when the proxy stops (default 0)",
			func(c *proxy.Config) *time.Duration { return &c.Grace }),
		text("state", "a file for what was sent and still counts, so that a restart forgets no window",
			func(c *proxy.Config) *string { return &c.State }),
		yamlfile.Key("share", "limits are shared with other proxies, and runs, by a store", yamlfile.Object(storeFields()),
			func(r *reader, n *node, c *proxy.Config) {
				yamlfile.Mapping(r, n, "share", storeFields(), &c.Share)
			}),
		yamlfile.Key("bounds", "on what clients may take up", yamlfile.Object(boundsFields()),
			func(r *reader, n *node, c *proxy.Config) { yamlfile.Mapping(r, n, "bounds", boundsFields(), &c.Bounds) }),
		yamlfile.Key("clients", "who asks", yamlfile.Object(clientsFields()), func(r *reader, n *node, c *proxy.Config) {
			yamlfile.Mapping(r, n, "clients", clientsFields(), &c.Clients)
		}),
		yamlfile.Key("upstreams", "the servers that requests may go to",
			yamlfile.ListOf(yamlfile.Object(upstreamFields(), upstreamMust...)), func(r *reader, n *node, c *proxy.Config) {
				yamlfile.Sequence(r, n, "upstreams", upstreamFields(), &c.Upstreams)
			}),
	}
}

func storeFields() []field[proxy.ShareBy] {
	return []field[proxy.ShareBy]{
		yamlfile.Key("store", "sqlite:FILE on one machine, postgres://… or redis://…", yamlfile.AText,
			func(r *reader, n *node, s *proxy.ShareBy) { s.Store = proxy.Secret(r.Text(n, "store")) }),
		yamlfile.Key("env", "the variable of the environment that has the store, where that has a password in it",
			yamlfile.AText, func(r *reader, n *node, s *proxy.ShareBy) {
				value, ok := r.source.Env(r.Text(n, "env"))
				if !ok || value == "" {
					r.Refuse(n, "env: %s is not set, expected the address of a store in it", n.Value)
				}
				s.Store = proxy.Secret(value)
			}),
		text("name", "what the limits are called in the store: the same for all who share them (default: default)",
			func(s *proxy.ShareBy) *string { return &s.Name }),
		yamlfile.Key("fallback",
			"while the store is away: wait (the default), or split, which is not exact where only some are cut off",
			yamlfile.Form{"enum": []string{"wait", "split"}}, func(r *reader, n *node, s *proxy.ShareBy) {
				s.Fallback = r.OneOf(n, "fallback", []string{"wait", "split"})
			}),
		yamlfile.Key("weight",
			"this proxy's part of the limits where there is not enough for all who share: of weights 1 and 3 the second has "+
				"three quarters (default 1)", yamlfile.ANumber, func(r *reader, n *node, s *proxy.ShareBy) {
				s.Weight = r.positive(n, "weight")
			}),
		yamlfile.Key("least", "the part of the whole that it has at least then, 0 to 0.95, whatever the weights (default 0)", yamlfile.ANumber, func(r *reader, n *node, s *proxy.ShareBy) {
			s.Least = r.Number(n, "least")
		}),
	}
}

func boundsFields() []field[proxy.Bounds] {
	return []field[proxy.Bounds]{
		yamlfile.Key("header", "most bytes of a request's header (default 64KiB)", aSize,
			func(r *reader, n *node, b *proxy.Bounds) { b.Header = int(r.size(n, "header")) }),
		sizeOrNone("body", "most bytes of a request's body (default 1GiB); none: any",
			func(b *proxy.Bounds) *int64 { return &b.Body }),
		size("kept", "how much of a body is held in memory (default 32MiB)", func(b *proxy.Bounds) *int64 { return &b.Kept }),
		size("kept_in_all", "the same for all requests together (default 512MiB)",
			func(b *proxy.Bounds) *int64 { return &b.KeptInAll }),
		size("frozen", "how much what still counts of idle keys and clients may take; beyond it new ones get 429 (default "+
			"64MiB)", func(b *proxy.Bounds) *int64 { return &b.Frozen }),
		count("connections", "how many may be open (default 16384)", func(b *proxy.Bounds) *int { return &b.Connections }),
		above("header_timeout", "how long a request's header may take (default 10s)",
			func(b *proxy.Bounds) *time.Duration { return &b.HeaderTimeout }),
		above("idle_timeout", "how long a connection without a request stays open (default 2m)",
			func(b *proxy.Bounds) *time.Duration { return &b.IdleTimeout }),
		above("stall", "how long a client may take none of its answer, or send nothing of its body (default 1m)",
			func(b *proxy.Bounds) *time.Duration { return &b.Stall }),
	}
}

func clientsFields() []field[proxy.Clients] {
	return []field[proxy.Clients]{
		text("header", "the field of requests that names the client where it has no key",
			func(c *proxy.Clients) *string { return &c.Header }),
		yamlfile.Key("list", "clients that are known by name",
			yamlfile.ListOf(yamlfile.Object(clientFields(), clientMust...)), func(r *reader, n *node, c *proxy.Clients) {
				yamlfile.Sequence(r, n, "list", clientFields(), &c.List)
			}),
		yamlfile.Key("default", "what holds for each of the others", yamlfile.Object(shareFields()),
			func(r *reader, n *node, c *proxy.Clients) {
				yamlfile.Mapping(r, n, "default", shareFields(), &c.Default)
			}),
		count("most", "how many are told apart at a time that are not in the list; the others share one line (default: any "+
			"number)", func(c *proxy.Clients) *int { return &c.Most }),
	}
}

// shareFields are for clients in the list, and for all others.
func shareFields() []field[proxy.Client] {
	return []field[proxy.Client]{
		yamlfile.Key("weight", "its share among clients that want more than there is (default 1)", yamlfile.ANumber,
			func(r *reader, n *node, c *proxy.Client) { c.Weight = r.positive(n, "weight") }),
		span("head_start", "how much earlier its requests count as having come: interactive before batch (default 0)",
			func(c *proxy.Client) *time.Duration { return &c.HeadStart }),
		count("max_waiting", "how many of its requests may wait (default 10000)",
			func(c *proxy.Client) *int { return &c.MaxWaiting }),
		spanOrNone("max_wait", "the longest that one of its requests waits (default: that of all); 0: none waits", "0",
			func(c *proxy.Client) *time.Duration { return &c.MaxWait }),
		yamlfile.Key("limits", "its own, of what it asks of all upstreams together: requests, tokens or money",
			yamlfile.ListOf(aRateOf), func(r *reader, n *node, c *proxy.Client) { c.Limits = r.rates(n, "limits") }),
	}
}

func clientFields() []field[proxy.Client] {
	return append([]field[proxy.Client]{
		text("name", "what it is called in logs and on the page", func(c *proxy.Client) *string { return &c.Name }),
		yamlfile.Key("keys", "its keys for the proxy", yamlfile.ListOf(aClientKey()),
			func(r *reader, n *node, c *proxy.Client) { c.Keys = r.clientKeys(n) }),
		yamlfile.Key("addresses", "it has, if it is known by that",
			yamlfile.ListOf(yamlfile.Form{"type": "string", "examples": []string{"10.1.0.0/16", "192.0.2.7"}}),
			func(r *reader, n *node, c *proxy.Client) {
				c.Addresses = r.addresses(n)
			}),
	}, shareFields()...)
}

func upstreamFields() []field[proxy.Upstream] {
	return []field[proxy.Upstream]{
		yamlfile.Key("to", "where requests go: http or https, a host, and a path to put in front of theirs",
			yamlfile.Form{"type": "string", "pattern": "^https?://"}, func(r *reader, n *node, u *proxy.Upstream) {
				u.To = r.address(n, "to")
			}),
		text("name", "what it is called in logs and on the page (default: the host)",
			func(u *proxy.Upstream) *string { return &u.Name }),
		text("path", "the beginning of the paths that go there, which is taken away (default: all)",
			func(u *proxy.Upstream) *string { return &u.Path }),
		text("host", "the name by which clients reach it (default: any)", func(u *proxy.Upstream) *string { return &u.Host }),
		yes("h2c", "speak HTTP/2 without TLS, as gRPC servers without TLS want it",
			func(u *proxy.Upstream) *bool { return &u.H2C }),
		yamlfile.Key("tls", "of an https server, if the authorities of the system do not know it, or it wants a certificate", yamlfile.Object(upstreamTLSFields()), func(r *reader, n *node, u *proxy.Upstream) { u.TLS = r.upstreamTLS(n) }),
		text("preset", "published limits by name, such as openai:tier1",
			func(u *proxy.Upstream) *string { return &u.Preset }),
		yes("per_second", "limits per minute of the preset hold per second, too",
			func(u *proxy.Upstream) *bool { return &u.PerSecond }),
		yamlfile.Key("limits", "what the server allows; none: nothing is known but what it says; auto: it is found out",
			yamlfile.Form{"anyOf": []yamlfile.Form{{"enum": []string{"none", "auto"}}, yamlfile.ListOf(aLimit())}},
			func(r *reader, n *node, u *proxy.Upstream) { r.upstreamLimits(n, u) }),
		yes("rejects_free", "the server does not count what it refuses",
			func(u *proxy.Upstream) *bool { return &u.Arrivals.RejectsFree }),
		span("latency_max", "the longest that a request takes to the server, if that is sure",
			func(u *proxy.Upstream) *time.Duration { return &u.Arrivals.OneWayMax }),
		count("in_flight", "how many requests each key may have open (default: any number)",
			func(u *proxy.Upstream) *int { return &u.InFlight }),
		yes("tokens", "count what language models use also where no limit asks for that",
			func(u *proxy.Upstream) *bool { return &u.Tokens }),
		yamlfile.Key("count", "what the server counts of a request's tokens (default: as documented)",
			yamlfile.Form{"enum": countings()}, func(r *reader, n *node, u *proxy.Upstream) { u.Counting = r.counting(n) }),
		yamlfile.Key("prices",
			"of models, in USD per million tokens, for limits of money (default: as the provider has published them)",
			yamlfile.ListOf(yamlfile.Object(priceFields(), priceMust...)), func(r *reader, n *node, u *proxy.Upstream) {
				yamlfile.Sequence(r, n, "prices", priceFields(), &u.Prices)
			}),
		amount("request_price", "USD that each request costs, beside its tokens (default 0)",
			func(u *proxy.Upstream) *float64 { return &u.RequestPrice }),
		yamlfile.Key("provider",
			"whose words answers say limits in (default: that of the host or the preset, or as they look)", yamlfile.AText,
			func(r *reader, n *node, u *proxy.Upstream) { u.Provider = r.provider(n) }),
		yamlfile.Key("keys", "credentials to send with: a request goes with the one that may go soonest",
			yamlfile.ListOf(yamlfile.Object(keyFields(), keyMust...)),
			func(r *reader, n *node, u *proxy.Upstream) { u.Keys = r.keys(n) }),
		yamlfile.Key("header", "fields that are set on every request; {key} is filled in", aTemplates,
			func(r *reader, n *node, u *proxy.Upstream) { u.Header = r.templates(n, "header", privateField) }),
		yamlfile.Key("query", "parameters that are set on every request; {key} is filled in", aTemplates,
			func(r *reader, n *node, u *proxy.Upstream) { u.Query = r.templates(n, "query", privateParameter) }),
		count("attempts", "how often a request may be sent, the first time included (default 3)",
			func(u *proxy.Upstream) *int { return &u.Attempts }),
		above("backoff_base", "how long a request waits after its first attempt that failed (default 100ms)",
			func(u *proxy.Upstream) *time.Duration { return &u.Backoff.Base }),
		above("backoff_max", "how long it waits at most (default 30s)",
			func(u *proxy.Upstream) *time.Duration { return &u.Backoff.Max }),
		spanOrNone("answer_timeout",
			"how long an attempt may take until the header of its answer (default 10m); none: any time", "none",
			func(u *proxy.Upstream) *time.Duration { return &u.AnswerTimeout }),
		above("connect_timeout", "how long a connection may take, TLS included (default 10s)",
			func(u *proxy.Upstream) *time.Duration { return &u.ConnectTimeout }),
		spanOrNone("max_pause",
			"how long all stay away at most because of one answer (default 1h); none: as long as the server asks", "none",
			func(u *proxy.Upstream) *time.Duration { return &u.MaxPause }),
		spanOrNone("max_outage", "how long requests wait for a server where nothing arrives (default 10s); 0: nobody waits",
			"0", func(u *proxy.Upstream) *time.Duration { return &u.MaxOutage }),
		yes("forwarded", "tell the server who asked, in X-Forwarded-For, -Host and -Proto",
			func(u *proxy.Upstream) *bool { return &u.Forwarded }),
		yes("keep_host", "pass on the Host that the client asked for", func(u *proxy.Upstream) *bool { return &u.KeepHost }),
	}
}

// written is a secret in a file. Exactly one of env, file, secret and sha256 is set.
type written struct {
	name                      string
	env, file, secret, sha256 *node
	limits                    []rate.Limit
}

func keyFields() []field[written] {
	return append([]field[written]{
		yamlfile.Key("name", "what it is called in logs and on the page", yamlfile.AText,
			func(r *reader, n *node, w *written) { w.name = r.Text(n, "name") }),
		yamlfile.Key("limits", "this key's, in place of the upstream's of each key", yamlfile.ListOf(aRateOf),
			func(r *reader, n *node, w *written) { w.limits = r.rates(n, "limits") }),
	}, secretFields()...)
}

func secretFields() []field[written] {
	return []field[written]{
		yamlfile.Key("env", "the variable of the environment that has it", yamlfile.AText,
			func(_ *reader, n *node, w *written) { w.env = n }),
		yamlfile.Key("file", "the file that has it", yamlfile.AText, func(_ *reader, n *node, w *written) { w.file = n }),
		yamlfile.Key("secret", "itself, in a file that only its owner may read", yamlfile.AText,
			func(_ *reader, n *node, w *written) { w.secret = n }),
	}
}

func clientKeyFields() []field[written] {
	return append([]field[written]{
		yamlfile.Key("sha256", "its hash, as printf %s KEY | sha256sum prints it",
			yamlfile.Form{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
			func(_ *reader, n *node, w *written) { w.sha256 = n }),
	}, secretFields()...)
}

func priceFields() []field[proxy.Price] {
	return []field[proxy.Price]{
		text("model", "as requests name it (default: each that has no other price here)",
			func(p *proxy.Price) *string { return &p.Model }),
		amount("input", "USD per million tokens of input", func(p *proxy.Price) *float64 { return &p.Input }),
		amount("output", "USD per million tokens of output", func(p *proxy.Price) *float64 { return &p.Output }),
		amount("cached", "USD per million tokens of input that was read from a cache (default: as other input)",
			func(p *proxy.Price) *float64 { return &p.Cached }),
	}
}

func limitFields() []field[proxy.Limit] {
	return []field[proxy.Limit]{
		yamlfile.Key("limit", "how much in what time, such as 500/m or 200000 tokens/d", yamlfile.ARate,
			func(r *reader, n *node, l *proxy.Limit) { r.limit(n, l) }),
		yamlfile.Key("scope", "who shares it: each key (the default), all requests, each model or each route of a key",
			yamlfile.Form{"enum": scopeNames}, func(r *reader, n *node, l *proxy.Limit) { r.scope(n, l) }),
		yamlfile.Key("model", "the one model that it is for", yamlfile.AText,
			func(r *reader, n *node, l *proxy.Limit) { r.only(n, "model", l) }),
		yamlfile.Key("route", "the one route that it is for, such as GET /users/*", yamlfile.AText,
			func(r *reader, n *node, l *proxy.Limit) { r.only(n, "route", l) }),
		yamlfile.Key("rule", "how the server counts: no span of the time holds more (rolling, the default), or a bucket "+
			"that is refilled evenly", yamlfile.Form{"enum": ruleNames}, func(r *reader, n *node, l *proxy.Limit) {
			l.Bucket = r.OneOf(n, "rule", ruleNames) == "bucket"
		}),
		yamlfile.Key("burst", "what the bucket holds (default: as much as is refilled in its time)", yamlfile.ACount,
			func(r *reader, n *node, l *proxy.Limit) { l.Burst = int64(r.Count(n, "burst")) }),
	}
}

func listenTLSFields() []field[tlsFiles] {
	return []field[tlsFiles]{
		yamlfile.Key("cert", "file of the certificate, with those between it and its authority", yamlfile.AText,
			func(_ *reader, n *node, t *tlsFiles) { t.cert = n }),
		yamlfile.Key("key", "file of its key", yamlfile.AText, func(_ *reader, n *node, t *tlsFiles) { t.key = n }),
		yamlfile.Key("client_ca", "file of authorities: clients need a certificate of one of them", yamlfile.AText,
			func(_ *reader, n *node, t *tlsFiles) { t.ca = n }),
	}
}

func upstreamTLSFields() []field[tlsFiles] {
	return []field[tlsFiles]{
		yamlfile.Key("ca", "file of authorities to trust, in place of the system's", yamlfile.AText,
			func(_ *reader, n *node, t *tlsFiles) { t.ca = n }),
		yamlfile.Key("cert", "file of a certificate for us", yamlfile.AText,
			func(_ *reader, n *node, t *tlsFiles) { t.cert = n }),
		yamlfile.Key("key", "file of its key", yamlfile.AText, func(_ *reader, n *node, t *tlsFiles) { t.key = n }),
		yamlfile.Key("server_name", "the name that the server's certificate has (default: the host)", yamlfile.AText,
			func(r *reader, n *node, t *tlsFiles) { t.serverName = r.Text(n, "server_name") }),
	}
}

func text[T any](key, about string, of func(*T) *string) field[T] {
	return yamlfile.Key(key, about, yamlfile.AText, func(r *reader, n *node, to *T) { *of(to) = r.Text(n, key) })
}

func yes[T any](key, about string, of func(*T) *bool) field[T] {
	return yamlfile.Key(key, about, yamlfile.ASwitch, func(r *reader, n *node, to *T) { *of(to) = r.Yes(n, key) })
}

func count[T any](key, about string, of func(*T) *int) field[T] {
	return yamlfile.Key(key, about, yamlfile.ACount, func(r *reader, n *node, to *T) { *of(to) = r.Count(n, key) })
}

func amount[T any](key, about string, of func(*T) *float64) field[T] {
	return yamlfile.Key(key, about, yamlfile.Form{"type": "number", "minimum": 0},
		func(r *reader, n *node, to *T) { *of(to) = r.Number(n, key) })
}

func span[T any](key, about string, of func(*T) *time.Duration) field[T] {
	return yamlfile.Key(key, about, yamlfile.ASpan, func(r *reader, n *node, to *T) { *of(to) = r.Duration(n, key) })
}

// above is a span of more than 0: in proxy.Config 0 stands for the default.
func above[T any](key, about string, of func(*T) *time.Duration) field[T] {
	return yamlfile.Key(key, about, yamlfile.ASpan, func(r *reader, n *node, to *T) { *of(to) = r.above(n, key) })
}

// spanOrNone is a span that the word turns off: it is then negative in proxy.Config. With the word
// 0, every zero span is turned off.
func spanOrNone[T any](key, about, word string, of func(*T) *time.Duration) field[T] {
	form := yamlfile.ASpan
	if word != "0" {
		form = yamlfile.Form{"anyOf": []yamlfile.Form{{"const": word}, yamlfile.ASpan}}
	}
	return yamlfile.Key(key, about, form, func(r *reader, n *node, to *T) {
		if n.Kind == yaml.ScalarNode && n.Value == word {
			*of(to) = -1
			return
		}
		if word == "0" {
			if *of(to) = r.Duration(n, key); *of(to) == 0 { // 0s
				*of(to) = -1
			}
			return
		}
		*of(to) = r.above(n, key)
	})
}

func size[T any](key, about string, of func(*T) *int64) field[T] {
	return yamlfile.Key(key, about, aSize, func(r *reader, n *node, to *T) { *of(to) = r.size(n, key) })
}

func sizeOrNone[T any](key, about string, of func(*T) *int64) field[T] {
	return yamlfile.Key(key, about, yamlfile.Form{"anyOf": []yamlfile.Form{{"const": "none"}, aSize}},
		func(r *reader, n *node, to *T) {
			if n.Kind == yaml.ScalarNode && n.Value == "none" {
				*of(to) = -1
				return
			}
			*of(to) = r.size(n, key)
		})
}
