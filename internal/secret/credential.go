package secret

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// inHeader are the fields that hold a credential, in canonical form. Each row names a provider whose
// documentation of authentication has the field.
var inHeader = [...]string{
	"X-Api-Key",                 // Anthropic, AWS API Gateway, Elsevier, WOO X
	"Api-Key",                   // Azure OpenAI, Kraken (API-Key), BitMEX, Bithumb
	"X-Goog-Api-Key",            // Google
	"X-Mbx-Apikey",              // Binance
	"X-Bapi-Api-Key",            // Bybit
	"Ok-Access-Key",             // OKX
	"Cb-Access-Key",             // Coinbase Exchange
	"Kc-Api-Key",                // KuCoin
	"Apca-Api-Key-Id",           // Alpaca
	"Key",                       // Gate, Poloniex
	"Access-Key",                // Bitget, bitFlyer, Coincheck
	"X-Mexc-Apikey",             // MEXC
	"X-Bx-Apikey",               // BingX
	"X-Bm-Key",                  // BitMart
	"X-Coinex-Key",              // CoinEx
	"X-Gemini-Apikey",           // Gemini
	"Bfx-Apikey",                // Bitfinex
	"Bitvavo-Access-Key",        // Bitvavo
	"Bm-Auth-Apikey",            // BTC Markets
	"X-Phemex-Access-Token",     // Phemex
	"X-Auth",                    // Bitstamp
	"X-Cmc_pro_api_key",         // CoinMarketCap
	"X-Cg-Pro-Api-Key",          // CoinGecko
	"X-Cg-Demo-Api-Key",         // CoinGecko
	"X-Finnhub-Token",           // Finnhub
	"X-Ig-Api-Key",              // IG
	"Ocp-Apim-Subscription-Key", // Azure API Management
	"X-Rapidapi-Key",            // RapidAPI
	"Dd-Api-Key",                // Datadog
	"X-Riot-Token",              // Riot Games
	"X-Auth-Key",                // Cloudflare, AscendEX
	"X-Auth-Token",              // OpenStack
	"Private-Token",             // GitLab
	"X-Shopify-Access-Token",    // Shopify
	"X-Access-Token",            // Rancher, Unsplash's older API
	"Apikey",                    // Kraken Futures, Supabase
}

// inParameters are the names of parameters that hold a credential, in small letters. The first of them
// counts, wherever it stands among the others.
var inParameters = [...]string{
	"api_key", "apikey", "api-key",
	"accesskeyid",    // HTX, Alibaba Cloud
	"awsaccesskeyid", // S3
	"access_key",     // aviationstack and others of apilayer
	"x_cg_pro_api_key", "x_cg_demo_api_key",
	"key", // Google
	"access_token", "api_token",
	"token", // Finnhub, Slack
}

// MostBody is the size of the largest body in which a credential is looked for.
const MostBody = 64 << 10

// Where says where the requests of a server have their credential: in header fields, by their canonical
// names, or in parameters of the query or the body, by their names in small letters. A nil Where means
// all places that are known.
type Where struct{ Fields, Parameters []string }

// known are the places of a nil Where.
var known = Where{Fields: inHeader[:], Parameters: inParameters[:]}

// rankOfField is the place of each known field in inHeader.
var rankOfField = func() map[string]int {
	ranks := make(map[string]int, len(inHeader))
	for i, name := range inHeader {
		ranks[name] = i
	}
	return ranks
}()

// Credential returns the credential of a request, from header fields in canonical form and the URL.
// The result is secret, or is the name of a signature's key. It is empty if there is none.
func Credential(header map[string][]string, u *url.URL) string {
	return (*Where)(nil).Credential(header, u, nil)
}

// Credential is like the function Credential, for these places and with a body. The function body, if
// not nil, returns all of the body, or nil if it is not to be had. It is called if the body may be a form
// or JSON. Where a query and a form have the same parameter, servers read that of the form.
func (w *Where) Credential(header map[string][]string, u *url.URL, body func() []byte) string {
	all := w
	if w == nil {
		all = &known
	}
	if v := all.inFields(header); v != "" {
		return v
	}
	if w == nil && u.User != nil {
		return u.User.String()
	}
	found := parameter{rank: len(all.Parameters)}
	found.inForm(u.RawQuery, all.Parameters)
	if body == nil || len(all.Parameters) == 0 || !holdsParameters(header) {
		return found.value
	}
	switch text := bytes.TrimSpace(body()); {
	case len(text) == 0 || len(text) > MostBody:
	case text[0] == '{': // by a Content-Type for forms, too: that is the default of curl
		found.inObject(text, all.Parameters, w == nil)
	default:
		found.inForm(string(text), all.Parameters)
	}
	return found.value
}

