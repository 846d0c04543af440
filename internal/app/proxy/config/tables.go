package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/pool/backoff"
)

type (
	node = yaml.Node
	form = yamlfile.Form
)

// Kinds of values. With the words 0 and none a value is -1 in proxy.Config, where 0 stands for the default.
var (
	aText, yes, count, span, itself = yamlfile.Text, yamlfile.Yes, yamlfile.Count, yamlfile.Span, yamlfile.Itself

	amount = yamlfile.Value(form{"type": "number", "minimum": 0}, (*reader).Number)
	aPart  = form{"type": []string{"string", "number"}, "pattern": `^[0-9.]+ *%?$`, "minimum": 0, "maximum": 1,
		"examples": []string{"75%"}}
	part       = yamlfile.Value(aPart, (*reader).part)
	positive   = yamlfile.Value(yamlfile.ANumber, (*reader).positive)
	above      = yamlfile.Value(yamlfile.ASpan, (*reader).above)
	spanOrZero = yamlfile.Value(yamlfile.ASpan, (*reader).spanOrZero)
	spanOrNone = yamlfile.Value(form{"anyOf": []form{{"const": "none"}, yamlfile.ASpan}}, (*reader).spanOrNone)
	size       = yamlfile.Value(aSize, (*reader).size)
	sizeOrNone = yamlfile.Value(form{"anyOf": []form{{"const": "none"}, aSize}}, (*reader).sizeOrNone)
	large      = yamlfile.Value(aSize, (*reader).large)
	aServer    = yamlfile.Value(form{"type": "string", "pattern": "^https?://"}, (*reader).address)
	rates      = yamlfile.Value(yamlfile.ListOf(aRateOf), (*reader).rates)
	key        = yamlfile.Key
)

// configFields is a function, since most commands read no such file.
func configFields() []yamlfile.Field {
	return []yamlfile.Field{
		key("version", yamlfile.Version(Version), "of this format"),
		key("listen", aText, "where clients connect, HOST:PORT (default 127.0.0.1:7878)"),
		key("admin", aText, "where people and tools look, HOST:PORT on loopback (default 127.0.0.1:7879); off: nowhere"),
		key("metrics", yamlfile.Value(form{"anyOf": []form{yamlfile.AText, yamlfile.Object(metricsFields)}}, (*reader).metrics),
			"the numbers alone, for other machines: HOST:PORT, or a mapping; /metrics, /livez and /readyz"),
		key("forward", yamlfile.Struct(forwardFields),
			"a forward proxy: programs keep their own addresses, and reach it by HTTPS_PROXY"),
		key("open", yes, "anybody who reaches listen may send, without a key and from elsewhere than this machine"),
		key("tls", yamlfile.Value(yamlfile.Object(listenTLSFields), (*reader).listenTLS),
			"of listen; without it that is plain HTTP"),
		key("max_wait", spanOrZero, "the longest that a request waits; one that would wait longer is refused at once "+
			"(default 60s); 0: nobody waits"),
		key("final_only", yes, "no interim answers (1xx) to clients in line, since a server in front does not pass them on"),
		key("grace", span, "how long those that wait may go on when the proxy stops (default 0)"),
		key("state", aText, "a file for what was sent and still counts, so that a restart forgets no window"),
		key("sent", aText, "a file that gets a line of each attempt, to prove afterwards that each limit was kept"),
		key("handover", aText, "a Unix socket by which the next process takes over without a drop (default: state and .sock); "+
			"off: none"),
		key("share", yamlfile.Struct(storeFields), "limits are shared with other proxies, and runs, by a store"),
		key("bounds", yamlfile.Struct(boundsFields), "on what clients may take up"),
		key("clients", yamlfile.Struct(clientsFields), "who asks"),
		key("upstreams", yamlfile.Structs(upstreamFields()).Must(""), "the servers that requests may go to"),
	}
}

var metricsFields = []yamlfile.Field{
	key("listen", aText.Must(""), "HOST:PORT, such as 0.0.0.0:9090"),
	key("names", yes, "labels name clients, keys, hosts and upstreams (default: numbers are sums)"),
	key("token", yamlfile.Value(aClientKey, (*reader).token), "readers of /metrics send it: Authorization: Bearer TOKEN"),
	key("tls", yamlfile.Value(yamlfile.Object(listenTLSFields), (*reader).listenTLS),
		"of this address; with client_ca, readers need a certificate"),
}

