package secret

import (
	"net/url"
	"strings"
)

// inHeader are the fields that hold a credential, in canonical form. inQuery are the names of such
// parameters.
var (
	inHeader = [...]string{
		"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Mbx-Apikey", "X-Bapi-Api-Key", "Ok-Access-Key", "Cb-Access-Key",
		"X-Auth-Key",
		"X-Auth-Token", "Private-Token", "X-Shopify-Access-Token", "X-Access-Token", "Apikey",
	}
	inQuery = [...]string{"api_key", "apikey", "key", "access_token", "token", "api-key"}
)

// Credential returns the credential of a request, from header fields in canonical form and the URL.
// The result is secret, or is the name of a signature's key. It is empty if there is none.
func Credential(header map[string][]string, u *url.URL) string {
	if v := header["Authorization"]; len(v) > 0 && v[0] != "" {
		return signer(v[0])
	}
	for _, name := range inHeader {
		if v := header[name]; len(v) > 0 && v[0] != "" {
			return v[0]
		}
	}
	if u.User != nil {
		return u.User.String()
	}
	for q := u.RawQuery; q != ""; {
		var pair string
		pair, q, _ = strings.Cut(q, "&")
		name, value, _ := strings.Cut(pair, "=")
		for _, p := range inQuery {
			if value != "" && strings.EqualFold(name, p) {
				if v, err := url.QueryUnescape(value); err == nil {
					value = v
				}
				return value
			}
		}
	}
	return ""
}

// signer returns the constant part of an Authorization: all of a bearer's token or a password, but
// only the key's name of a signature.
func signer(v string) string {
	scheme, rest, ok := strings.Cut(v, " ")
	switch scheme {
	case "AWS", "SharedKey", "SharedKeyLite": // name:signature
		key, _, _ := strings.Cut(rest, ":")
		return scheme + " " + key
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