// inFields looks in the header fields. Of several, the first of Fields counts.
func (w *Where) inFields(header map[string][]string) string {
	if w != &known {
		for _, name := range w.Fields {
			if v := header[name]; len(v) > 0 && v[0] != "" {
				if name == "Authorization" {
					return signer(v[0])
				}
				return v[0]
			}
		}
		return ""
	}
	if v := header["Authorization"]; len(v) > 0 && v[0] != "" {
		return signer(v[0])
	}
	// A request has fewer fields than there are known ones: its own are looked up.
	var value string
	first := len(known.Fields)
	for name, v := range header {
		if rank, ok := rankOfField[name]; ok && rank < first && len(v) > 0 && v[0] != "" {
			value, first = v[0], rank
		}
	}
	return value
}

// holdsParameters reports whether a body may be a form or JSON. Some clients do not say that it is.
func holdsParameters(header map[string][]string) bool {
	if len(header["Content-Encoding"]) > 0 {
		return false
	}
	v := header["Content-Type"]
	if len(v) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(v[0], ";")
	kind = strings.TrimSpace(kind)
	return strings.EqualFold(kind, "application/x-www-form-urlencoded") || strings.EqualFold(kind, "application/json")
}

// parameter is the credential among parameters, and the place of its name in the list of names.
type parameter struct {
	value string
	rank  int
}

// take takes a value if its name stands before most in the list of names. It returns the next most.
func (p *parameter) take(name, value string, names []string, most int) int {
	if value == "" {
		return most
	}
	rank := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if rank < 0 || rank >= most {
		return most
	}
	p.value, p.rank = value, rank
	return rank
}

// inForm looks in a query or a form. Of two with the same name there, the first counts.
func (p *parameter) inForm(form string, names []string) {
	for most := p.rank + 1; form != ""; {
		var pair string
		pair, form, _ = strings.Cut(form, "&")
		name, value, _ := strings.Cut(pair, "=")
		most = p.take(unescaped(name), unescaped(value), names, most)
	}
}

func unescaped(s string) string {
	if v, err := url.QueryUnescape(s); err == nil {
		return v
	}
	return s
}

// inObject looks among the members of an object, but not in members of members. In guessed places, a
// member named key or token is a credential only if its value is as hard to guess as keys of APIs. Most
// others are names of things: two values of them are no two callers.
func (p *parameter) inObject(text []byte, names []string, guessed bool) {
	if !mayName(text, names) {
		return // most bodies: decoding takes memory for each member
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return
	}
	for most := p.rank + 1; d.More(); {
		name, _ := d.Token()
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return
		}
		var value string
		called, _ := name.(string)
		if json.Unmarshal(raw, &value) != nil {
			continue // numbers and objects are no credentials
		}
		if (called == "key" || called == "token") && guessed && !PrivateParameter("key", value) {
			continue
		}
		most = p.take(called, value, names, most)
	}
}

// mayName reports whether an object may have a member of one of these names. A name can be escaped.
func mayName(text []byte, names []string) bool {
	if bytes.Contains(text, []byte(`\u`)) {
		return true
	}
	for rest := text; ; {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		for _, name := range names {
			if len(rest) > len(name) && rest[len(name)] == '"' && strings.EqualFold(string(rest[:len(name)]), name) {
				return true
			}
		}
	}
}

// signer returns the constant part of an Authorization: all of a bearer's token or a password, but
// only the key's name of a signature, and what stays of a token that is signed for each request.
func signer(v string) string {
	scheme, rest, ok := strings.Cut(v, " ")
	switch scheme {
	case "AWS", "SharedKey", "SharedKeyLite", "Bitso": // name:signature
		key, _, _ := strings.Cut(rest, ":")
		return scheme + " " + key
	}
	if text, is := holder(rest); is {
		return scheme + " " + text
	}
	if !ok || !strings.Contains(rest, "=") || !strings.Contains(rest, ",") {
		return v
	}
	for _, name := range [...]string{"Credential=", "oauth_token=", "oauth_consumer_key=", "username=", "keyId=", "id="} {
		if _, key, ok := strings.Cut(rest, name); ok {
			key, _, _ = strings.Cut(key, ",")
			// In AWS, the date and the region come after the key.
			key, _, _ = strings.Cut(key, "/")
			return scheme + " " + strings.TrimSpace(key)
		}
	}
	return scheme
}