var forwardFields = []yamlfile.Field{
	key("listen", aText.Must(""), "where programs connect, HOST:PORT; beyond this machine clients need keys"),
	key("bundle", aText.Must(""),
		"a file that is written: the certificates that programs are to trust, new at each start, without a key"),
	key("tunnels", yamlfile.Choice("public", "none"), "which other hosts are reached: public, those of the public network "+
		"at port 443, or none (default: public on this machine, none beyond it)"),
}

var storeFields = []yamlfile.Field{
	key("store", aText, "sqlite:FILE on one machine, postgres://… or redis://…"),
	key("env", yamlfile.Value(yamlfile.AText, (*reader).storeFromEnv).In("Store"),
		"the variable of the environment that has the store, where that has a password in it"),
	key("name", aText, "what the limits are called in the store: the same for all who share them (default: default)"),
	key("fallback", yamlfile.Choice("wait", "split"),
		"while the store is away: wait (the default), or split, which is not exact where only some are cut off"),
	key("weight", positive, "this proxy's part of the limits where there is not enough for all who share: of weights 1 "+
		"and 3 the second has three quarters (default 1)"),
	key("least", yamlfile.Number,
		"the part of the whole that it has at least then, 0 to 0.95, whatever the weights (default 0)"),
}

var boundsFields = []yamlfile.Field{
	key("header", size, "most bytes of a request's header (default 64KiB)"),
	key("body", sizeOrNone, "most bytes of a request's body (default 1GiB); none: any"),
	key("kept", size, "how much of a body is held in memory (default 32MiB)"),
	key("kept_in_all", size, "the same for all requests together (default 512MiB)"),
	key("frozen", size,
		"how much what still counts of idle keys and clients may take; beyond it new ones get 429 (default 64MiB)"),
	key("connections", count, "how many may be open (default 16384)"),
	key("header_timeout", above, "how long a request's header may take (default 10s)"),
	key("idle_timeout", above, "how long a connection without a request stays open (default 2m)"),
	key("stall", above, "how long a client may take none of its answer, or send nothing of its body (default 1m)"),
}

var clientsFields = []yamlfile.Field{
	key("header", aText, "the field of requests that names the client where it has no key"),
	key("list", yamlfile.Structs(clientFields), "clients that are known by name"),
	key("default", yamlfile.Struct(shareFields), "what holds for each of the others"),
	key("most", count,
		"how many are told apart at a time that are not in the list; the others share one line (default: any number)"),
}

// shareFields are for clients in the list, and for all others.
var shareFields = []yamlfile.Field{
	key("weight", positive, "its share among clients that want more than there is (default 1)"),
	key("reserve", part,
		"the part of each limit that it leaves free for others, so that these do not wait: 25% (default 0)"),
	key("in_flight", count,
		"how many of its requests may be in flight, to the end of their answers; with share, at all proxies together (default: any number)"),
	key("head_start", span,
		"how much earlier its requests count as having come: interactive before batch (default 0)"),
	key("max_waiting", count, "how many of its requests may wait (default 10000)"),
	key("max_wait", spanOrZero, "the longest that one of its requests waits (default: that of all); 0: none waits"),
	key("limits", rates, "its own, of what it asks of all upstreams together: requests, tokens or money"),
	key("models", yamlfile.Value(yamlfile.ListOf(form{"type": yamlfile.AText["type"], "examples": []string{"gpt-4o", "claude-*"}}),
		(*reader).modelNames), "the models that it may use, as requests name them; * is any text (default: all)"),
	key("upstreams", yamlfile.Value(yamlfile.ListOf(yamlfile.AText), (*reader).upstreamNames),
		"the names of the upstreams that it may use (default: all)"),
	key("may_say_cost", yes, "it may choose the resource of a request, and lower the cost, with Paceline-Cost"),
}

