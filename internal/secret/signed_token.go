package secret

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

const (
	// mostToken is the size of the largest token that is looked into. Servers take fields of 8 KiB.
	mostToken = 8 << 10
	// longestFresh is the longest life, in seconds, of a token that its holder makes anew. A key that is
	// a JWT lives for months or has no end, and may differ from another key by its jti alone.
	longestFresh = 3600
)

// ofOneRequest are the members of a JWT that differ between two requests of one key, in small letters.
// An identity without all others would make one key of two.
var ofOneRequest = map[string]bool{
	"iat": true, "exp": true, "nbf": true, "jti": true, // RFC 7519
	"nonce": true, "timestamp": true, // Upbit, Bithumb, Coinbase, Zhipu
	"query_hash": true, "query_hash_alg": true, // Upbit, Bithumb: with parameters alone
	"uri": true, "uris": true, // Coinbase, Fireblocks
	"bodyhash": true, // Fireblocks
	"qsh":      true, // Atlassian Connect
}

// holder returns what stays of a JWT that is made for each request or so, as text: kid, iss, sub,
// access_key and the others. ok is false for another token, and if nothing stays that names a key. No
// signature is checked: a wrong one is refused by the server.
func holder(token string) (text string, ok bool) {
	if !strings.HasPrefix(token, "ey") || len(token) > mostToken { // "ey" begins each JSON object in base64
		return "", false
	}
	head, rest, _ := strings.Cut(token, ".")
	claims, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return "", false
	}
	header, in := members(head), members(claims)
	if header == nil || in == nil || !fresh(header, in) {
		return "", false
	}
	var b strings.Builder
	if kid := header["kid"]; kid != nil {
		b.Write(kid)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !ofOneRequest[strings.ToLower(name)] {
			b.WriteString("," + name + ":")
			b.Write(in[name])
		}
	}
	return b.String(), b.Len() > 0
}

// members decodes a part of a JWT.
func members(part string) (all map[string]json.RawMessage) {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// fresh reports whether a token was made for a request, or for the next minutes: it has a nonce, or its
// life is short or unknown.
func fresh(header, claims map[string]json.RawMessage) bool {
	if header["nonce"] != nil || claims["nonce"] != nil {
		return true
	}
	seconds := func(name string) (n float64) {
		if json.Unmarshal(claims[name], &n) != nil {
			return 0
		}
		if n > 1e11 { // milliseconds
			n /= 1000
		}
		return n
	}
	end, begin := seconds("exp"), max(seconds("iat"), seconds("nbf"), seconds("timestamp"))
	return end > 0 && (begin == 0 || end-begin <= longestFresh)
}