var clientFields = append([]yamlfile.Field{
	key("name", aText.Must(""), "what it is called in logs and on the page"),
	key("keys", yamlfile.Value(yamlfile.ListOf(aClientKey), (*reader).clientKeys), "its keys for the proxy"),
	key("addresses", yamlfile.Value(yamlfile.ListOf(form{"type": "string", "examples": []string{"10.1.0.0/16",
		"192.0.2.7"}}), (*reader).addresses), "it has, if it is known by that"),
}, shareFields...)

func upstreamFields() []yamlfile.Field {
	return []yamlfile.Field{
		key("to", aServer, "where requests go: http or https, a host, and a path to put in front of theirs"),
		key("name", aText, "what it is called in logs and on the page (default: the host)"),
		key("path", aText, "the beginning of the paths that go there, which is taken away (default: all)"),
		key("host", aText, "the name by which clients reach it (default: any)"),
		key("targets", yamlfile.Structs(targetFields),
			"servers in place of to, each of which can serve all requests: a request goes to the one that may take it soonest"),
		key("affinity", yamlfile.Struct(affinityFields), "requests of a session go to one target, whose cache has their beginning"),
		key("h2c", yes, "speak HTTP/2 without TLS, as gRPC servers without TLS want it"),
		key("tls", yamlfile.Value(yamlfile.Object(upstreamTLSFields), (*reader).upstreamTLS),
			"of an https server, if the authorities of the system do not know it, or it wants a certificate"),
		key("preset", aText, "published limits by name, such as openai:tier1"),
		key("per_second", yes, "limits per minute of the preset hold per second, too"),
		key("limits", yamlfile.Part(form{"anyOf": []form{{"enum": []string{"none", "auto"}}, yamlfile.ListOf(aLimitOrAuto)}}, true,
			(*reader).upstreamLimits),
			"what the server allows; none: nothing is known but what it says; auto: it is found out, also in the list"),
		key("charges", yamlfile.Value(yamlfile.ListOf(yamlfile.Object(chargeFields)), (*reader).charges),
			"what requests cost, and in which resource: the first that fits holds, before the provider's own"),
		key("first", yamlfile.Value(yamlfile.ListOf(form{"type": "string", "pattern": "^[^ ]+ [/*]",
			"examples": []string{"POST /order", "DELETE /order*"}}), (*reader).texts),
			"requests that go before others of the same client: a method or *, and a path with * for any text"),
		key("first_free", yamlfile.Value(aPart, (*reader).partOrZero),
			"the part of each limit that other requests leave free for those of first (default 10%); 0: none"),
		key("strangers", yes, "others use these limits, too: with limits: auto, the proxy takes a fair share"),
		key("rejects_free", yes.In("Arrivals.RejectsFree"), "the server does not count what it refuses"),
		key("latency_max", span.In("Arrivals.OneWayMax"),
			"the longest that a request takes to the server, if that is sure"),
		key("in_flight", count, "how many requests each key may have open (default: any number)"),
		key("use", part, "the part of each limit that is used, the rest is for others: 75% (default: all)"),
		key("ramp", span, "how long the load takes to rise to all, at the start and after a rest (default 0)"),
		key("tokens", yes, "count what language models use also where no limit asks for that"),
		key("count", yamlfile.Value(form{"enum": countings()}, (*reader).counting).In("Counting"),
			"what the server counts of a request's tokens (default: as documented)"),
		key("prices", yamlfile.Structs(priceFields),
			"of models, in USD per million tokens, for limits of money (default: as the provider has published them)"),
		key("request_price", amount, "USD that each request costs, beside its tokens (default 0)"),
		key("provider", yamlfile.Value(yamlfile.AText, (*reader).provider),
			"whose words answers say limits in (default: that of the host or the preset, or as they look)"),
		key("keys", yamlfile.Value(yamlfile.ListOf(yamlfile.Object(keyFields)), (*reader).keys),
			"credentials to send with: a request goes with the one that may go soonest"),
		key("key_in", yamlfile.Value(yamlfile.ListOf(form{"type": "string", "pattern": "^(header .+|parameter .+|none)$",
			"examples": []string{"header X-Account", "parameter api_key"}}), (*reader).keyIn),
			"where a client's request has its key, which counts apart: header NAME, parameter NAME of the query or the body, or "+
				"none: all count together (default: the places of known providers)"),
		key("header", yamlfile.Value(aTemplates, (*reader).headerFields),
			"fields that are set on every request; {key} is filled in, and {nonce} by a number that rises with each key"),
		key("query", yamlfile.Value(aTemplates, (*reader).parameters),
			"parameters that are set on every request; {key} and {nonce} are filled in"),
		key("nonce_gap", above, "the least time between two requests of a key with a {nonce} (default: one is in flight)"),
		key("nonce_unit", above, "the unit in which a {nonce} counts since 1970 (default 1ms)"),
		key("attempts", count, "how often a request may be sent, the first time included (default 3)"),
		key("backoff_base", above.In("Backoff.Base"),
			"how long a request waits after its first attempt that failed (default "+backoff.DefaultBase.String()+")"),
		key("backoff_max", above.In("Backoff.Max"), "how long it waits at most (default "+backoff.DefaultMax.String()+")"),
		key("answer_timeout", spanOrNone,
			"how long an attempt may take until the header of its answer (default 10m); none: any time"),
		key("connect_timeout", above, "how long a connection may take, TLS included (default 10s)"),
		key("max_pause", spanOrNone,
			"how long all stay away at most because of one answer (default 1h); none: as long as the server asks"),
		key("max_outage", spanOrZero,
			"how long requests wait for a server where nothing arrives (default 10s); 0: nobody waits"),
		key("forwarded", yes, "tell the server who asked, in X-Forwarded-For, -Host and -Proto"),
		key("keep_host", yes, "pass on the Host that the client asked for"),
		key("keep_links", yes, "leave the server's own addresses in Link, Location and next pages; "+
			"without it they lead to the proxy"),
		key("batches", yamlfile.Struct(batchesFields), "files and batches are kept here, and sent beside other requests "+
			"(default: their paths go to the server)"),
	}
}

var affinityFields = []yamlfile.Field{
	key("by", yamlfile.Choice("prompt_cache_key", "user", proxy.AffinityByHeader, proxy.AffinityByPrefix).Must(""),
		"the session: a text of the body, a header field, or the first 4 KiB of the prompt"),
	key("header", aText, "the name of the field, with by: header"),
	key("hold", above, "how long a request waits for the target of its session (default 2s)"),
}

var targetFields = []yamlfile.Field{
	key("to", aServer.Must(""), "where requests go: http or https, a host, and a path to put in front of theirs"),
	key("name", aText, "what it is called in logs and on the page (default: the host)"),
	key("after", yamlfile.Value(form{"anyOf": []form{{"const": "never"}, yamlfile.ASpan}}, (*reader).afterOrNever),
		"a request goes there only so long after it came, or at once where all targets before are shut (default 0); never: "+
			"then alone"),
	key("path", aText, "the path there, with {model}, {path} for that of the request, or {rest} for that without /v1, and a "+
		"query (default {path})"),
	key("models", yamlfile.Value(aTemplates, (*reader).models),
		"what models are called there, by their names in requests"),
	key("preset", aText, "published limits by name, such as openai:tier1"),
	key("per_second", yes, "limits per minute of the preset hold per second, too"),
	key("limits", yamlfile.Value(yamlfile.ListOf(aLimit), (*reader).targetLimits), "what the server allows"),
	key("in_flight", count, "how many requests each key may have open (default: any number)"),
	key("count", yamlfile.Value(form{"enum": countings()}, (*reader).counting).In("Counting"),
		"what the server counts of a request's tokens (default: as documented)"),
	key("provider", yamlfile.Value(yamlfile.AText, (*reader).provider),
		"whose words answers say limits in (default: that of the host or the preset, or as they look)"),
	key("keys", yamlfile.Value(yamlfile.ListOf(yamlfile.Object(keyFields)), (*reader).keys),
		"credentials to send with: a request goes with the one that may go soonest"),
	key("header", yamlfile.Value(aTemplates, (*reader).headerFields),
		"fields that are set there, before those of the upstream; {key} is filled in"),
	key("query", yamlfile.Value(aTemplates, (*reader).parameters),
		"parameters that are set there, before those of the upstream; {key} is filled in"),
}

var batchesFields = []yamlfile.Field{
	key("folder", aText.Must(""), "where they are kept; it is made if it is missing"),
	key("keep", above, "how long files and ended batches are kept (default 30d)"),
	key("most", large, "most bytes that the files and batches of a client take (default 10GiB)"),
	key("weight", positive, "the part of a client's batches, beside the weights of clients (default 1)"),
	key("head_start", span, "how much earlier their requests count as having come (default 0)"),
	key("reserve", part, "the part of each limit that they leave free for other requests (default 0)"),
	key("concurrency", count, "how many requests of a client's batches are under way at a time (default 64)"),
}

var chargeFields = []yamlfile.Field{
	key("on", aText.Must(""), "the requests: a method or *, a path with * for any text, up to two conditions on the query"),
	key("cost", yamlfile.Kind{Read: itself.Read, As: aCost},
		"beside the one request: 250 weight, or by unit a number or a jq expression over the body"),
	key("else", itself, "the cost where an expression finds none, such as 100 weight (default 1)"),
	key("resource", aText, "the part of the key's quota that it counts in, such as search, or {path} {query:symbol}"),
	key("answer", yamlfile.Kind{Read: itself.Read, As: costsByUnit},
		"by unit, a jq expression over the answer: what the request did cost"),
	key("learn", yes, "GraphQL queries reserve what the same query did cost last, and not cost (default false)"),
}

// written is a secret in a file. Exactly one of Env, File, Secret and Sha256 is set.
type written struct {
	Name                      string
	Env, File, Secret, Sha256 *node
	Limits                    []rate.Limit
}

var keyFields = append([]yamlfile.Field{
	key("name", aText.Must(""), "what it is called in logs and on the page"),
	key("limits", rates, "this key's, in place of the upstream's of each key"),
}, secretFields...)

var secretFields = []yamlfile.Field{
	key("env", itself, "the variable of the environment that has it"),
	key("file", itself, "the file that has it"),
	key("secret", itself, "itself, in a file that only its owner may read"),
}

var clientKeyFields = append([]yamlfile.Field{
	key("sha256", yamlfile.Kind{Read: itself.Read, As: form{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}},
		"its hash, as printf %s KEY | sha256sum prints it"),
}, secretFields...)

var priceFields = []yamlfile.Field{
	key("model", aText, "as requests name it (default: each that has no other price here)"),
	key("input", amount.Must(""), "USD per million tokens of input"),
	key("output", amount.Must(""), "USD per million tokens of output"),
	key("cached", amount, "USD per million tokens of input that was read from a cache (default: as other input)"),
}

var limitFields = []yamlfile.Field{
	key("limit", yamlfile.Part(yamlfile.ARate, true, (*reader).limit).Must(""),
		"how much in what time, such as 500/m or 200000 tokens/d"),
	key("scope", yamlfile.Part(form{"enum": scopeNames}, true, (*reader).scope),
		"who shares it: each key (the default), all requests, each model, resource or route of a key"),
	key("model", yamlfile.Part(yamlfile.AText, true, (*reader).only), "the one model that it is for"),
	key("resource", yamlfile.Part(yamlfile.AText, true, (*reader).only),
		"the one resource that it is for, such as search, or a pattern of such names"),
	key("route", yamlfile.Part(yamlfile.AText, true, (*reader).only),
		"the one route that it is for, such as GET /users/*"),
	key("rule", yamlfile.Value(form{"enum": ruleNames}, (*reader).isBucket).In("Bucket"), "how the server counts: no "+
		"span of the time holds more (rolling, the default), or a bucket that is refilled evenly"),
	key("burst", count, "what the bucket holds (default: as much as is refilled in its time)"),
}

// tlsFiles are the file names in a tls of the configuration.
type tlsFiles struct {
	Cert, Key, CA, ClientCA *node
	ServerName              string
}

var listenTLSFields = []yamlfile.Field{
	key("cert", itself, "file of the certificate, with those between it and its authority"),
	key("key", itself, "file of its key"),
	key("client_ca", itself, "file of authorities: clients need a certificate of one of them"),
}

var upstreamTLSFields = []yamlfile.Field{
	key("ca", itself, "file of authorities to trust, in place of the system's"),
	key("cert", itself, "file of a certificate for us"),
	key("key", itself, "file of its key"),
	key("server_name", aText, "the name that the server's certificate has (default: the host)"),
}
